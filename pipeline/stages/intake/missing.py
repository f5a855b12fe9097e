"""Imputes missing feature values, and tracks the coverage of each feature."""

from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from fluxplain.config import FeatureType
from fluxplain.evaluate import Value
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.schemas import BadRecordError
from fluxplain.stages.intake.remedies import for_missing

RECENT = 100
"""Number of latest values of a categorical feature whose most frequent one is imputed."""


class Filler:
    """Imputes missing values of the ``imputed`` features, in the order of ``features``.

    A numeric feature gets the mean of its values, smoothed with ``alpha`` as explanations are; a
    categorical one the :class:`Mode` of its values. ``constants`` (feature → value) go first.

    Examples
    --------
    >>> filler = Filler({"a": "numeric", "c": "categorical"}, {}, ["a"], alpha=0.5)
    >>> filler.observe({"a": 2.0, "c": "u"})
    >>> filler.filled({"c": "v"}, ["a"])
    {'a': 2.0, 'c': 'v'}
    """

    def __init__(
        self,
        features: Mapping[str, FeatureType],
        constants: Mapping[str, Value],
        imputed: Collection[str],
        alpha: float,
    ) -> None:
        learned = [name for name in imputed if name not in constants]
        self._names = list(features)
        self._constants = dict(constants)
        self._means = {
            name: ExponentialMeans(1, [alpha]) for name in learned if features[name] == "numeric"
        }
        self._modes = {name: Mode() for name in learned if features[name] == "categorical"}

    def filled(
        self, x: Mapping[str, Value], missing: Sequence[str], others: Sequence[str] = ()
    ) -> dict[str, Value]:
        """Return the observation with imputed values; raise ``BadRecordError`` if none is known.

        ``others`` are its unconfigured fields, one of which may have been meant.
        """
        values = {**x, **{name: self._value(name, others) for name in missing}}
        return {name: values[name] for name in self._names}

    def observe(self, x: Mapping[str, Value]) -> None:
        """Take the values that an observation has."""
        for name, mean in self._means.items():
            if name in x:
                mean.update(np.array([[float(x[name])]]))
        for name, mode in self._modes.items():
            if name in x:
                mode.update(x[name])

    def _value(self, name: str, others: Sequence[str]) -> Value:
        if name in self._constants:
            return self._constants[name]
        mean, mode = self._means.get(name), self._modes.get(name)
        if mean is not None and mean.n:
            return mean.values.item()
        if mode is not None and mode.n:
            return mode.value
        raise BadRecordError(
            f"x.{name} is missing, and has had no value yet to impute it from: set "
            f"missing.values.{name}{for_missing(name, others)}"
        )


class Mode:
    """The most frequent of the last categories.

    Examples
    --------
    >>> mode = Mode()
    >>> for category in ("u", "v", "v", "w"):
    ...     mode.update(category)
    >>> mode.value
    'v'
    """

    def __init__(self) -> None:
        self._recent: deque[Value] = deque()
        # Python counts true and 1 as equal
        self._counts: Counter[tuple[type, Value]] = Counter()

    @property
    def n(self) -> int:
        """Number of remembered categories."""
        return len(self._recent)

    @property
    def value(self) -> Value:
        """The most frequent category; of equals, the one that occurs first."""
        most = max(self._counts.values())
        return next(each for each in self._recent if self._counts[type(each), each] == most)

    def update(self, category: Value) -> None:
        """Take the next category."""
        self._recent.append(category)
        self._counts[type(category), category] += 1
        if len(self._recent) > RECENT:
            oldest = self._recent.popleft()
            self._counts[type(oldest), oldest] -= 1
            if not self._counts[type(oldest), oldest]:
                del self._counts[type(oldest), oldest]


class Coverage:
    """Share of the observations that have a value, for each feature, group and pair.

    Smoothed as explanations are: with α about the last ``2 / α - 1`` observations count. A group or
    pair has a value where all of its features (``members``) have one.

    Examples
    --------
    >>> coverage = Coverage({"a": ["a"], "place": ["lat", "lon"]}, alpha=0.5)
    >>> coverage.update([])
    >>> coverage.update(["lon"])
    >>> coverage.of("a"), round(coverage.of("place"), 3)
    (1.0, 0.333)
    """

    def __init__(self, members: Mapping[str, Collection[str]], alpha: float) -> None:
        self._alpha = alpha
        self._weight = 0.0
        self._absent: dict[str, float] = {}
        self._names_of: dict[str, list[str]] = {}
        for name, features in members.items():
            for feature in features:
                self._names_of.setdefault(feature, []).append(name)

    def update(self, missing: Sequence[str]) -> None:
        """Count an observation, of which some features have no value."""
        self._weight += self._alpha * (1.0 - self._weight)
        for name in self._absent:
            self._absent[name] *= 1.0 - self._alpha
        absent = {name for feature in missing for name in self._names_of.get(feature, ())}
        for name in absent:
            self._absent[name] = self._absent.get(name, 0.0) + self._alpha

    def of(self, name: str) -> float:
        """Return the share, from 0 to 1; 1 before the first observation."""
        absent = self._absent.get(name)
        return 1.0 if absent is None else max(1.0 - absent / self._weight, 0.0)

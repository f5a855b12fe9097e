"""Evaluation points of features, computed from recent values."""

import random
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from fluxplain.evaluate import Encoding, Observation, Observed, Value
from fluxplain.evaluate.encoding import NUMBERS, Floats, Places
from fluxplain.explain.curve import Grid
from fluxplain.explain.grids import GridSettings
from fluxplain.explain.lattice import Lattices
from fluxplain.explain.method import Axis
from fluxplain.explain.storage import CategoryStorage, NumberStorage, RollingExtremes

LOW, HIGH = 0.05, 0.95
"""Quantile levels at both ends of a grid."""

_NONE: Places = np.zeros(0, np.intp)
"""The sizes of no grids."""

RNGOf = Callable[[str], random.Random]
"""Name → its own source of random numbers."""


class Points(NamedTuple):
    """The evaluation points of several features.

    ``axes`` are the points of each, numbers or categories; of features with a store of numbers,
    they are one array. ``sizes`` are how many they are, and ``codes`` their encoded numbers, those
    of one feature after the other.
    """

    names: tuple[str, ...]
    axes: Sequence[Axis] | Floats
    sizes: Places
    codes: Floats

    def some(self, names: Sequence[str]) -> "Points":
        """Return the points of some features, in this order; those that have none are left out."""
        places = np.array([self.names.index(name) for name in names if name in self.names], np.intp)
        each = np.split(self.codes, np.cumsum(self.sizes)[:-1])
        return Points(
            tuple(self.names[place] for place in places),
            [self.axes[place] for place in places],
            self.sizes[places],
            np.concatenate([np.zeros(0), *(each[place] for place in places)]),
        )


class PointStorage:
    """Recent values of features, and their evaluation points.

    By default, features whose first value is text or a boolean are categorical. ``rng_of`` returns
    the source of a feature's random numbers.
    """

    def __init__(
        self,
        features: Sequence[str],
        settings: GridSettings,
        *,
        categorical: Collection[str] | None,
        rng_of: RNGOf,
    ) -> None:
        self.features = tuple(features)
        self.settings = settings
        self.kinds: dict[str, bool] = {}
        self._rngs = {feature: rng_of(feature) for feature in features}
        self._categories: dict[str, CategoryStorage] = {}
        self._codes: dict[str, tuple[Grid, object, Floats]] = {}
        self._ranges: dict[str, RollingExtremes] = {}
        self._numeric: tuple[str, ...] = ()  # the features of the number storage
        self._sizes = _NONE  # how many points each of them has
        self._numbers = NumberStorage(settings.storage_size, ())
        self._lattices: dict[str, Lattices] = {}  # those of ranges, one each
        self._of_numbers = Lattices(0, settings.size)  # those of the number storage
        if categorical is not None:
            self._start({feature: feature in categorical for feature in features})

    def __getstate__(self) -> dict[str, Any]:
        """Return the state; categories are encoded again when needed."""
        return {**vars(self), "_codes": {}}

    def learn_kinds(self, x: Observation) -> None:
        """Learn from the first observation which features are categorical, unless configured."""
        if not self.kinds:
            self._start({f: isinstance(x[f], bool | str) for f in self.features})

    def _start(self, kinds: dict[str, bool]) -> None:
        """Make the storages, of numbers and of categories."""
        self.kinds, settings = kinds, self.settings
        size, probability = settings.storage_size, settings.entrance_probability
        by_age = settings.storage == "age-weighted"
        self._categories = {
            feature: CategoryStorage(size, self._rngs[feature], probability, by_age=by_age)
            for feature, is_categorical in kinds.items()
            if is_categorical
        }
        numeric = [feature for feature, is_categorical in kinds.items() if not is_categorical]
        if settings.kind == "range":
            self._ranges = {f: RollingExtremes(settings.window or size) for f in numeric}
            self._lattices = {f: Lattices(1, settings.size) for f in numeric}
            return
        self._numeric, self._sizes = tuple(numeric), np.full(len(numeric), settings.size, np.intp)
        self._of_numbers = Lattices(len(numeric), settings.size)
        rngs = [self._rngs[feature] for feature in numeric]
        self._numbers = NumberStorage(size, rngs, entrance_probability=probability, by_age=by_age)

    def prepare(self, encoding: Encoding) -> None:
        """Teach the encoding the stored categories."""
        for feature, storage in self._categories.items():
            if not encoding.is_categorical(feature):
                for value in storage.categories():
                    encoding.learn({feature: value})

    def points(self, encoding: Encoding) -> Points:
        """Return the points of the features that are warm: first of those with stored numbers."""
        numeric = self._numeric_points()
        if encoding.mark is NUMBERS and not self._ranges and not self._categories:
            return numeric
        needed, size = self.settings.needed, self.settings.size
        axes: dict[str, Axis] = {}
        for feature, extremes in self._ranges.items():
            if len(extremes) >= needed:
                axes[feature] = self._range_points(feature, extremes, size)
        for feature, categories in self._categories.items():
            if len(categories) >= needed:
                axes[feature] = categories.categories()
        codes = [numeric.codes]
        if any(map(encoding.is_categorical, numeric.names)):
            each = zip(numeric.names, numeric.axes, strict=True)
            codes = [self._encoded(encoding, *of) for of in each]
        codes += [self._encoded(encoding, *of) for of in axes.items()]
        sizes = np.array([*numeric.sizes.tolist(), *map(len, axes.values())], np.intp)
        names = *numeric.names, *axes
        return Points(names, [*numeric.axes, *axes.values()], sizes, np.concatenate(codes))

    def _encoded(self, encoding: Encoding, feature: str, axis: Axis) -> Floats:
        """Return the points' numbers; those of categories are kept while neither changes."""
        if isinstance(axis, np.ndarray):
            if not encoding.is_categorical(feature):
                return axis
            # an integer of the feature was too large for a float
            return np.array([encoding.number(feature, each) for each in axis.tolist()])
        known, mark, numbers = self._codes.get(feature, ([], None, np.zeros(0)))
        if known is not axis or mark is not encoding.mark:
            numbers = np.array([encoding.number(feature, each) for each in axis])
            self._codes[feature] = axis, encoding.mark, numbers
        return numbers

    def _numeric_points(self) -> Points:
        """Return the points of the numeric features with a store."""
        size, needed = self.settings.size, self.settings.needed
        counts = self._numbers.counts.tolist()
        if not counts or max(counts) < needed:
            return Points((), (), _NONE, np.zeros(0))
        if self.settings.kind == "quantiles":
            grids = self._numbers.quantiles(equidistant(LOW, HIGH, size))
        else:
            grids = self._numbers.quantile_ranges(LOW, HIGH, size)
            if self.settings.is_anchored:
                self._of_numbers.snap(grids, self._numbers.extremes, self._numbers.counts, needed)
        found = Points(self._numeric, grids, self._sizes, grids.reshape(-1))
        if min(counts) >= needed:
            return found
        warm = zip(self._numeric, counts, strict=True)
        return found.some([name for name, count in warm if count >= needed])

    def _range_points(self, feature: str, extremes: RollingExtremes, size: int) -> Floats:
        points = equidistant(extremes.low, extremes.high, size)
        if self.settings.is_anchored:
            ends = np.array([[extremes.low, extremes.high]])
            self._lattices[feature].snap(points[None], ends, np.array([2]), 1)
        return points

    def store(self, observed: Observed) -> None:
        """Offer the observation's values to the storages."""
        x = observed.x
        for feature, categories in self._categories.items():
            categories.update(x[feature])
        for feature, extremes in self._ranges.items():
            extremes.update(_number(feature, x[feature]))
        if self._numeric:
            numbers = observed.encoding.plain(observed, self._numeric)
            if numbers is None:
                numbers = np.array([_number(feature, x[feature]) for feature in self._numeric])
            self._numbers.update(numbers)

    def take_over(self, feature: str, other: "PointStorage") -> None:
        """Take over another storage's values of a feature."""
        if feature in self._numeric:
            places = self._numeric.index(feature), other._numeric.index(feature)
            self._numbers.take_over(places[0], other._numbers, places[1])
            self._of_numbers.take_over(places[0], other._of_numbers, places[1])
        elif feature in self._categories:
            self._categories[feature] = other._categories[feature]
        elif feature in self._ranges:
            self._ranges[feature] = other._ranges[feature]
            self._lattices[feature] = other._lattices[feature]


def _number(feature: str, value: Value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"the feature {feature!r} is {value!r}, but its evaluation points are numbers: "
            "name it in categorical, if it has categories"
        ) from None


def equidistant(low: float, high: float, size: int) -> Floats:
    """Return ``size`` equidistant points from ``low`` to ``high``."""
    steps = np.arange(size) / 1.0
    points: Floats = steps * ((high - low) / (size - 1)) + low
    return points


def seeded(seed: int | None) -> RNGOf:
    """Return a function that gives each feature its own random numbers."""
    return lambda feature: random.Random(None if seed is None else f"{seed}/{feature}")

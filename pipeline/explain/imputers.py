"""Imputers: the values that replace removed features."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from fluxplain.evaluate import Encoding, Observation, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.parameter_checks import ALL, check_size
from fluxplain.explain.storage import Codes, GeometricReservoir, Reservoir

if TYPE_CHECKING:
    from fluxplain.explain.storage import TreeStorage

InnerSamples = int | Literal["all"]
"""Draws per observation; ``"all"`` takes each stored observation once."""

IMPUTERS = ("interventional", "product", "observational")
"""Sources of the removed features' values: one past observation for all; a separate one for each;
or draws conditional on the remaining features."""


def mixed(stored: Floats, n: int, rng: random.Random) -> Floats:
    """Return n observations whose features come from separate stored ones.

    ``stored`` has the shape (observations, features), and is not empty.

    References
    ----------
    iSAGE, Section 3.2: replacement as if the features were independent.

    Examples
    --------
    >>> stored = np.array([[1.0, 1.0], [2.0, 2.0]])
    >>> [1.0, 2.0] in mixed(stored, 20, random.Random(1)).tolist()
    True
    """
    size, features = stored.shape
    places = [[rng.randrange(size) for _ in range(features)] for _ in range(n)]
    return stored[places, np.arange(features)]


def draws(n: int, inner_samples: InnerSamples, rng: random.Random) -> Sequence[int]:
    """Return which of n stored observations supply values: drawn with replacement, or all of them.

    All of them give the exact expectation over the reservoir.

    References
    ----------
    iPFI, Section 3.1: the expected PFI averages over the whole sample.
    """
    if inner_samples == ALL:
        return range(n)
    return [rng.randrange(n) for _ in range(int(inner_samples))]


def encoded(
    encoding: Encoding, features: Sequence[str], rows: Sequence[Mapping[str, Value]]
) -> Floats:
    """Return drawn values as numbers, shape (rows, features)."""
    return np.array([[encoding.number(f, row[f]) for f in features] for row in rows])


class ObservationalImputer:
    """Draws the values of removed features conditionally on the remaining ones.

    Each feature has a tree that predicts it from all others. Several removed features are drawn
    independently of each other, given the remaining ones.

    Parameters
    ----------
    features
        The features that may be removed.
    size
        How many values a leaf of a tree holds, at least 1.
    rng
        Source of random numbers.
    categorical
        Which features are categorical. By default those whose first value is text or a
        boolean.

    References
    ----------
    iSAGE, Section 3.2.2, Algorithms 3 and 4.
    """

    def __init__(
        self,
        features: Sequence[str],
        *,
        size: int,
        rng: random.Random,
        categorical: Collection[str] | None = None,
    ) -> None:
        self.features = tuple(features)
        self.size = check_size(size)
        self._rng = rng
        self._categorical = None if categorical is None else frozenset(categorical)
        self._trees: dict[str, TreeStorage] = {}

    def update(self, x: Observation) -> None:
        """Learn the observation."""
        if not self._trees:
            from fluxplain.explain.storage import TreeStorage  # noqa: PLC0415  loads River

            codes = Codes([feature for feature in x if self._is_categorical(feature, x[feature])])
            self._trees = {
                feature: TreeStorage(feature, self.size, self._rng, codes)
                for feature in self.features
            }
        for tree in self._trees.values():
            tree.update(x)

    def _is_categorical(self, feature: str, value: Value) -> bool:
        if self._categorical is None:
            return isinstance(value, bool | str)
        return feature in self._categorical

    def draws(self, x: Observation, hidden: Collection[str], n: int) -> list[dict[str, Value]]:
        """Return ``n`` draws of the hidden features' values, given the others."""
        columns = [self._trees[feature].draws(x, hidden, n) for feature in hidden]
        return [dict(zip(hidden, row, strict=True)) for row in zip(*columns, strict=True)]


def conditional(
    imputer: str,
    features: tuple[str, ...],
    reservoir: Reservoir,
    rng: random.Random,
    categorical: Collection[str] | None,
) -> ObservationalImputer | None:
    """Return the conditional imputer, with leaves as large as the reservoir; None for the others.

    Raises ``ValueError`` if it is conditional and the reservoir not geometric, as its leaves are.
    """
    if imputer != "observational":
        return None
    if not isinstance(reservoir, GeometricReservoir):
        raise ValueError("sampler must be 'geometric' for the imputer 'observational'")
    return ObservationalImputer(features, size=reservoir.size, rng=rng, categorical=categorical)


def check_imputer(imputer: str, inner_samples: InnerSamples) -> str:
    """Return ``imputer``, or raise ``ValueError`` if it is unknown or cannot draw ``"all"``."""
    if imputer not in IMPUTERS:
        raise ValueError(f"unknown imputer {imputer!r}: use one of {', '.join(IMPUTERS)}")
    if check_inner_samples(inner_samples) == ALL and imputer != "interventional":
        raise ValueError(
            f"inner_samples is {ALL!r}, but must be a number for the imputer {imputer!r}: only "
            f"'interventional' draws whole stored observations"
        )
    return imputer


def check_inner_samples(inner_samples: InnerSamples) -> InnerSamples:
    """Return ``inner_samples``, or raise ``ValueError`` if it is neither positive nor ``"all"``."""
    if inner_samples == ALL or (isinstance(inner_samples, int) and inner_samples >= 1):
        return inner_samples
    raise ValueError(f"inner_samples is {inner_samples!r}, but must be at least 1, or {ALL!r}")

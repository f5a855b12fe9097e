"""Which inputs iPDP asks a model about."""

import random
from itertools import product

import numpy as np

from pipeline.evaluate import Value
from pipeline.evaluate.inputs import Floats, NoNumberError, as_floats
from pipeline.explain import kernels
from pipeline.explain.curve import Grid
from pipeline.explain.grids import GridSettings
from pipeline.explain.kernels import Places
from pipeline.explain.questions import Row, columns_of
from pipeline.explain.storage import (
    AgeWeightedCategories,
    AgeWeightedStorage,
    CategoryStorage,
    FrequencyStorage,
    RollingExtremes,
)

LOW, HIGH = 0.05, 0.95
"""The quantiles at both ends of a grid."""


class PDPGrid:
    """Chooses the evaluation points of one feature from its recent values.

    Parameters
    ----------
    settings
        How.
    categorical
        Whether the feature is.
    rng
        Source of the storage's random numbers.

    Examples
    --------
    >>> settings = GridSettings(kind="range", size=3, window=4, warm_up=2)
    >>> grid = PDPGrid(settings, categorical=False, rng=random.Random(1))
    >>> for value in (9.0, 0.0, 4.0, 1.0, 2.0):
    ...     grid.update(value)
    >>> grid.points()
    [0.0, 2.0, 4.0]
    """

    def __init__(self, settings: GridSettings, *, categorical: bool, rng: random.Random) -> None:
        self._kind = settings.kind
        self._size = settings.size
        self._needed = settings.needed
        self._storage: CategoryStorage | RollingExtremes | FrequencyStorage
        size, probability = settings.storage_size, settings.entrance_probability
        by_age = settings.storage == "age-weighted"
        if categorical:
            categories = AgeWeightedCategories if by_age else CategoryStorage
            self._storage = categories(size, rng, probability)
        elif settings.kind == "range":
            self._storage = RollingExtremes(settings.window or size)
        else:
            numbers = AgeWeightedStorage if by_age else FrequencyStorage
            self._storage = numbers(size, rng, probability)

    def points(self) -> Grid:
        """Return the evaluation points; none while warming up."""
        storage = self._storage
        if len(storage) < self._needed:
            return []
        if isinstance(storage, CategoryStorage):
            return storage.categories()
        if isinstance(storage, RollingExtremes):
            return [*_equidistant(storage.low, storage.high, self._size)]
        if self._kind == "quantiles":
            return [storage.quantile(q) for q in _equidistant(LOW, HIGH, self._size)]
        return [*_equidistant(storage.quantile(LOW), storage.quantile(HIGH), self._size)]

    def update(self, value: Value) -> None:
        """Offer the observation's value to the storage, after it was explained."""
        if isinstance(self._storage, CategoryStorage):
            self._storage.update(value)
        else:
            self._storage.update(float(value))


class PDPQuestion:
    """An input for each evaluation point of each feature in turn, with its value replaced.

    Parameters
    ----------
    features
        All features.
    numeric
        The numeric features that are asked about.
    which
        Where they are among all that are numeric.
    points
        Their evaluation points, shape (features, points).
    categories
        Of each categorical feature those that are asked about.
    """

    __slots__ = ("categories", "features", "numeric", "points", "size", "which")

    def __init__(
        self,
        features: tuple[str, ...],
        *,
        numeric: tuple[str, ...],
        which: Places,
        points: Floats,
        categories: dict[str, Grid],
    ) -> None:
        self.features = features
        self.numeric = numeric
        self.which = which
        self.points = points
        self.categories = categories
        self.size = points.size + sum(map(len, categories.values()))

    def grids(self) -> dict[str, Grid]:
        """Return the evaluation points of each feature."""
        grids = {**dict(zip(self.numeric, self.points.tolist(), strict=True)), **self.categories}
        return {feature: grids[feature] for feature in self.features if feature in grids}

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        return [{feature: point} for feature, grid in self.grids().items() for point in grid]

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        if self.categories:
            raise NoNumberError("some features are categorical")
        kernels.replace_one(rows, begin, columns_of(features, self.numeric), self.points)


class PairQuestion:
    """An input for each point of the first feature with each of the second, for pair after pair.

    Parameters
    ----------
    asked
        Name → the pair, and the evaluation points of both.
    """

    __slots__ = ("asked", "size")

    def __init__(self, asked: dict[str, tuple[tuple[str, str], tuple[Grid, Grid]]]) -> None:
        self.asked = asked
        self.size = sum([len(first) * len(second) for _, (first, second) in asked.values()])

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        return [row for pair, axes in self.asked.values() for row in pair_rows(pair, axes)]

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        for pair, (first, second) in self.asked.values():
            end = begin + len(first) * len(second)
            one, other = columns_of(features, pair).tolist()
            rows[begin:end, one] = np.repeat(as_floats(first), len(second))
            rows[begin:end, other] = np.tile(as_floats(second), len(first))
            begin = end


def pair_rows(pair: tuple[str, str], axes: tuple[Grid, Grid]) -> list[Row]:
    """Return what is replaced at each point of the first feature with each of the second."""
    return [dict(zip(pair, point, strict=True)) for point in product(*axes)]


def _equidistant(low: float, high: float, size: int) -> list[float]:
    step = (high - low) / (size - 1)
    return [low + k * step for k in range(size)]

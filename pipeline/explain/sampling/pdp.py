"""Which inputs iPDP asks a model about."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

import numpy as np

from pipeline.evaluate import Value
from pipeline.evaluate.inputs import Floats, NoNumberError, as_floats
from pipeline.explain import kernels
from pipeline.explain.curve import Grid
from pipeline.explain.importance import check_warm_up
from pipeline.explain.kernels import Places
from pipeline.explain.questions import Row, columns_of
from pipeline.explain.storage import (
    AgeWeightedCategories,
    AgeWeightedStorage,
    CategoryStorage,
    FrequencyStorage,
    RollingExtremes,
    check_probability,
)

GridKind = Literal["quantile-range", "range", "quantiles"]
StorageKind = Literal["frequency", "age-weighted"]

LOW, HIGH = 0.05, 0.95
"""The quantiles at both ends of a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSettings:
    """How the evaluation points of features are chosen.

    Attributes
    ----------
    kind
        Of numeric features: ``"quantile-range"`` is equidistant from the 5 % to the 95 % quantile
        of recent values; ``"range"`` from the smallest to the largest of the last ones;
        ``"quantiles"`` are the quantiles themselves, equidistant levels from 5 % to 95 %, which
        may coincide. A categorical feature always has the categories now in its storage.
    size
        Points of a numeric feature, at least 2.
    storage
        Which of the recent values goes for a new one: the oldest (``"frequency"``), or any, with a
        chance in proportion to its age (``"age-weighted"``). A range has none.
    storage_size
        How many recent values are kept, at least 1.
    window
        Of how many last values the range is that; for ``"range"`` only, ``storage_size`` by
        default.
    entrance_probability
        Chance of a value to enter the storage, in (0, 1].
    warm_up
        Values that are needed for a grid: at least 1, at most, and by default, as many as are
        kept.

    Raises
    ------
    ValueError
        For a setting out of its range; the message names it.

    References
    ----------
    iPDP, Section 3.2 (evaluation points), Algorithm 2 (range) and Algorithm 3 (storage).
    """

    kind: GridKind = "quantile-range"
    size: int = 10
    storage: StorageKind = "frequency"
    storage_size: int = 100
    window: int | None = None
    entrance_probability: float = 1.0
    warm_up: int | None = None

    def __post_init__(self) -> None:
        _check_choice("grid", self.kind, get_args(GridKind))
        _check_choice("storage", self.storage, get_args(StorageKind))
        check_grid_size(self.size)
        check_probability(self.entrance_probability)
        if self.window is not None and self.window < 1:
            raise ValueError(f"window is {self.window!r}, but must be at least 1")
        if self.window is not None and self.kind != "range":
            raise ValueError(
                f"window is {self.window!r}, but only the grid 'range' has one, not {self.kind!r}"
            )
        check_warm_up(self.warm_up, self.capacity)

    @property
    def is_plain(self) -> bool:
        """Whether :class:`FrequencyStorages` chooses the points of numeric features."""
        return self.kind == "quantile-range" and self.storage == "frequency"

    @property
    def capacity(self) -> int:
        """How many values each feature's storage holds at least, once it is full."""
        return min(self.storage_size, self.window or self.storage_size)

    @property
    def needed(self) -> int:
        """Values that are needed for a grid."""
        return check_warm_up(self.warm_up, self.capacity)


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


def pair_name(pair: Sequence[str]) -> str:
    """Return what a pair's explanations are keyed by.

    >>> pair_name(("age", "salary"))
    'age|salary'
    """
    return "|".join(pair)


def check_pairs(pairs: Sequence[Sequence[str]]) -> dict[str, tuple[str, str]]:
    """Return the pairs by name, or raise ``ValueError`` if there is none, or one that is no pair.

    Examples
    --------
    >>> check_pairs([("a", "b")])
    {'a|b': ('a', 'b')}
    """
    named = {}
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"pairs has {pair!r}, but must have two different features in each")
        if pair_name(pair) in named or pair_name(pair[::-1]) in named:
            raise ValueError(f"pairs has {pair!r} more than once")
        named[pair_name(pair)] = (pair[0], pair[1])
    if not named:
        raise ValueError("pairs is empty: name at least one")
    return named


def check_grid_size(grid_size: int) -> int:
    """Return ``grid_size``, or raise ``ValueError`` if it is below 2."""
    if grid_size < 2:
        raise ValueError(f"grid_size is {grid_size!r}, but must be at least 2")
    return grid_size


def _check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, allowed))}")


def _equidistant(low: float, high: float, size: int) -> list[float]:
    step = (high - low) / (size - 1)
    return [low + k * step for k in range(size)]

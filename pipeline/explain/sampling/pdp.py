"""Which inputs iPDP asks a model about."""

import random

from pipeline.evaluate import Value
from pipeline.evaluate.inputs import Floats, NoNumberError
from pipeline.explain import kernels
from pipeline.explain.curve import Grid
from pipeline.explain.kernels import Places
from pipeline.explain.questions import Row, columns_of
from pipeline.explain.storage import CategoryStorage, FrequencyStorage


class PDPGrid:
    """Chooses the evaluation points of one feature from its recent values.

    Equidistant between the 5 % and the 95 % quantile of a numeric feature; for a categorical one
    the categories now in the storage.

    References
    ----------
    iPDP, Section 3.2 (evaluation points) and Algorithm 3 (storage).
    """

    def __init__(
        self,
        *,
        categorical: bool,
        grid_size: int,
        storage_size: int,
        entrance_probability: float,
        warm_up: int,
        rng: random.Random,
    ) -> None:
        storage = CategoryStorage if categorical else FrequencyStorage
        self.grid_size = check_grid_size(grid_size)
        self.warm_up = warm_up
        self._storage = storage(storage_size, rng, entrance_probability)

    def points(self) -> Grid:
        """Return the evaluation points; none while warming up."""
        if len(self._storage) < self.warm_up:
            return []
        if isinstance(self._storage, CategoryStorage):
            return self._storage.categories()
        low, high = self._storage.quantile(0.05), self._storage.quantile(0.95)
        step = (high - low) / (self.grid_size - 1)
        return [low + k * step for k in range(self.grid_size)]

    def update(self, value: Value) -> None:
        """Offer the observation's value to the storage, after it was explained."""
        self._storage.update(value)


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


def check_grid_size(grid_size: int) -> int:
    """Return ``grid_size``, or raise ``ValueError`` if it is below 2."""
    if grid_size < 2:
        raise ValueError(f"grid_size is {grid_size!r}, but must be at least 2")
    return grid_size

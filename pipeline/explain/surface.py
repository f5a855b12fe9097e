"""The smoothed effect of a categorical feature, or of two features, over their points."""

import math
from collections.abc import Sequence
from itertools import product
from operator import is_

import numpy as np

from fluxplain.evaluate import Label, Table, Value
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.curve import Grid, check_size
from fluxplain.explain.dependence import DEFAULT_REACH
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import ExponentialMeans

Axes = tuple[Grid, Grid]
"""The points of the first feature, and those of the second."""

SurfaceEffect = list[list[float]] | dict[Label, list[list[float]]]
"""One row per point of the first feature; for more than two classes, one such surface per class."""


class Surface:
    """The smoothed effect of a categorical feature, or of two features.

    ``categorical`` says whether each feature is: then each category has its own mean, shown while
    it is in the storage; otherwise grid points are identified by rank, and smoothed. ``curves`` has
    the estimates, with flat effects: one curve.

    References
    ----------
    iPDP, Algorithm 1, also with a set S of two features. The importance of two is that of a numeric
    feature (Greenwell, Boehmke, McCarthy, 2018), over all points of the surface.
    """

    def __init__(
        self,
        alpha: float,
        *,
        categorical: tuple[bool, ...],
        debias: bool = True,
        reach: int = DEFAULT_REACH,
    ) -> None:
        self.alpha = alpha
        self.debias = debias
        self._categorical = categorical
        self._axes: tuple[Grid, ...] = tuple([] for _ in categorical)  # the last points
        self._has_categories_only = all(categorical)
        self._keys: list[tuple[Value, ...]] = []  # of the last points
        self._width = 0  # how many of them a category has at most
        self._grids: list[ExponentialMeans] = []  # smoothed points of numeric features
        is_pair = len(categorical) > 1
        self.curves: RankCurves | KeyedCurve[tuple[Value, ...]] = (
            KeyedCurve(
                alpha, by_range=not is_pair, debias=debias, reach=reach, point_errors=not is_pair
            )
            if any(categorical)
            else RankCurves(1, alpha, debias=debias, reach=reach, point_errors=not is_pair)
        )

    def update_table(self, axes: Sequence[Grid], answers: Table) -> float:
        """Take the effect on one observation and return its importance.

        The answers are the outputs at each point of the first feature with each of the second, in
        turn. Raises ``ValueError`` or ``TypeError`` if they or the points do not fit; then nothing
        has changed.
        """
        numeric = [] if self._has_categories_only else self._numeric(axes)
        grids = self._grids or [
            ExponentialMeans(len(axis), [self.alpha], debias=self.debias) for axis in numeric
        ]
        for grid, axis in zip(grids, numeric, strict=True):
            check_size(grid.values.shape[1], len(axis))
        size = math.prod(map(len, axes))
        check_size(size, len(answers.numbers))  # before they are multiplied
        if isinstance(self.curves, RankCurves):
            ranks = np.arange(size, dtype=np.float64)[None]
            found: float = self.curves.move(np.zeros(1, np.intp), ranks, answers).item()
        else:
            known = self._keys, self._width
            keys, width = known if self._is_same(axes) else self._keyed(axes, size)
            found = self.curves.update_table(keys, answers, width=width)
            self._keys, self._width = keys, width
        for grid, axis in zip(grids, numeric, strict=True):
            grid.update(np.array([axis], np.float64))
        self._grids, self._axes = grids, tuple(axes)
        return found

    def _numeric(self, axes: Sequence[Grid]) -> list[Grid]:
        return [axis for axis, c in zip(axes, self._categorical, strict=True) if not c]

    def _keyed(self, axes: Sequence[Grid], size: int) -> tuple[list[tuple[Value, ...]], int]:
        """Return the key of each point, and how many keys a category has at most."""
        each = list(zip(axes, self._categorical, strict=True))
        keys = [*product(*[axis if c else range(len(axis)) for axis, c in each])]
        return keys, max(size // max(len(axis), 1) for axis, c in each if c)

    def _is_same(self, axes: Sequence[Grid]) -> bool:
        """Return whether the points are the last ones: storages keep a list until it changes."""
        return bool(self._keys) and all(map(is_, axes, self._axes))

    @property
    def axes(self) -> tuple[Grid, ...]:
        """The smoothed grid points, or the categories, of each feature."""
        numeric = iter(self._grids)
        return tuple(
            [*axis] if c or not self._grids else next(numeric).values[0].tolist()
            for axis, c in zip(self._axes, self._categorical, strict=True)
        )

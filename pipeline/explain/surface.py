"""The smoothed effect of two features together: a surface over the grids of both."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from fluxplain.evaluate import Label, Table, Value
from fluxplain.explain.categories import KeyedCurve, deviation_and_slopes
from fluxplain.explain.curve import Grid, check_size
from fluxplain.explain.ranks import RankCurve, RankCurves
from fluxplain.explain.smoothing import ExponentialMeans

Axes = tuple[Grid, Grid]
"""The points of the first feature, and those of the second."""

SurfaceEffect = list[list[float]] | dict[Label, list[list[float]]]
"""One row per point of the first feature; for more than two classes, one such surface per class."""


class Surface:
    """The smoothed effect of two features; its importance is the effects' standard deviation.

    ``categorical`` says whether each feature is: then each category has its own mean, shown while
    it is in the storage; otherwise grid points are identified by rank, and smoothed. ``curve`` has
    the estimates, with flat effects.

    References
    ----------
    iPDP, Algorithm 1, with a set S of two features. The importance is that of a numeric feature
    (Greenwell, Boehmke, McCarthy, 2018), over all points of the surface, whatever the features.
    """

    def __init__(
        self, alpha: float, *, categorical: tuple[bool, bool], debias: bool = True
    ) -> None:
        self.alpha = alpha
        self.debias = debias
        self._categorical = categorical
        self._axes: Axes = ([], [])  # the last points
        self._grids: list[ExponentialMeans] = []  # smoothed points of numeric features
        self.curve: RankCurve | KeyedCurve[tuple[Value, Value]] = (
            KeyedCurve(alpha, deviation_and_slopes, debias=debias)
            if any(categorical)
            else RankCurve(RankCurves(1, alpha, debias=debias))
        )

    def update_table(self, axes: Axes, answers: Table) -> float:
        """Take the surface of one observation and return its importance, the increment.

        The answers are the outputs at each point of the first feature with each of the second, in
        turn. Raises ``ValueError`` or ``TypeError`` if they or the points do not fit; then nothing
        has changed.
        """
        numeric = [axis for axis, c in zip(axes, self._categorical, strict=True) if not c]
        grids = self._grids or [
            ExponentialMeans(len(axis), [self.alpha], debias=self.debias) for axis in numeric
        ]
        for grid, axis in zip(grids, numeric, strict=True):
            check_size(grid.values.shape[1], len(axis))
        check_size(len(axes[0]) * len(axes[1]), len(answers.numbers))  # before they are multiplied
        if isinstance(self.curve, RankCurve):
            increment = self.curve.update_table([*range(len(answers.numbers))], answers)
        else:
            first, second = (
                axis if c else [*range(len(axis))]
                for axis, c in zip(axes, self._categorical, strict=True)
            )
            width = max(len(axes[1 - i]) for i, c in enumerate(self._categorical) if c)
            increment = self.curve.update_table([*product(first, second)], answers, width=width)
        for grid, axis in zip(grids, numeric, strict=True):
            grid.update(np.array([axis], np.float64))
        self._grids, self._axes = grids, axes
        return increment

    @property
    def axes(self) -> Axes:
        """The smoothed grid points, or the categories, of each feature."""
        numeric = iter(self._grids)
        axes: list[Grid] = [
            [*axis] if c or not self._grids else [*next(numeric).values[0].tolist()]
            for axis, c in zip(self._axes, self._categorical, strict=True)
        ]
        return axes[0], axes[1]

    @property
    def effect(self) -> SurfaceEffect:
        """The smoothed effect: one surface, or one per class if there are more than two."""
        effect = self.curve.effect
        items = effect.items() if isinstance(effect, dict) else [(None, effect)]
        return shown_surface(dict(items), len(self._axes[1]))


def shown_surface(effects: Mapping[Label | None, list[float]], width: int) -> SurfaceEffect:
    """Return surfaces in their public form, from flat effects."""
    surfaces = {
        label: [flat[begin : begin + width] for begin in range(0, len(flat), width or 1)]
        for label, flat in effects.items()
    }
    if len(surfaces) > 1:
        return {label: surface for label, surface in surfaces.items() if label is not None}
    return next(iter(surfaces.values()), [])

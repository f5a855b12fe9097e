"""The smoothed effect of two features together: a surface over the grids of both."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from fluxplain.evaluate import Label, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import kernels
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.curve import Grid, check_size
from fluxplain.explain.ranks import RankCurve, RankCurves
from fluxplain.explain.smoothing import ExponentialMeans

Axes = tuple[Grid, Grid]
"""The points of the first feature, and those of the second."""

SurfaceEffect = list[list[float]] | dict[Label, list[list[float]]]
"""One row per point of the first feature; for more than two classes, one such surface per class."""


class Surface:
    """The smoothed effect of two features; its importance is the effects' standard deviation.

    Parameters
    ----------
    alpha
        Smoothing of the effects and of the numeric grid points, in (0, 1].
    categorical
        Whether each feature is categorical: then each category has its own mean, shown while it is
        in the storage; otherwise grid points are identified by rank, and smoothed.
    debias
        Divide by the sum of the smoothing's weights.

    References
    ----------
    iPDP, Algorithm 1, with a set S of two features. The importance is that of a numeric feature
    (Greenwell, Boehmke, McCarthy, 2018), over all points of the surface, whatever the features.

    Examples
    --------
    >>> surface = Surface(0.5, categorical=(False, True))
    >>> answers = Table((None,), np.array([[0.0], [1.0], [2.0], [3.0]]))
    >>> round(surface.update_table(([5.0, 6.0], ["u", "v"]), answers), 4)
    1.291
    >>> surface.axes, surface.effect
    (([5.0, 6.0], ['u', 'v']), [[0.0, 1.0], [2.0, 3.0]])
    """

    def __init__(
        self, alpha: float, *, categorical: tuple[bool, bool], debias: bool = True
    ) -> None:
        self.alpha = alpha
        self.debias = debias
        self._categorical = categorical
        self._axes: Axes = ([], [])  # the last points
        self._grids: list[ExponentialMeans] = []  # smoothed points of numeric features
        self._effects: RankCurve | KeyedCurve[tuple[Value, Value]] = (
            KeyedCurve(alpha, deviation_and_slopes, debias=debias)
            if any(categorical)
            else RankCurve(RankCurves(1, alpha, debias=debias))
        )

    def update_table(self, axes: Axes, answers: Table) -> float:
        """Take the surface of one observation and return its importance, the increment.

        Parameters
        ----------
        axes
            The evaluation points of both features.
        answers
            The outputs at each point of the first feature with each of the second, in turn.

        Raises
        ------
        ValueError, TypeError
            If the points or the outputs do not fit; then nothing has changed.
        """
        numeric = [axis for axis, c in zip(axes, self._categorical, strict=True) if not c]
        grids = self._grids or [
            ExponentialMeans(len(axis), [self.alpha], debias=self.debias) for axis in numeric
        ]
        for grid, axis in zip(grids, numeric, strict=True):
            check_size(grid.values.shape[1], len(axis))
        check_size(len(axes[0]) * len(axes[1]), len(answers.numbers))  # before they are multiplied
        if isinstance(self._effects, RankCurve):
            increment = self._effects.update_table([*range(len(answers.numbers))], answers)
        else:
            first, second = (
                axis if c else [*range(len(axis))]
                for axis, c in zip(axes, self._categorical, strict=True)
            )
            width = max(len(axes[1 - i]) for i, c in enumerate(self._categorical) if c)
            increment = self._effects.update_keys([*product(first, second)], answers, width=width)
        for grid, axis in zip(grids, numeric, strict=True):
            grid.update(np.array([axis], np.float64))
        self._grids, self._axes = grids, axes
        return increment

    @property
    def n(self) -> int:
        """Updates so far."""
        return self._effects.n

    @property
    def value(self) -> float:
        """Importance of the surface; its mean if more than two classes have one each."""
        return self._effects.value

    @property
    def variance(self) -> float:
        """Variance of what one observation contributes to :attr:`value`, to first order."""
        return self._effects.variance

    @property
    def std_error(self) -> float:
        """Standard error of :attr:`value`, by the delta method; infinite before an update."""
        return self._effects.std_error

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
        effect = self._effects.effect
        items = effect.items() if isinstance(effect, dict) else [(None, effect)]
        return shown_surface(dict(items), len(self._axes[1]))


def shown_surface(effects: Mapping[Label | None, list[float]], width: int) -> SurfaceEffect:
    """Return surfaces in their public form, from flat effects.

    Examples
    --------
    >>> shown_surface({None: [1.0, 2.0, 3.0, 4.0]}, 2)
    [[1.0, 2.0], [3.0, 4.0]]
    """
    surfaces = {
        label: [flat[begin : begin + width] for begin in range(0, len(flat), width or 1)]
        for label, flat in effects.items()
    }
    if len(surfaces) > 1:
        return {label: surface for label, surface in surfaces.items() if label is not None}
    return next(iter(surfaces.values()), [])


def deviation_and_slopes(effects: Floats) -> tuple[float, Floats]:
    """Return the standard deviation of some effects, and its derivative by each.

    Examples
    --------
    >>> value, slopes = deviation_and_slopes(np.array([1.0, 0.0, 2.0]))
    >>> value, slopes.tolist()
    (1.0, [0.0, -0.5, 0.5])
    """
    deviation = float(kernels.deviation(effects))
    if deviation == 0.0:
        return 0.0, np.zeros(len(effects))
    distances = effects - effects[0] - kernels.middle(effects)
    return deviation, distances / (deviation * (len(effects) - 1))

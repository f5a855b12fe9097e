"""Smoothed curves of numeric features: points are identified by rank, or stay where they are."""

import math

import numpy as np

from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, Table, aligned
from fluxplain.explain import curve_kernels
from fluxplain.explain.curve import LARGEST, Grid, check_answers, check_size, shown_labels
from fluxplain.explain.curve_estimates import CurveEstimates
from fluxplain.explain.dependence import COLUMNS, DEFAULT_REACH
from fluxplain.explain.point_means import PointMeans
from fluxplain.explain.trends import CurveTrends

MOST_MOTION = 0.25
"""Largest variance of the middle of the evaluation points, relative to the variance between them,
with which the error of an importance is known."""

RANGE = 4.5
"""Error of an importance because the range of a short time is narrower than that of a long one,
relative to the importance times the square of the same ratio of variances; smaller where the
smoothing's window is longer than the reach. Chosen by coverage."""


_MOVE = Direct(curve_kernels.move_curves)


class RankCurves(CurveEstimates):
    """Several curves of one model that move together.

    ``alpha`` smooths the effects and the grid points. With ``point_errors``, the effects have
    standard errors. With ``anchored``, grid and effects are those of
    :class:`~fluxplain.explain.point_means.PointMeans`, for evaluation points on a lattice; the
    importance always is that of the effects by rank. ``trends`` may be those of earlier curves.

    References
    ----------
    iPDP, Algorithm 1, lines 5 to 10.
    """

    def __init__(
        self,
        count: int,
        alpha: float,
        *,
        debias: bool = True,
        reach: int = DEFAULT_REACH,
        point_errors: bool = True,
        anchored: bool = False,
        trends: CurveTrends | None = None,
    ) -> None:
        super().__init__(count, alpha, debias=debias, reach=reach)
        self._means = PointMeans(count, self.alpha, reach=reach) if anchored else None
        point_errors = point_errors and not anchored
        self._grid = np.zeros((count, 0))
        self._effects = np.zeros((count, 0, 0))
        self._followed_points = np.zeros((count if point_errors else 0, 0, 0, COLUMNS))
        self._trends = trends
        self._labels: Labels = ()
        self._known: list[Labels] = [()] * count
        self._shown: Places = np.full((count, 0), -1)
        self._is_settled = False  # whether every curve knows every label

    def move(self, which: Places, points: Floats, answers: Table) -> Floats:
        """Take ICE curves, of several curves or several observations.

        Return their importances and, if there are any, their trends, shape (1 or 2, moving).
        ``which`` are the curves that they move, in order, ``points`` their evaluation points, shape
        (moving, points), and the answers the outputs there, one curve after the other. Raises
        ``ValueError`` or ``TypeError`` if they do not fit; then no curve has moved.
        """
        labels, numbers, _ = answers
        size = self._grid.shape[1] or points.shape[1]
        if points.shape[1] != size or len(numbers) != points.size:
            check_size(size, len(numbers) // len(which), points.shape[1])
        if not self._is_settled or labels != self._labels:
            check_answers(self._labels, answers)
            self._learn(which, labels, size)
            numbers = aligned(answers, self._labels)
        found = np.empty((1 if self._trends is None else 2, len(which)))
        if not _MOVE.call(
            which,
            points,
            numbers,
            LARGEST,
            self._shown,
            self.alpha,
            self.debias,
            self.reach,
            self._grid,
            self._effects,
            self._kept,
            self._followed,
            self._followed_points,
            self.n,
            found[0],
        ):
            check_answers(self._labels, answers)
        if self._means is not None:
            self._means.move(which, points, numbers)
        if self._trends is not None:
            found[1] = self._trends.take(which, points, numbers, self._labels, self._shown)
        return found

    def std_error(self, curve: int) -> float:
        """Return the standard error of one curve's importance.

        It is infinite, too, if the evaluation points move by about their own range: the importance
        is that over a short time's range, which may be far from that of a longer time. If they move
        less, the error includes the :meth:`smearing`, and how uncertain the range is.
        """
        error, square = super().std_error(curve), curve_kernels.deviation(self._grid[curve]) ** 2
        motion = self._kept[curve, curve_kernels.MOTION].item()
        if not motion or math.isinf(error):
            return error
        if not motion < MOST_MOTION * square:
            return math.inf
        share = RANGE * (motion / square) ** 2 * min(self.reach * self.alpha, 1.0)
        range_error = share * self.values.item(curve)
        return math.hypot(error, self.smearing(curve), range_error)

    def smearing(self, curve: int) -> float:
        """Return how much smaller the importance is because the effects by rank are smeared.

        Points of one rank lie at different values while the grid moves, and their mean flattens
        steps. Anchored means keep them, so the difference between both at the smoothed grid is the
        bias. It is 0 for a line, and where there are no anchored means.
        """
        if self._means is None:
            return 0.0
        sharp = self._means.between(curve, self._grid[curve], self._shown_places(curve))
        deviations = np.array([curve_kernels.deviation(effect) for effect in sharp])
        return float(curve_kernels.mean_of(deviations)) - self.values.item(curve)

    def grid(self, curve: int) -> Grid:
        """Return the grid points of one curve; none before its first update."""
        if not self.n[curve]:
            return []
        means = self._means
        grid: Grid = (self._grid[curve] if means is None else means.grid(curve)).tolist()
        return grid

    def effects(self, curve: int) -> tuple[Labels, Floats]:
        """Return the shown classes of one curve, and their effects, shape (classes, points)."""
        shown, means = self._shown_places(curve), self._means
        if means is None:
            columns = [self._effects[curve, :, place] for place in shown]
        else:
            factor = 1.0 if self.debias else self._kept[curve, curve_kernels.WEIGHT]
            columns = [factor * means.effects(curve, place) for place in shown]
        return tuple(self._labels[place] for place in shown), np.array(columns)

    def effect_errors(self, curve: int) -> Floats:
        """Return the standard errors of these effects; infinite while too little is known."""
        if self._means is not None:
            return np.array([self._means.errors(curve, c) for c in self._shown_places(curve)])
        squares, n = np.full(self._grid.shape[1], self._squares(curve)), self.n.item(curve)
        counts = np.full(self._grid.shape[1], n)
        followed = self._followed_points[curve]
        errors = [
            curve_kernels.point_errors(followed[:, c], counts, squares, self.alpha, self.reach)
            for c in self._shown_places(curve)
        ]
        return np.array(errors)

    def _shown_places(self, curve: int) -> list[int]:
        return [place for place in self._shown[curve].tolist() if place >= 0]

    def _learn(self, which: Places, labels: Labels, size: int) -> None:
        """Add new classes."""
        if self._grid.shape[1] != size:
            self._grid = np.zeros((len(self.n), size))
            classes = len(self._labels)
            self._effects = np.zeros((len(self.n), size, classes))
            errors = len(self._followed_points), size, classes, COLUMNS
            self._followed_points = np.zeros(errors)
        new = [label for label in labels if label not in self._labels]
        if new:
            self._labels = (*self._labels, *new)
            grown = ((0, 0), (0, 0), (0, len(new)))
            self._effects = np.pad(self._effects, grown)
            self._followed_points = np.pad(self._followed_points, (*grown, (0, 0)))
            self._shown = np.pad(self._shown, grown[1:], constant_values=-1)
        columns = {label: place for place, label in enumerate(self._labels)}
        for curve in which.tolist():
            known = tuple(dict.fromkeys((*self._known[curve], *labels)))
            if known != self._known[curve]:
                self._known[curve] = known
                shown = [columns[label] for label in shown_labels(known)]
                self._shown[curve] = -1
                self._shown[curve, : len(shown)] = shown
        self._is_settled = all(len(known) == len(columns) for known in self._known)

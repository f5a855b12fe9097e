"""Evaluation points that stay where they are while a feature's range moves."""

import numpy as np

from fluxplain.evaluate.compiled import Direct, compiled
from fluxplain.evaluate.encoding import Floats, Places

INITIAL, LEAST, MOST = 2.0, 1.0, 3.0
"""Steps of a lattice between two evaluation points: at first, and the smallest and largest number.

From ``LEAST`` on, no two points are rounded to the same one, but at an end. The step changes by a
factor of two where the number leaves these limits, so that the range must then change by a third to
change it again."""

ROUNDING = 1e-6
"""Part of a step by which a point may lie outside of the range, by rounding errors."""

FARTHEST = 2.0**52
"""Number of steps from the origin beyond which points are nearer together than numbers are there.
They stay as they are."""


@compiled
def snap(  # noqa: PLR0917  compiled functions take arrays
    points: Floats,
    extremes: Floats,
    counts: Places,
    needed: int,
    origins: Floats,
    steps: Floats,
    former: Floats,
) -> None:
    """Round equidistant points of features, shape (features, points), to their lattices.

    A lattice has the points ``origin + k · step`` for whole numbers k. Its origin is the first
    point that is given, its step a power of two times a part of the first distance between points.
    So the first points stay as they are, and a lattice of another step has half or twice the points
    of the former. No point leaves the range between a feature's ``extremes``, shape (features, 2),
    except by rounding errors. Points without a distance, or of a feature that has less than
    ``needed`` numbers by its ``counts``, stay as they are.

    Where it is possible, the points share one with the ``former`` ones, which they replace: without
    a common point, a change of the outputs could not be told from a change of the points.
    """
    n = points.shape[1]
    for i in range(points.shape[0]):
        gap = (points[i, n - 1] - points[i, 0]) / (n - 1)
        if counts[i] < needed or not 0.0 < gap < np.inf:
            continue
        low, high = extremes[i, 0], extremes[i, 1]
        is_first = steps[i] == 0.0
        if is_first:
            origins[i], steps[i] = points[i, 0], gap / INITIAL
        steps[i] = adapted(steps[i], gap)
        if steps[i] == 0.0:  # too small a number
            continue
        for k in range(n):
            place = np.floor((points[i, k] - origins[i]) / steps[i] + 0.5)
            if not abs(place) < FARTHEST:
                continue
            if origins[i] + (place - ROUNDING) * steps[i] > high:
                place -= 1.0
            elif origins[i] + (place + ROUNDING) * steps[i] < low:
                place += 1.0
            rounded = origins[i] + place * steps[i]
            # at an end it may be its neighbour
            if k == 0 or rounded > points[i, k - 1]:
                points[i, k] = rounded
        if not is_first and not have_common(points[i], former[i]):
            take_nearest(points[i], former[i], gap)
        former[i] = points[i]


@compiled
def adapted(step: float, gap: float) -> float:
    """Return the step, or a power of two times it, that is neither too small nor too large."""
    while 0.0 < MOST * step <= gap:
        step *= 2.0
    while gap < LEAST * step:
        step *= 0.5
    return step


@compiled
def have_common(one: Floats, other: Floats) -> bool:
    """Return whether increasing numbers have one in common with others."""
    i, j = 0, 0
    while i < one.shape[0] and j < other.shape[0]:
        if one[i] == other[j]:
            return True
        if one[i] < other[j]:
            i += 1
        else:
            j += 1
    return False


@compiled
def take_nearest(points: Floats, former: Floats, gap: float) -> None:
    """Replace every second one of increasing points by the nearest former one, if that is near."""
    for k in range(0, points.shape[0], 2):
        nearest = former[np.abs(former - points[k]).argmin()]
        is_above = k == 0 or nearest > points[k - 1]
        is_below = k == points.shape[0] - 1 or nearest < points[k + 1]
        if abs(nearest - points[k]) < gap and is_above and is_below:
            points[k] = nearest


_SNAP = Direct(snap)


class Lattices:
    """The lattices of several features with ``size`` points, which :func:`snap` makes and adapts.

    Examples
    --------
    >>> lattices = Lattices(1, 4)
    >>> for low in (0.0, 0.2, 0.3, 0.4):
    ...     points = low + np.arange(4.0)[None] * (1.0 + low / 3.0)
    ...     lattices.snap(points, np.array([[low, 9.0]]), np.array([2]), 1)
    ...     print(points.tolist())
    [[0.0, 1.0, 2.0, 3.0]]
    [[0.0, 1.5, 2.0, 3.5]]
    [[0.5, 1.5, 2.5, 3.5]]
    [[0.5, 1.5, 2.5, 4.0]]
    """

    def __init__(self, count: int, size: int) -> None:
        self.origins = np.zeros(count)
        self.steps = np.zeros(count)
        self.former = np.zeros((count, size))

    def snap(self, points: Floats, extremes: Floats, counts: Places, needed: int) -> None:
        """Round the points to the lattices."""
        _SNAP.call(points, extremes, counts, needed, self.origins, self.steps, self.former)

    def take_over(self, place: int, other: "Lattices", theirs: int) -> None:
        """Take over the lattice of one feature."""
        for name in ("origins", "steps", "former"):
            getattr(self, name)[place] = getattr(other, name)[theirs]

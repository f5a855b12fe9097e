"""The mean outputs at the evaluation points of numeric features, which stay where they are."""

import math
from collections.abc import Sequence

import numpy as np

from fluxplain.evaluate.compiled import Direct, compiled
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.explain.dependence import CENTRE, COLUMNS, OWN, follow, rates, standard_error

PLACES = 4
"""Points of a curve to keep for each evaluation point of an observation. A range has up to three;
the others are those that the range has left."""

FEWEST = 10
"""Visits that a point needs before it is published; fewer early in the stream."""

MOST_NUMBERS = 5_000
"""Most outputs of all points and classes to publish of a curve, unless an observation has more."""

MOST_OFTEN = 4.0
"""Upper limit of observations per visit of a point."""

REST_RATE = 0.2
"""Largest weight of the newest squared rest; a new point starts with its neighbour's mean."""

POINT, VISITED, VISITED_SQUARES, WEIGHT, SQUARES = range(5)
"""Columns of a point's numbers: its value; the sums of the weights, and of their squares, of the
observations evaluated there; and those of all observations in its level, which it shares with the
other points. Weights decrease with each later observation."""

LAST, VISITS, AGE, COUNT = range(4)
"""Columns of a point's counts: the number of the newest observation evaluated there, 0 for a free
place; how many were evaluated there; how many there were since the first of them; and how many are
in its level."""

REST = COLUMNS
"""Column of what is followed: the mean square of a point's rests, see :func:`move_places`."""


@compiled
def fade(numbers: Floats, counts: Places, n: int, alpha: float, reach: int) -> None:
    """Decrease the weights of a curve's points, and free the places of those left for long."""
    keep = 1.0 - alpha
    for place in range(numbers.shape[0]):
        if counts[place, LAST] > 0:
            numbers[place, VISITED] *= keep
            numbers[place, VISITED_SQUARES] *= keep * keep
            numbers[place, WEIGHT] *= keep
            numbers[place, SQUARES] *= keep * keep
            if n - counts[place, LAST] > reach:
                counts[place, LAST] = 0


@compiled
def place_of(numbers: Floats, counts: Places, point: float, start: int, n: int) -> int:
    """Return the place of a point, sought from ``start`` on, or another place that it may take.

    That is a free one, or that of the point with the smallest weight. ``n`` is the number of the
    observation; points that are evaluated at it keep their places.
    """
    size, found, least = len(numbers), 0, np.inf
    for j in range(size):
        place = start + j if start + j < size else start + j - size
        if counts[place, LAST] == 0:
            if least >= 0.0:
                found, least = place, -1.0
        elif numbers[place, POINT] == point:
            return place
        elif counts[place, LAST] < n and numbers[place, VISITED] < least:
            found, least = place, numbers[place, VISITED]
    return found


@compiled
def find_places(  # noqa: PLR0917  compiled functions take arrays
    numbers: Floats, counts: Places, points: Floats, n: int, hints: Places, places: Places
) -> None:
    """Fill in the place of each of an observation's points; -1 for one that is there twice.

    A new point has no visits. ``hints`` are the places of the former observation's points, where
    they are sought first, and become those of this one's.
    """
    for k in range(points.shape[0]):
        place = place_of(numbers, counts, points[k], hints[k], n)
        places[k], hints[k] = place, place
        if counts[place, LAST] == 0 or numbers[place, POINT] != points[k]:
            numbers[place], counts[place] = 0.0, 0
            numbers[place, POINT] = points[k]
        elif counts[place, LAST] == n:
            places[k] = -1
        counts[place, LAST] = n


@compiled
def move_points(  # noqa: PLR0917  compiled functions take arrays
    which: Places,
    points: Floats,
    outputs: Floats,
    alpha: float,
    reach: int,
    n: Places,
    hints: Places,
    numbers: Floats,
    counts: Places,
    effects: Floats,
    followed: Floats,
) -> None:
    """Move the mean outputs at the points of curves.

    ``which`` are the curves that move, one after the other, ``points`` their evaluation points,
    shape (moving, points), and ``outputs`` those there, shape (moving · points, classes). What
    moves are ``n``, how often each curve has moved, and ``hints`` (curves, points); and, at the
    place of each point, its ``numbers`` (curves, places, 5), ``counts`` (curves, places, 4),
    ``effects`` (curves, places, classes), and what their standard errors need, ``followed``
    (curves, places, classes, 7).
    """
    size = points.shape[1]
    places, shifts = np.empty(size, np.intp), np.empty(effects.shape[2])
    for i in range(which.shape[0]):
        curve = which[i]
        n[curve] += 1
        fade(numbers[curve], counts[curve], n[curve], alpha, reach)
        find_places(numbers[curve], counts[curve], points[i], n[curve], hints[curve], places)
        move_places(
            places,
            outputs[i * size : (i + 1) * size],
            alpha,
            reach,
            n[curve],
            numbers[curve],
            counts[curve],
            effects[curve],
            followed[curve],
            shifts,
        )


@compiled
def move_places(  # noqa: PLR0917  compiled functions take arrays
    places: Places,
    outputs: Floats,
    alpha: float,
    reach: int,
    n: int,
    numbers: Floats,
    counts: Places,
    effects: Floats,
    followed: Floats,
    shifts: Floats,
) -> None:
    """Move the means of one curve by the n-th observation, whose points have these places.

    An output is the mean at its point, a shift that is the same at all points, and a rest. The
    shift moves the means of all points, as if they had been evaluated, too; the rest moves that of
    its own point. A new point has no rest.
    """
    classes, span = effects.shape[1], min(1.0 / alpha, reach)
    known, centre, product = 0, 0.0, 0.0
    level = alpha + shifts_of(places, outputs, numbers, counts, effects, shifts)
    for k in range(places.shape[0]):
        if places[k] >= 0 and counts[places[k], VISITS] == 0:
            for c in range(classes):
                effects[places[k], c] = outputs[k, c] - shifts[c]
            inherit(places[k], nearest(places, k, counts), numbers, counts, effects, followed)
    for k in range(places.shape[0]):
        place = places[k]
        if place < 0:
            continue
        is_new = counts[place, VISITS] == 0
        numbers[place, VISITED] += alpha
        numbers[place, VISITED_SQUARES] += alpha * alpha
        counts[place, VISITS] += 1
        alone = alpha / numbers[place, VISITED]
        count_in(numbers[place], counts[place], alpha)
        if counts[place, COUNT] != known:  # most points have the same
            known = counts[place, COUNT]
            centre, product = rates(reach, known)
        share = share_of(counts[place])
        for c in range(classes):
            rest = 0.0 if is_new else outputs[k, c] - effects[place, c] - shifts[c]
            square = followed[place, c, REST]
            if not is_new:
                followed[place, c, REST] += min(alone, REST_RATE) * (rest * rest - square)
            value = effects[place, c] + shifts[c] + share * rest
            effects[place, c] += alpha / level * shifts[c] + alone * rest
            follow(followed[place, c], value, span, centre, product)
    for place in range(numbers.shape[0]):
        if 0 < counts[place, LAST] < n:
            count_in(numbers[place], counts[place], alpha)
            if counts[place, COUNT] != known:
                known = counts[place, COUNT]
                centre, product = rates(reach, known)
            for c in range(classes):
                value = effects[place, c] + shifts[c]
                effects[place, c] += alpha / level * shifts[c]
                follow(followed[place, c], value, span, centre, product)


@compiled
def shifts_of(  # noqa: PLR0917  compiled functions take arrays
    places: Places,
    outputs: Floats,
    numbers: Floats,
    counts: Places,
    effects: Floats,
    shifts: Floats,
) -> float:
    """Fill in how far outputs lie above the means, by class; return the weight of these means.

    Both are averages over the points that are not new, by the weights of their observations.
    """
    total, level = 0.0, 0.0
    shifts[:] = 0.0
    for k in range(places.shape[0]):
        if places[k] >= 0 and counts[places[k], VISITS] > 0:
            weight = numbers[places[k], VISITED]
            total += weight
            level += weight * numbers[places[k], WEIGHT]
            for c in range(shifts.shape[0]):
                shifts[c] += weight * (outputs[k, c] - effects[places[k], c])
    if total <= 0.0:
        shifts[:] = 0.0
        return 0.0
    for c in range(shifts.shape[0]):
        shifts[c] /= total
    return level / total


@compiled
def nearest(places: Places, k: int, counts: Places) -> int:
    """Return the place of the point nearest to the k-th that is not new; -1 if all are new."""
    size = places.shape[0]
    for distance in range(1, size):
        for j in (k - distance, k + distance):
            if 0 <= j < size and places[j] >= 0 and counts[places[j], VISITS] > 0:
                return int(places[j])
    return -1


@compiled
def inherit(  # noqa: PLR0917  compiled functions take arrays
    place: int,
    neighbour: int,
    numbers: Floats,
    counts: Places,
    effects: Floats,
    followed: Floats,
) -> None:
    """Give a new point the level of its neighbour, with its standard error; nothing for -1."""
    followed[place] = 0.0
    if neighbour >= 0:
        numbers[place, WEIGHT] = numbers[neighbour, WEIGHT]
        numbers[place, SQUARES] = numbers[neighbour, SQUARES]
        counts[place, COUNT] = counts[neighbour, COUNT]
        followed[place] = followed[neighbour]
        for c in range(effects.shape[1]):
            followed[place, c, CENTRE] += effects[place, c] - effects[neighbour, c]


@compiled
def count_in(numbers: Floats, counts: Places, alpha: float) -> None:
    """Count an observation in the level of a point."""
    numbers[WEIGHT] += alpha
    numbers[SQUARES] += alpha * alpha
    counts[AGE] += 1
    counts[COUNT] += 1


@compiled
def share_of(counts: Places) -> float:
    """Return how many observations there are for one that is evaluated at a point."""
    share: float = min(counts[AGE] / counts[VISITS], MOST_OFTEN)
    return share


@compiled
def sorted_places(numbers: Floats, counts: Places, n: int, window: float, reach: int) -> Places:
    """Return the places of a curve's points to publish; see :meth:`PointMeans.places`."""
    found, known = np.empty(counts.shape[0], np.intp), 0
    recent, fewest = min(window, reach), min(FEWEST, n / 4.0, window)
    for place in range(counts.shape[0]):
        last = counts[place, LAST]
        if last > 0 and n - last < recent and counts[place, VISITS] >= fewest:
            found[known] = place
            known += 1
    if known < 2:
        known = 0
        for place in range(counts.shape[0]):
            if counts[place, LAST] == n:
                found[known] = place
                known += 1
    places = found[:known]
    points = np.empty(known)
    for k in range(known):
        points[k] = numbers[places[k], POINT]
    return places[np.argsort(points, kind="mergesort")]  # which is stable


@compiled
def mean_errors(
    followed: Floats, numbers: Floats, counts: Places, alpha: float, reach: int
) -> Floats:
    """Return the standard errors of the means of points, for one class.

    A young point's rest has larger weights than its level; that is added.
    """
    errors = np.empty(followed.shape[0])
    for k in range(followed.shape[0]):
        squares = numbers[k, SQUARES] / numbers[k, WEIGHT] ** 2
        own = numbers[k, VISITED_SQUARES] / numbers[k, VISITED] ** 2
        errors[k] = standard_error(followed[k], counts[k, COUNT], alpha, reach, squares, 0.0)
        more = own - share_of(counts[k]) * squares
        if more > 0.0 and followed[k, OWN] > 0.0 and errors[k] < np.inf:
            inflation = errors[k] ** 2 / (followed[k, OWN] * squares)
            errors[k] = math.sqrt(errors[k] ** 2 + followed[k, REST] * inflation * more)
    return errors


_MOVE = Direct(move_points)


def most_points(size: int, classes: int) -> int:
    """Return how many points a curve has at most, for ``size`` evaluation points.

    Examples
    --------
    >>> most_points(10, 2), most_points(10, 200), most_points(10, 2000)
    (40, 25, 10)
    """
    return max(size, min(PLACES * size, MOST_NUMBERS // max(classes, 1)))


class PointMeans:
    """The mean output at each point of several curves.

    An observation's weight in a mean decreases by the factor 1 - alpha with each later observation.
    Few points are evaluated at each observation. Where they lie above or below the means so far,
    all points are taken to lie there, so that the curve keeps its shape. See
    :func:`move_places`. Where a model does not change, and other features have no influence, the
    mean is the model's output, however the evaluation points move.

    ``reach`` is how many updates observations may depend on each other. A curve keeps
    :data:`PLACES` points for each evaluation point of an observation: those with the largest
    weights.
    """

    def __init__(self, count: int, alpha: float, *, reach: int) -> None:
        self.alpha, self.reach = alpha, reach
        self._n = np.zeros(count, np.intp)
        self._hints = np.zeros((count, 0), np.intp)
        self._numbers = np.zeros((count, 0, 5))
        self._counts = np.zeros((count, 0, 4), np.intp)
        self._effects = np.zeros((count, 0, 0))
        self._followed = np.zeros((count, 0, 0, COLUMNS + 1))
        self._found: dict[int, tuple[int, Places]] = {}  # curve → places after so many moves

    def move(self, which: Places, points: Floats, outputs: Floats) -> None:
        """Take the ICE curves of observations; :func:`move_points` has the shapes."""
        self._grow(points.shape[1], outputs.shape[1])
        _MOVE.call(
            which,
            points,
            outputs,
            self.alpha,
            self.reach,
            self._n,
            self._hints,
            self._numbers,
            self._counts,
            self._effects,
            self._followed,
        )

    def _grow(self, points: int, classes: int) -> None:
        """Add places, and new classes, whose outputs were 0."""
        if points == self._hints.shape[1] and classes == self._effects.shape[2]:
            return
        places = max(most_points(points, classes) - self._numbers.shape[1], 0)
        more = points - self._hints.shape[1], places, classes - self._effects.shape[2]
        pads = (0, 0), (0, places), (0, more[2])
        self._numbers = np.pad(self._numbers, (*pads[:2], (0, 0)))
        self._counts = np.pad(self._counts, (*pads[:2], (0, 0)))
        self._hints = np.pad(self._hints, ((0, 0), (0, more[0])))
        self._effects = np.pad(self._effects, pads)
        self._followed = np.pad(self._followed, (*pads, (0, 0)))

    def places(self, curve: int) -> Places:
        """Return the places of a curve's points in increasing order.

        They are those at which recent observations were evaluated, within the reach and the
        smoothing's window, unless these are few.
        """
        n, known = self._n.item(curve), self._found.get(curve)
        if known is None or known[0] != n:
            known = self._found[curve] = n, self._sorted_places(curve)
        return known[1]

    def _sorted_places(self, curve: int) -> Places:
        n, window = self._n.item(curve), 1.0 / self.alpha
        places = sorted_places(self._numbers[curve], self._counts[curve], n, window, self.reach)
        most = most_points(self._hints.shape[1], self._effects.shape[2])
        if len(places) > most:
            places = places[np.linspace(0, len(places) - 1, most).astype(np.intp)]
        return places

    def grid(self, curve: int) -> Floats:
        """Return the points of a curve."""
        grid: Floats = self._numbers[curve, self.places(curve), POINT]
        return grid

    def effects(self, curve: int, label: int) -> Floats:
        """Return the mean outputs for a class at the points of a curve."""
        effects: Floats = self._effects[curve, self.places(curve), label]
        return effects

    def between(self, curve: int, points: Floats, labels: Sequence[int]) -> Floats:
        """Return the effects at any points, interpolated linearly, shape (labels, points)."""
        places = self.places(curve)
        grid, effects = self._numbers[curve, places, POINT], self._effects[curve, places]
        return np.array([np.interp(points, grid, effects[:, label]) for label in labels])

    def errors(self, curve: int, label: int) -> Floats:
        """Return the standard errors of these means; infinite while too little is known."""
        places = self.places(curve)
        errors: Floats = mean_errors(
            np.ascontiguousarray(self._followed[curve, places, label]),
            self._numbers[curve, places],
            self._counts[curve, places],
            self.alpha,
            self.reach,
        )
        return errors

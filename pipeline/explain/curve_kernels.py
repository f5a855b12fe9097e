"""Inner loops of curves: importances, and how they move; see :mod:`.kernels`."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.explain.dependence import CENTRE, follow, rates, standard_error
from fluxplain.explain.kernels import advanced, are_moderate, moved


@compiled
def middle(values: Floats) -> float:
    """Return the mean's distance from the first value: exactly 0 if all are equal."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] - values[0]
    return total / len(values)


@compiled
def mean_of(values: Floats) -> float:
    """Return the mean, exact if all values are equal; 0 without values."""
    return values[0] + middle(values) if len(values) > 0 else 0.0


@compiled
def deviation(curve: Floats) -> float:
    """Return the standard deviation of the values, exactly 0 if all are equal."""
    n = len(curve)
    if n < 2:
        return 0.0
    mean, total = middle(curve), 0.0
    for i in range(n):
        distance = curve[i] - curve[0] - mean
        total += distance * distance
    return math.sqrt(total / (n - 1))


@compiled
def projection(curve: Floats, ice: Floats) -> float:
    """Return the product of the derivatives of a curve's deviation, by its points, with ``ice``."""
    scale = deviation(curve) * (len(curve) - 1)
    total = 0.0
    if scale > 0.0:
        mean = middle(curve)
        for i in range(len(curve)):
            total += (curve[i] - curve[0] - mean) / scale * ice[i]
    return total


@compiled
def quarter_range(curve: Floats) -> float:
    """Return a quarter of the range of a curve; 0 without points."""
    if len(curve) == 0:
        return 0.0
    return float(curve.max() - curve.min()) / 4.0


@compiled
def range_projection(curve: Floats, ice: Floats) -> float:
    """Return the product of the quarter range's derivatives, by the points, with ``ice``."""
    if len(curve) == 0:
        return 0.0
    high, low = curve.argmax(), curve.argmin()
    return float(ice[high] - ice[low]) / 4.0 if curve[high] > curve[low] else 0.0


@compiled
def ice_importance(ice: Floats, shown: Places, by_range: bool) -> float:
    """Return the importance of one observation's outputs, shape (points, classes).

    The mean over the shown classes, up to the first -1: of a quarter of the range with
    ``by_range``, else of the standard deviation.
    """
    sizes, m = np.empty(shown.shape[0]), 0
    while m < shown.shape[0] and shown[m] >= 0:
        own = ice[:, shown[m]]
        sizes[m] = quarter_range(own) if by_range else deviation(own)
        m += 1
    return mean_of(sizes[:m])


WEIGHT, SQUARES, VALUE, PROJECTION, VARIANCE, MOTION = range(6)
"""Columns of a curve's state: the sum of its smoothing's weights and of their squares, its
importance, the exponential mean of its projections with its variance, and the variance of the
middle of its evaluation points."""


@compiled
def keep(  # noqa: PLR0917  compiled functions take numbers
    kept: Floats,
    followed: Floats,
    alpha: float,
    reach: int,
    n: int,
    value: float,
    projection: float,
) -> None:
    """Move the state of a curve by its importance and the n-th projection of an ICE curve.

    ``kept`` has the shape (6,), as ``followed``, for the standard error. The mean of
    the projections is debiased always.
    """
    kept[WEIGHT], kept[SQUARES] = advanced(kept[WEIGHT], kept[SQUARES], alpha)
    kept[VALUE] = value
    kept[PROJECTION], kept[VARIANCE] = moved(
        kept[PROJECTION], kept[VARIANCE], alpha / kept[WEIGHT], projection
    )
    centre, product = rates(reach, n)
    follow(followed, projection, min(1.0 / alpha, reach), centre, product)


@compiled
def slope(grid: Floats, effect: Floats, k: int) -> float:
    """Return a curve's slope at a point, from its neighbours; 0 where the grid has no width."""
    low, high = max(k - 1, 0), min(k + 1, grid.shape[0] - 1)
    width = grid[high] - grid[low]
    return (effect[high] - effect[low]) / width if width > 0.0 else 0.0


@compiled
def follow_points(  # noqa: PLR0917  compiled functions take arrays
    followed: Floats,
    grid: Floats,
    effect: Floats,
    gaps: Floats,
    own: Floats,
    w: float,
    n: int,
    alpha: float,
    reach: int,
) -> None:
    """Take an ICE curve into what the standard errors of a curve's points need.

    ``followed`` has the shape (points, 6). ``grid`` and ``effect`` are the curve after its n-th
    move, of the weight ``w``; ``own`` is the ICE curve, and ``gaps`` are how far its points are
    from the former grid.

    An effect is that at the smoothed grid point. Both the output beside it, and the mean of the
    former ones, count as if the curve were a line up to there, but not beyond the curve's range:
    else the grid's motion would look like an error of the effect.
    """
    span, most = min(1.0 / alpha, reach), effect.max() - effect.min()
    centre, product = rates(reach, n)
    for k in range(effect.shape[0]):
        along = slope(grid, effect, k) * gaps[k]
        along = 0.0 if math.isnan(along) else min(max(along, -most), most)
        followed[k, CENTRE] += w * along
        follow(followed[k], own[k] - (1.0 - w) * along, span, centre, product)


@compiled
def point_errors(followed: Floats, n: Places, squares: Floats, alpha: float, reach: int) -> Floats:
    """Return the standard error of each point of an effect; see :func:`standard_error`.

    ``followed`` has the shape (points, 6), and ``n`` says how often each point has moved.
    """
    errors = np.empty(followed.shape[0])
    for k in range(followed.shape[0]):
        errors[k] = standard_error(followed[k], n[k], alpha, reach, squares[k], 0.0)
    return errors


@compiled
def move_curves(  # noqa: PLR0917  compiled functions take arrays
    which: Places,
    points: Floats,
    outputs: Floats,
    largest: float,
    shown: Places,
    alpha: float,
    debias: bool,
    reach: int,
    grid: Floats,
    effects: Floats,
    kept: Floats,
    followed: Floats,
    followed_points: Floats,
    n: Places,
    found: Floats,
) -> bool:
    """Move curves towards the ICE curves of observations (iPDP, Algorithm 1, lines 5 to 10).

    ``which`` are the curves that move, one after the other, to their evaluation points, shape
    (moving, points), and the outputs there, shape (moving · points, classes). Return whether no
    output is larger than ``largest``; if not, nothing has changed.

    ``shown`` has the classes of each curve that count, then -1. What moves are ``grid`` (curves,
    points), ``effects`` (curves, points, classes), ``kept`` and ``followed`` (curves, 6),
    and ``n``, how often each has moved; and ``followed_points`` (curves, points, classes, 6), for
    the standard errors of the effects, unless there are 0 curves in it. ``found`` takes the
    importance of each ICE curve.
    """
    if not are_moderate(outputs, largest):
        return False
    ice = outputs.reshape((points.shape[0], points.shape[1], outputs.shape[1]))
    classes = effects.shape[2]
    per_class, gaps = np.empty((2, classes)), np.empty(points.shape[1])
    for i in range(which.shape[0]):
        curve = which[i]
        w = alpha / advanced(kept[curve, WEIGHT], 0.0, alpha)[0] if debias else alpha
        for k in range(points.shape[1]):
            gaps[k] = points[i, k] - grid[curve, k]
            grid[curve, k] += w * gaps[k]
            for c in range(classes):
                effects[curve, k, c] += w * (ice[i, k, c] - effects[curve, k, c])
        m = 0
        while m < classes and shown[curve, m] >= 0:
            effect, own = effects[curve, :, shown[curve, m]], ice[i, :, shown[curve, m]]
            per_class[0, m] = deviation(effect)
            per_class[1, m] = projection(effect, own)
            m += 1
        n[curve] += 1
        # without debiasing the mean starts at 0, far from the points
        motion = (1.0 - w) * mean_of(gaps) ** 2 if debias else 0.0
        kept[curve, MOTION] += rates(reach, n[curve])[1] * (motion - kept[curve, MOTION])
        if followed_points.shape[0] > 0:
            for c in range(classes):
                follow_points(
                    followed_points[curve, :, c],
                    grid[curve],
                    effects[curve, :, c],
                    gaps,
                    ice[i, :, c],
                    w,
                    n[curve],
                    alpha,
                    reach,
                )
        value, projected = mean_of(per_class[0, :m]), mean_of(per_class[1, :m])
        keep(kept[curve], followed[curve], alpha, reach, n[curve], value, projected)
        found[i] = ice_importance(ice[i], shown[curve], False)
    return True


@compiled
def move_keyed(  # noqa: PLR0917  compiled functions take arrays
    rows: Places,
    ice: Floats,
    largest: float,
    shown: Places,
    alpha: float,
    debias: bool,
    reach: int,
    by_range: bool,
    weights: Floats,
    squares: Floats,
    counts: Places,
    effects: Floats,
    kept: Floats,
    followed: Floats,
    followed_points: Floats,
    n: int,
) -> float:
    """Move the means of some keys towards one observation's outputs.

    Return the outputs' importance: a quarter of the range with ``by_range``, else the deviation;
    NaN if an output is larger than ``largest``: then nothing has changed.

    ``rows`` are the keys' places among the ``effects``, shape (places, classes), among the sums of
    the smoothing's ``weights`` and of their ``squares``, among the ``counts`` of their outputs, and
    in ``followed_points`` (places, classes, 6), for the standard errors of the effects, unless it
    has 0 places. ``ice`` has the outputs, shape (keys, classes), and ``shown`` the classes that
    count; it is the n-th observation.
    """
    if not are_moderate(ice, largest):
        return math.nan
    for i in range(rows.shape[0]):
        row = rows[i]
        weights[row], squares[row] = advanced(weights[row], squares[row], alpha)
        counts[row] += 1
        w = alpha / weights[row] if debias else alpha
        for c in range(ice.shape[1]):
            effects[row, c] += w * (ice[i, c] - effects[row, c])
        if followed_points.shape[0] > 0:
            centre, product = rates(reach, counts[row])
            for c in range(ice.shape[1]):
                follow(followed_points[row, c], ice[i, c], min(1.0 / alpha, reach), centre, product)
    per_class = np.empty((2, shown.shape[0]))
    effect, own = np.empty((2, rows.shape[0]))
    for m in range(shown.shape[0]):
        for i in range(rows.shape[0]):
            effect[i], own[i] = effects[rows[i], shown[m]], ice[i, shown[m]]
        if by_range:
            per_class[0, m] = quarter_range(effect)
            per_class[1, m] = range_projection(effect, own)
        else:
            per_class[0, m] = deviation(effect)
            per_class[1, m] = projection(effect, own)
    keep(kept, followed, alpha, reach, n, mean_of(per_class[0]), mean_of(per_class[1]))
    return ice_importance(ice, shown, by_range)

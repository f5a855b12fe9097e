"""Inner loops of trends: the reference curve that each ICE curve is compared with, and its renewal.

See :mod:`.trends`. A reference is a curve, shape (points, classes), of which only its shape counts.
"""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places

LONGEST = 1_024
"""Most ICE curves in a reference."""

TAKEN, BEGUN, KNOWN = range(3)
"""Columns of a curve's counts: the ICE curves taken; those before the ones that are collected for
the next reference; and the factor of the last reference, 1 or -1, or 0 before the first."""

OPPOSITE = -0.5
"""Correlation below which a mean curve is opposite to the former reference."""

ROUNDING = 1e-9
"""Part of a range by which a knot may lie outside of it, by rounding errors."""


@compiled
def rising(n: int, shown: Places, classes: int) -> Floats:
    """Return the first reference: it rises with the points, and probability goes to later classes.

    With u from -1 to 1 it is ``u + u²/2``: of a curve shaped like a U, the trend is not 0 either.
    """
    found, m = np.zeros((n, classes)), count_shown(shown)
    for k in range(n):
        u = 2.0 * k / max(n - 1, 1) - 1.0
        for i in range(m):
            found[k, shown[i]] = (u + 0.5 * u * u) * (i - (m - 1) / 2.0 if m > 1 else 1.0)
    return found


@compiled
def count_shown(shown: Places) -> int:
    """Return the number of shown classes, those before the first -1."""
    m = 0
    while m < shown.shape[0] and shown[m] >= 0:
        m += 1
    return m


@compiled
def centred(curve: Floats, shown: Places) -> Floats:
    """Return a curve minus its mean, for the shown classes; exactly 0 if all values are equal."""
    n = curve.shape[0]
    m = count_shown(shown) if n else 0
    found = np.empty((n, m))
    for i in range(m):
        first, total = curve[0, shown[i]], 0.0
        for k in range(n):
            total += curve[k, shown[i]] - first
        for k in range(n):
            found[k, i] = curve[k, shown[i]] - first - total / n
    return found


@compiled
def curve_at(grid: Floats, curve: Floats, points: Floats) -> Floats:
    """Return a curve, shape (grid points, classes), at other points.

    It is a line between the points of its grid, which increase, and constant beyond them.
    """
    last, classes = grid.shape[0] - 1, curve.shape[1]
    found = np.empty((points.shape[0], classes))
    for k in range(points.shape[0]):
        high = min(np.searchsorted(grid, points[k], side="right"), last)
        low = max(high - 1, 0)
        width = grid[high] - grid[low]
        share = (points[k] - grid[low]) / width if 0.0 < width < np.inf else 1.0
        share = min(max(share, 0.0), 1.0)
        for c in range(classes):
            found[k, c] = curve[low, c] + share * (curve[high, c] - curve[low, c])
    return found


@compiled
def normalized(curve: Floats, shown: Places) -> Floats:
    """Return a centred curve with the largest distance 1 from its mean; 0 if it is constant."""
    found, largest = centred(curve, shown), 0.0
    for distance in found.flat:
        largest = max(largest, abs(distance))
    return found / largest if largest > 0.0 else found


@compiled
def product(one: Floats, other: Floats) -> float:
    """Return the inner product of two curves of the same shape."""
    total = 0.0
    for k in range(one.shape[0]):
        for i in range(one.shape[1]):
            total += one[k, i] * other[k, i]
    return total


@compiled
def correlation(one: Floats, other: Floats) -> float:
    """Return the correlation of centred curves, from -1 to 1; 0 if one is constant."""
    sizes = math.sqrt(product(one, one)) * math.sqrt(product(other, other))
    return min(max(product(one, other) / sizes, -1.0), 1.0) if sizes > 0.0 else 0.0


@compiled
def trend(ice: Floats, reference: Floats, shown: Places) -> float:
    """Return the trend of an ICE curve: its correlation with the reference, over all classes.

    Both have the shape (points, classes). 0 if one is constant.
    """
    return correlation(normalized(ice, shown), normalized(reference, shown))


@compiled
def turn(  # noqa: PLR0917  compiled functions take arrays
    first: Floats, second: Floats, both: Floats, former: Floats, shown: Places, last: float
) -> float:
    """Return the factor that makes a mean ICE curve the next reference, or 0 if it cannot be.

    All curves have the shape (points, classes): the means of the ``first`` and the ``second`` half
    of some observations, those of ``both``, and the ``former`` reference. A mean cannot be the next
    one if it is constant, or if both halves have opposite shapes: the effect has reversed between
    them, and little of it may be left in the mean. The factor is -1 if the mean is clearly opposite
    to the former reference: so the trends of an effect that has reversed keep their sign. If it is
    neither like nor opposite to it, the factor is the ``last`` one, 0 before the first: another
    shape is no reversal.
    """
    mean = normalized(both, shown)
    if not product(mean, mean) > 0.0:
        return 0.0
    if product(normalized(first, shown), normalized(second, shown)) < 0.0:
        return 0.0
    found = correlation(mean, normalized(former, shown))
    if abs(found) <= -OPPOSITE and last != 0.0:
        return last
    return -1.0 if found < OPPOSITE else 1.0


@compiled
def lay_knots(points: Floats, knots: Floats) -> None:
    """Fill in the points and, on either side, so many more that the knots cover twice the range."""
    n, more = points.shape[0], (knots.shape[0] - points.shape[0]) // 2
    gap = (points[n - 1] - points[0]) / max(n - 1, 1)
    for k in range(knots.shape[0]):
        place = min(max(k - more, 0), n - 1)
        knots[k] = points[place] + (k - more - place) * gap


@compiled
def add_steps(points: Floats, ice: Floats, knots: Floats, steps: Floats, visits: Floats) -> None:
    """Add an ICE curve's differences between neighbouring knots, where it covers both of them.

    So a mean curve is not distorted by observations that lie higher and cover another range.
    ``steps`` has the shape (knots, classes), ``visits`` says how many curves are in each.
    """
    outputs, last = curve_at(points, ice, knots), points.shape[0] - 1
    margin = ROUNDING * (points[last] - points[0])
    for k in range(1, knots.shape[0]):
        if points[0] - margin <= knots[k - 1] and knots[k] <= points[last] + margin:
            visits[k] += 1.0
            for c in range(ice.shape[1]):
                steps[k, c] += outputs[k, c] - outputs[k - 1, c]


@compiled
def summed_up(steps: Floats, visits: Floats, counted: Floats) -> Floats:
    """Return the curve with these mean steps; those that are not ``counted`` are 0."""
    curve = np.zeros(steps.shape)
    for k in range(1, steps.shape[0]):
        for c in range(steps.shape[1]):
            curve[k, c] = curve[k - 1, c]
            if counted[k] > 0.0:
                curve[k, c] += steps[k, c] / visits[k]
    return curve


@compiled
def half_of(counts: Places) -> int:
    """Return the half, 0 or 1, of the next ICE curve among those that are collected."""
    taken, begun = counts[TAKEN], counts[BEGUN]
    return int(2 * (taken - begun) >= length_from(begun))


@compiled
def length_from(begun: int) -> int:
    """Return how many ICE curves are collected for a reference after so many: as many, or fewer."""
    return min(max(begun, 1), LONGEST)


@compiled
def take_curves(  # noqa: PLR0917  compiled functions take arrays
    which: Places,
    points: Floats,
    outputs: Floats,
    shown: Places,
    counts: Places,
    knots: Floats,
    references: Floats,
    steps: Floats,
    visits: Floats,
    found: Floats,
) -> None:
    """Fill in the trends of ICE curves, of several curves or several observations.

    ``which``, ``points``, ``outputs`` and ``shown`` are as in
    :func:`~fluxplain.explain.curve_kernels.move_curves`. What moves are ``counts`` (curves, 3);
    ``knots`` (curves, 2, knots), those of the reference and of the next one; the ``references``
    (curves, knots, classes); and the ``steps`` (curves, 2, knots, classes) of both halves of what
    is collected for the next one, with their ``visits`` (curves, 2, knots).
    """
    size, classes = points.shape[1], outputs.shape[1]
    for i in range(which.shape[0]):
        curve, own = which[i], outputs[i * size : (i + 1) * size]
        count, of_shown = counts[curve], shown[which[i]]
        if count[TAKEN] == count[BEGUN]:
            lay_knots(points[i], knots[curve, 1])
            steps[curve], visits[curve] = 0.0, 0.0
        if count[KNOWN]:
            reference = curve_at(knots[curve, 0], references[curve], points[i])
        else:
            reference = rising(size, of_shown, classes)
        found[i] = trend(own, reference, of_shown)
        half = half_of(count)
        add_steps(points[i], own, knots[curve, 1], steps[curve, half], visits[curve, half])
        count[TAKEN] += 1
        if count[TAKEN] - count[BEGUN] == length_from(count[BEGUN]):
            count[BEGUN] = count[TAKEN]
            if count[KNOWN]:
                former = curve_at(knots[curve, 0], references[curve], knots[curve, 1])
            else:
                former = rising(knots.shape[2], of_shown, classes)
            first, second = visits[curve]
            is_in_both = first * second
            both = summed_up(steps[curve, 0] + steps[curve, 1], first + second, first + second)
            factor = turn(
                summed_up(steps[curve, 0], first, is_in_both),
                summed_up(steps[curve, 1], second, is_in_both),
                both,
                former,
                of_shown,
                float(count[KNOWN]),
            )
            if factor != 0.0:
                knots[curve, 0], references[curve] = knots[curve, 1], factor * both
                count[KNOWN] = int(factor)


@compiled
def take_keyed(  # noqa: PLR0917  compiled functions take arrays
    places: Places,
    ice: Floats,
    shown: Places,
    counts: Places,
    references: Floats,
    known: Floats,
    sums: Floats,
    visits: Floats,
) -> float:
    """Return the trend of an ICE curve over keys; what is collected is for the next reference.

    ``places`` are those of the keys among the ``references`` (places, classes); ``known`` says
    which of them there are. What moves are ``counts``, shape (3,), and, for both halves, the
    ``sums`` (2, places, classes) of centred curves and their ``visits`` (2, places).
    """
    if counts[TAKEN] == counts[BEGUN]:
        sums[:], visits[:] = 0.0, 0.0
    found = trend(ice, reference_of(places, ice, shown, counts, references, known), shown)
    half, centre = half_of(counts), centred(ice, shown)
    for k in range(places.shape[0]):
        visits[half, places[k]] += 1.0
        for i in range(centre.shape[1]):
            sums[half, places[k], shown[i]] += centre[k, i]
    counts[TAKEN] += 1
    if counts[TAKEN] - counts[BEGUN] == length_from(counts[BEGUN]):
        counts[BEGUN] = counts[TAKEN]
        renew_keyed(places, ice, shown, counts, references, known, sums, visits)
    return found


@compiled
def reference_of(  # noqa: PLR0917  compiled functions take arrays
    places: Places, ice: Floats, shown: Places, counts: Places, references: Floats, known: Floats
) -> Floats:
    """Return the reference at some keys; keys that have none get the mean of the others."""
    if counts[KNOWN] == 0:
        return rising(places.shape[0], shown, ice.shape[1])
    found, n = np.zeros(ice.shape), known[places].sum()
    for c in range(ice.shape[1]):
        total = 0.0
        for k in range(places.shape[0]):
            if known[places[k]] > 0.0:
                total += references[places[k], c]
        for k in range(places.shape[0]):
            is_known = known[places[k]] > 0.0
            found[k, c] = references[places[k], c] if is_known else total / max(n, 1.0)
    return found


@compiled
def renew_keyed(  # noqa: PLR0917  compiled functions take arrays
    places: Places,
    ice: Floats,
    shown: Places,
    counts: Places,
    references: Floats,
    known: Floats,
    sums: Floats,
    visits: Floats,
) -> None:
    """Make the mean of the collected curves the reference, if it can be; see :func:`turn`.

    It has the keys that were in these curves. It is compared with the former one at those of
    ``places`` that this has.
    """
    n = visits[0] + visits[1]
    common = places[known[places] > 0.0]
    if counts[KNOWN] and common.shape[0] > 1:
        places = common
        former = references[places]
    else:
        former = rising(places.shape[0], shown, ice.shape[1])
    means = np.zeros((3, places.shape[0], ice.shape[1]))
    for k in range(places.shape[0]):
        p = places[k]
        means[2, k] = (sums[0, p] + sums[1, p]) / n[p]
        if visits[0, p] > 0.0 and visits[1, p] > 0.0:
            means[0, k], means[1, k] = sums[0, p] / visits[0, p], sums[1, p] / visits[1, p]
    factor = turn(means[0], means[1], means[2], former, shown, float(counts[KNOWN]))
    if factor != 0.0:
        counts[KNOWN] = int(factor)
        for p in range(n.shape[0]):
            known[p] = min(n[p], 1.0)
            references[p] = factor * (sums[0, p] + sums[1, p]) / max(n[p], 1.0)

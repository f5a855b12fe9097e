"""Inner loops of :mod:`fluxplain.drift.glr`; see :mod:`fluxplain.evaluate.compiled`."""

import math

import numpy as np

from fluxplain.drift.glr_rows import (
    BEYOND,
    BLOCK,
    CARRIERS,
    LARGEST,
    PLAIN,
    SIZE,
    SMALLEST,
    SQUARES,
    SUM,
    append,
    scaled,
)
from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats

SIZES = 16
"""Sizes of blocks at which the variance is estimated, each twice the one before."""

LEAST = 16
"""Smallest count of numbers on either side of a change."""

LEAST_DIFFERENCES, LEAST_LARGER = 16, 32
"""Smallest count of differences between blocks that tell the variance at their size, and between
larger ones."""

LEAST_INDEPENDENT = 24.0
"""The numbers on either side of a change tell as much as so many independent ones, at least: of
fewer, the mean is far from normal."""

LEAST_SEPARATED = 3.0
"""As many are enough if the means of all rows after a change are beyond those of all before: of
m + n independent numbers, given n are the largest in one of (m + n)! / (m! n!) cases."""

LOCAL = 4
"""The numbers after a change are compared with so many times as many just before it, too."""

EARLY = 1000.0
"""What dependence adds to the variance counts five times at first, since it is hardly known; twice
if the variance is estimated from half as many numbers, and from thousands about once. Without this,
many false alarms come early (``tests/drift/test_glr.py``)."""

BY_CHANCE = 1.2
"""The variance of a mean of independent numbers may seem so many times too large."""

LAG = 8.0
"""Number of blocks; see :func:`take`."""

KEPT = 128.0
"""Weight of the differences from before a change, in differences."""

MOST_KNOWN = 4.0
"""If the numbers after a change vary so many times as much, what was known of them is forgotten."""

SMALLEST_SPREAD = 1e-12
"""A smaller variance, in units of the squared range, is a rounding error."""

MARGIN = 20.0
"""The change lies where the statistic's square is at most so much smaller than its maximum: in
simulations in more than nine of ten cases (``tests/drift/test_glr.py``)."""

OWN = 0.6
"""With the variance of the numbers after a change, the statistic's square must reach this share of
the threshold."""

REST = 0.8
"""Without a burst, the statistic's square must reach this share of the threshold."""

DEPENDENT = 1.5
"""If the variance of a mean is so many times that of independent numbers, large numbers come in
bursts: a change must also hold without the consecutive rows after it that carry most of it."""

BURST, LONGEST_BURST = 16.0, 48.0
"""Numbers in these rows, at most: so many times as many as count for one independent number, up to
a limit. 48 are the half hours of a day: in days of elec2 in random order, most false alarms are a
single day, which a limit of 24 leaves (``tests/measure/experiments/drift.py``)."""

LEFT = 0.5
"""At least this share of the step of the mean must be left without them."""

COUNT, OLDER, LAST, NEAR, FAR, WEIGHT = range(6)
SUMS = WEIGHT + 1
"""Row k of the sums is about blocks of ``BLOCK * 2**k`` numbers: how many there were, the sums of
the last but one and of the last; and half the squared differences of sums at one and at two blocks'
distance, summed up, with the count of these."""


@compiled
def rescale(rows: Floats, sums: Floats, old: Floats, new: Floats) -> None:
    """Count numbers in a new unit; both units are their beginning and their width.

    The means are known as given; they are limited to what one of the units can tell apart. The
    squared differences are known in the old unit.
    """
    ratio = old[1] / new[1] if new[1] > 0.0 else 0.0
    lowest = min(old[0] - BEYOND * old[1], new[0] - BEYOND * new[1])
    highest = max(old[0] + (1.0 + BEYOND) * old[1], new[0] + (1.0 + BEYOND) * new[1])
    for row in rows:
        n, mean = row[SIZE], min(max(row[PLAIN] / row[SIZE], lowest), highest)
        in_units = (mean - new[0]) / new[1] if new[1] > 0.0 else np.sign(mean - new[0])
        squares = row[SQUARES] - row[SUM] * row[SUM] / n
        row[SUM] = n * in_units
        row[SQUARES] = squares * ratio * ratio + n * in_units * in_units
    sums[:, :, NEAR : FAR + 1] *= ratio * ratio


@compiled
def note_sum(total: float, sums: Floats) -> None:
    """Update the squared differences of neighbouring sums with the newest block's sum."""
    for k in range(SIZES):
        row = sums[k]
        older, last = row[OLDER], row[LAST]
        if row[COUNT] >= 2.0:
            row[NEAR] += 0.5 * (total - last) * (total - last)
            row[FAR] += 0.5 * (total - older) * (total - older)
            row[WEIGHT] += 1.0
        row[OLDER], row[LAST] = last, total
        row[COUNT] += 1.0
        if row[COUNT] % 2.0:
            return
        total += last


def _autoregressive() -> tuple[Floats, Floats]:
    """Return the table of :func:`factor_at`: of continuous autoregressive processes, fastest first.

    It has the mean squared difference of blocks at two blocks' distance, and the long-run variance,
    both divided by the mean squared difference at one block's distance.
    """
    apart = np.geomspace(100.0, 0.02, 200)  # length of a block, in units of the time of decay
    decay = np.exp(-apart)
    variance, covariance = 2.0 * (apart - 1.0 + decay), (1.0 - decay) ** 2
    near = variance - covariance
    return (variance - decay * covariance) / near, 2.0 * apart / near


QUOTIENTS, FACTORS = _autoregressive()


@compiled
def factor_at(quotient: float) -> float:
    """Return how much larger the long-run variance is than the differences of neighbouring blocks.

    ``quotient`` is that of the squared differences at two and at one block's distance.
    """
    low, high = 0, len(QUOTIENTS) - 1
    quotient = min(max(quotient, QUOTIENTS[low]), QUOTIENTS[high])
    while high - low > 1:
        middle = (low + high) // 2
        if QUOTIENTS[middle] <= quotient:
            low = middle
        else:
            high = middle
    share = (quotient - QUOTIENTS[low]) / (QUOTIENTS[high] - QUOTIENTS[low])
    factor: float = FACTORS[low] + share * (FACTORS[high] - FACTORS[low])
    return factor


@compiled
def begin_anew(sums: Floats, before: Floats, after: Floats) -> None:
    """Go on after a change: forget the last blocks, and limit the weight of those before it.

    Their variance grows as much as the numbers vary more now; if that is far more, it is forgotten.
    """
    known = sums[2].copy()
    more = max(spread_of(after) / max(spread_of(before), SMALLEST_SPREAD), 1.0)
    if more > MOST_KNOWN:
        known[:] = 0.0
    for k in range(SIZES):
        share = min(1.0, KEPT / max(known[k, WEIGHT], 1.0))
        for row in sums[:, k]:
            row[COUNT], row[OLDER], row[LAST] = 0.0, 0.0, 0.0
            row[NEAR] = known[k, NEAR] * share * more
            row[FAR] = known[k, FAR] * share * more
            row[WEIGHT] = known[k, WEIGHT] * share


@compiled
def spread_of(row: Floats) -> float:
    """Return the variance of a row's numbers."""
    mean = row[SUM] / row[SIZE]
    spread: float = row[SQUARES] / row[SIZE] - mean * mean
    return spread


@compiled
def note_variances(sums: Floats, found: Floats) -> int:
    """Write the long-run variance by blocks up to each size; return how many sizes have one.

    It is the variance of a sum of many numbers, divided by their count: for independent numbers,
    their variance. How long the dependence lasts follows from the differences at one and at two
    blocks' distance, as for an autoregressive series. Large blocks are few: there it counts only
    beyond its standard error.
    """
    largest, size = 0.0, float(BLOCK)
    for k in range(SIZES):
        weight = sums[k, WEIGHT]
        if weight < (LEAST_LARGER if k else LEAST_DIFFERENCES):
            return k
        near = sums[k, NEAR] / weight
        if near > 0.0:
            quotient = sums[k, FAR] / weight / near
            if k:
                quotient -= math.sqrt(2.0 / weight)
            largest = max(largest, near / size * factor_at(quotient))
        found[k] = largest
        size *= 2.0
    return SIZES


Split = tuple[float, float, bool, int, int, int, float, float, float]


@compiled
def take(  # noqa: PLR0917  compiled functions take numbers
    numbers: Floats,
    low: float,
    width: float,
    rows: Floats,
    count: int,
    sums: Floats,
    least_before: int,
) -> tuple[int, Split]:
    """Take a block; return the count of rows, and the :func:`likeliest` split.

    ``low`` and ``width`` are the unit, see :func:`scaled`. ``sums`` has the sums now, and before
    the last one or two ``LAG`` blocks: the variance is that of then, since a large change would
    make it large.
    """
    count = append(numbers, rows, count, low, width)
    note_sum(rows[count - 1, SUM], sums[0])
    if sums[0, 0, COUNT] % LAG == 0.0:
        sums[2] = sums[1]
        sums[1] = sums[0]
    return count, likeliest(rows, count, sums[2], least_before)


@compiled
def likeliest(rows: Floats, count: int, sums: Floats, least_before: int) -> Split:
    """Return the split at which the means differ most, measured by their standard error.

    Returns
    -------
    split
        Square of the difference divided by its standard error, and the largest of all splits if the
        variance were well known; whether there are enough numbers on both sides; the rows with
        which begin: the numbers after it, these at the earliest, and those that they are compared
        with; the long-run variance, more where it is hardly known; the ratio of what is known of it
        to the variance; and the largest such ratio, also of all numbers before it.
    """
    best, best_row, best_first, best_variance, best_ratio, likely = 0.0, 0, 0, 0.0, 1.0, 0.0
    statistics, found = np.zeros(count), np.empty(SIZES)
    sizes = note_variances(sums, found)
    total = rows[:count, SIZE].sum()
    if sizes == 0 or total < least_before + LEAST:
        return best, likely, False, best_row, best_row, best_first, best_variance, best_ratio, 1.0
    # sums over the rows before each row
    until = np.zeros((count + 1, SMALLEST))
    for i in range(count):
        until[i + 1] = until[i] + rows[i, :SMALLEST]
    independent = BY_CHANCE * spread_then(until)
    doubt = (EARLY / (EARLY / 2.0 + BLOCK * sums[0, WEIGHT])) ** 2
    known = BLOCK * 2.0**sizes
    begin, size, oldest, is_allowed, may_be = count, 0, count, False, False
    for i in range(count - 1, 0, -1):
        n = total - until[i, SIZE]
        if until[i, SIZE] < least_before:
            break
        oldest = i
        while size + 1 < sizes and BLOCK * 2.0 ** (size + 1) <= LOCAL * n:
            size += 1
        begin = min(begin, i)
        while begin > 0 and until[i, SIZE] - until[begin, SIZE] < LOCAL * n:
            begin -= 1
        # of many numbers the dependence is not known: it may last long
        more = math.sqrt(max(n / known, 1.0))
        # a series may wander: then all numbers before tell less than those just before
        for first in (begin, 0):
            variance = more * max(found[size] if first else found[sizes - 1], SMALLEST_SPREAD)
            m = until[i, SIZE] - until[first, SIZE]
            mean = (until[i, SUM] - until[first, SUM]) / m
            squares = until[i, SQUARES] - until[first, SQUARES] - m * mean * mean
            is_constant = squares < SMALLEST_SPREAD * m
            later = (until[count, SUM] - until[i, SUM]) / n
            # of all numbers, as the variance is: those after a change may vary far more
            squares += until[count, SQUARES] - until[i, SQUARES] - n * later * later
            spread = max(squares, 0.0) / (m + n)
            difference = later - mean
            statistic = difference * difference / (variance * (1.0 / n + 1.0 / m))
            likely = max(likely, statistic)
            # how far the variance may be off says nothing about how much the numbers tell
            doubtful = variance + doubt * max(variance - more * independent, 0.0)
            statistic *= variance / doubtful
            statistics[i] = max(statistics[i], statistic)
            if statistic > best:
                best, best_row, best_first = statistic, i, first
                best_variance = doubtful
                best_ratio = 1.0 if is_constant else variance / spread
                told = LEAST_INDEPENDENT if is_constant else min(n, m) * spread / variance
                may_be = min(n, m) >= LEAST and told >= LEAST_SEPARATED
                is_allowed = may_be and told >= LEAST_INDEPENDENT
    if not is_allowed and may_be and best > MARGIN:
        # both rows at the split may have numbers of the other side
        before, after = rows[best_first : best_row - 1], rows[best_row + 1 : count]
        is_allowed = is_separated(before, after)
    dependence = max(best_ratio, dependence_of(until[best_row], found[sizes - 1]))
    earliest = first_reaching(statistics, best - MARGIN, best_row)
    if earliest == oldest:  # it may be among the first numbers
        earliest = 0
    return (
        best,
        likely,
        is_allowed,
        best_row,
        earliest,
        best_first,
        best_variance,
        best_ratio,
        dependence,
    )


@compiled
def spread_then(until: Floats) -> float:
    """Return the variance of all numbers but the newest ``LAG`` blocks, as the long-run one is.

    ``until`` has the sums over the rows before each row.
    """
    n = then = until.shape[0] - 1
    while then > 1 and until[n, SIZE] - until[then, SIZE] < LAG * BLOCK:
        then -= 1
    return spread_of(until[then])


@compiled
def dependence_of(row: Floats, long_run: float) -> float:
    """Return the ratio of the long-run variance to the variance of a row's numbers; 1 if that is 0.

    It is for all numbers before a change. A burst increases the variance of the numbers around it,
    so that their own ratio does not show that they depend on each other.
    """
    if row[SIZE] == 0.0:
        return 1.0
    spread = spread_of(row)
    return long_run / spread if spread >= SMALLEST_SPREAD else 1.0


@compiled
def is_separated(before: Floats, after: Floats) -> bool:
    """Return whether the means of some rows are beyond those of all earlier ones.

    There may be none.
    """
    if before.shape[0] == 0 or after.shape[0] == 0:
        return False
    earlier, later = before[:, PLAIN] / before[:, SIZE], after[:, PLAIN] / after[:, SIZE]
    is_above: bool = later.min() > earlier.max()
    is_below: bool = later.max() < earlier.min()
    return is_above or is_below


@compiled
def first_reaching(numbers: Floats, level: float, default: int) -> int:
    """Return the place of the first number that is at least ``level``."""
    for i, number in enumerate(numbers):
        if number >= level:
            return i
    return default


@compiled
def checked(  # noqa: PLR0917  compiled functions take numbers
    before: Floats, after: Floats, variance: float, ratio: float, low: float, width: float
) -> float:
    """Return the smaller of a split's statistics without the carriers, and with their own variance.

    ``before`` and ``after`` are rows of all numbers on either side; ``low`` and ``width`` are the
    unit.
    """
    mean, later = before[SUM] / before[SIZE], after[SUM] / after[SIZE]
    lower, higher = (before, after) if later > mean else (after, before)
    lower_sum, higher_sum = lower[SUM], higher[SUM]
    for i in range(CARRIERS):
        lower_sum -= scaled(lower[SMALLEST + i], low, width)
        higher_sum -= scaled(higher[LARGEST + i], low, width)
    m, n = lower[SIZE] - CARRIERS, higher[SIZE] - CARRIERS
    difference = max(higher_sum / n - lower_sum / m, 0.0)
    without = difference * difference / (variance * (1.0 / n + 1.0 / m))
    # numbers that vary more than those before may have a mean far off by chance
    own = max(variance, ratio * spread_of(after))
    error = variance / before[SIZE] + own / after[SIZE]
    smaller: float = min(without, (later - mean) * (later - mean) / error / OWN)
    return smaller


@compiled
def without_burst(before: Floats, after: Floats, variance: float, dependence: float) -> float:
    """Return a split's statistic without the rows that may be a burst, divided by ``REST``.

    ``before`` is a row of all numbers before it, ``after`` are the rows after it. ``dependence`` is
    how many numbers count as an independent one.
    """
    deviations = after[:, SUM] - before[SUM] / before[SIZE] * after[:, SIZE]
    direction, longest = np.sign(deviations.sum()), min(BURST * dependence, LONGEST_BURST)
    begin, length, total, size, burst = 0, 0.0, 0.0, 0.0, 0.0
    for end in range(after.shape[0]):
        length += after[end, SIZE]
        total += direction * deviations[end]
        while length > longest:
            length -= after[begin, SIZE]
            total -= direction * deviations[begin]
            begin += 1
        if total > burst:
            size, burst = length, total
    left = after[:, SIZE].sum() - size
    if left <= 0.0:
        return 0.0
    difference = max((direction * deviations.sum() - burst) / left, 0.0)
    error = variance * (1.0 / left + 1.0 / before[SIZE])
    statistic: float = difference * difference / error / REST
    return statistic


@compiled
def is_carried(before: Floats, after: Floats) -> bool:
    """Return whether the carriers have most of the difference of the means as given, not clipped.

    Nobody would see such a change in the mean. So it is if the clipped means differ the other way.
    """
    mean, later = before[SUM] / before[SIZE], after[SUM] / after[SIZE]
    lower, higher = (before, after) if later > mean else (after, before)
    difference = higher[PLAIN] / higher[SIZE] - lower[PLAIN] / lower[SIZE]
    lower_sum, higher_sum = lower[PLAIN], higher[PLAIN]
    for i in range(CARRIERS):
        lower_sum -= lower[SMALLEST + i]
        higher_sum -= higher[LARGEST + i]
    left = higher_sum / (higher[SIZE] - CARRIERS) - lower_sum / (lower[SIZE] - CARRIERS)
    share = left / difference * (1.0 - CARRIERS / after[SIZE]) if difference > 0.0 else 0.0
    is_most: bool = share < LEFT
    return is_most

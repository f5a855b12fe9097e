"""A detector of changes of the mean that states how often it is wrong."""

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from fluxplain.drift import glr_kernels as kernels
from fluxplain.drift.glr_kernels import DEPENDENT, LEAST, SIZES, SUMS
from fluxplain.drift.glr_rows import BLOCK, CARRIERS, FIELDS, SIZE, add, count_lost
from fluxplain.evaluate.encoding import Floats

REFERENCE, LONGEST_REFERENCE = 256, 1024
"""Numbers that tell the unit; at most, if all but a few are the same."""

TAILS = (9, CARRIERS)
"""The unit goes from the n-th smallest to the n-th largest of them, with the first n for which
these differ."""

CHANCE = 0.02
"""Where a change is expected, the chance of a false alarm, about: see :meth:`GLR.expect`."""

LONGER = 2
"""A change is expected until so many times as many numbers have come as there were at first."""

LEAST_BEFORE = 256
"""Smallest count of numbers before the first change, and between two checks of the unit."""

SELECTED = 2.0
"""At an alarm, the difference of the means is too large by this share of itself divided by the
statistic's square: fitted to simulations (``tests/drift/test_glr.py``)."""

LONG = 1_024
"""If so many numbers were known when the unit is lost, the next ones are compared with them."""

LOST = 0.2
"""Largest share of numbers that may be outside of what the unit can tell apart."""


def threshold(false_alarms: float) -> float:
    """Return how many standard errors the means must differ by.

    Parameters
    ----------
    false_alarms
        Mean number of false alarms in 100,000 independent normal numbers, above 0.

    Notes
    -----
    The largest of the statistics of all splits exceeds h at a rate that is proportional to
    h exp(-h²/2) for large h (Siegmund, Venkatraman 1995). The factor was fitted to
    simulations: ``tests/drift/test_glr.py``.

    Examples
    --------
    >>> round(threshold(1.0), 2), round(threshold(0.01), 2)
    (3.64, 4.8)
    """
    low, high = 1.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        if 210.0 * middle * math.exp(-middle * middle / 2) > false_alarms:
            low = middle
        else:
            high = middle
    return high


class _Former(NamedTuple):
    """Rows and sums of numbers whose unit was lost, and that unit."""

    rows: Floats
    sums: Floats
    unit: Floats


class GLR:
    """A generalized likelihood ratio test after every eight numbers, in bounded memory.

    It compares the means before and after each possible split. The standard error of their
    difference holds also if the numbers depend on each other, and if their mean wanders slowly:
    see :func:`~fluxplain.drift.glr_kernels.note_variances`. A change must also hold without the
    three numbers on either side that carry most of it; and, where numbers depend on those before,
    without up to 48 consecutive ones after it that may be a burst.

    The first 256 numbers determine the unit; outliers are clipped to their range, widened three
    times. If a fifth of 256 numbers is outside, the detector begins anew with another unit; what it
    knows of 1,024 numbers or more, it keeps. It needs 256 numbers
    before the first change, and as many after each as tell what 24 independent ones do; what 3
    tell is enough if the means of all blocks are beyond all before.

    Parameters
    ----------
    false_alarms
        Mean number of false alarms in 100,000 numbers without a change.

    Attributes
    ----------
    drift_detected
        Whether the last number raised an alarm.
    width
        How many numbers are after the change, at an alarm.
    widest
        Upper bound of ``width``: in more than nine of ten cases, the change is not longer ago.
    span
        How many numbers before the change the later ones were compared with, at an alarm.
    inflation
        Ratio of the variance of a mean to that of a mean of independent numbers, at least 1, at an
        alarm.
    selection
        What is left of the difference of the means at an alarm without what its selection adds on
        average: a split is chosen because the difference is large there.

    References
    ----------
    Siegmund, Venkatraman (1995), "Using the generalized likelihood ratio statistic for sequential
    detection of a change-point"; buckets as in Bifet, Gavaldà (2007).

    Examples
    --------
    >>> detector, found = GLR(), []
    >>> for t in range(600):
    ...     detector.update(float(t % 3 + (t >= 500)))
    ...     if detector.drift_detected:
    ...         found.append((t, detector.width))
    >>> found
    [(527, 24)]
    """

    def __init__(self, false_alarms: float = 1.0) -> None:
        _compile()
        self.false_alarms = false_alarms
        self._least = threshold(false_alarms) ** 2
        self._expected, self._longest, self._least_expected = 0, 0, self._least
        self.drift_detected = False
        self.width, self.widest, self.span = 0, 0, 0
        self.inflation = self.selection = 1.0
        self._restart()

    def _restart(self, former: _Former | None = None) -> None:
        self._former = former
        self._numbers: list[float] = []
        self._low, self._unit = 0.0, -1.0  # until there are enough numbers
        self._rows, self._count = np.zeros((16, FIELDS)), 0
        self._sums = np.zeros((3, SIZES, SUMS))
        self._least_before = LEAST_BEFORE
        self._taken, self._lost = 0, 0  # in the current check of the unit
        self._is_likely = self._was_lost = False

    def expect(self, within: int) -> None:
        """Ask for less evidence of a change within the newest ``within`` numbers.

        Another signal says that there is one. This ends at the next alarm, or when as many numbers
        again have come. Until then, chance gives the evidence in about one of 50 cases.
        """
        self._expected, self._longest = within, LONGER * within
        # the formula of the threshold is for rare alarms
        false_alarms = max(self.false_alarms, min(CHANCE * 1e5 / self._longest, 100.0))
        self._least_expected = threshold(false_alarms) ** 2

    @property
    def room(self) -> int:
        """How many numbers come before the next test, with it."""
        return BLOCK - len(self._numbers) % BLOCK

    def update(self, number: float) -> None:
        """Take the next number."""
        self.update_run((number,))

    def update_run(self, numbers: Sequence[float]) -> None:
        """Take the next numbers, at most :attr:`room`."""
        for _ in numbers:
            if self._expected:
                self._expected = self._expected + 1 if self._expected < self._longest else 0
        self._numbers += numbers
        self._advance()

    def _advance(self) -> None:
        self.drift_detected = False
        if len(self._numbers) < (BLOCK if self._unit >= 0.0 else REFERENCE):
            return
        if self._unit < 0.0 and not self._has_unit():
            return
        numbers, self._numbers = np.array(self._numbers), []
        for begin in range(0, len(numbers), BLOCK):
            self._take(numbers[begin : begin + BLOCK])
        self._check_unit(len(numbers), count_lost(numbers, self._low, self._unit))

    def _has_unit(self) -> bool:
        """Return whether the unit is known now; equal numbers are collected for longer."""
        if len(self._numbers) % BLOCK:
            return False
        first, rest = self._numbers[: REFERENCE // 4], self._numbers[REFERENCE // 4 :]
        ordered = sorted(rest)
        tails = [(ordered[n - 1], ordered[-n]) for n in TAILS]
        low, high = next(((low, high) for low, high in tails if low < high), tails[-1])
        if low == high and len(self._numbers) < LONGEST_REFERENCE:
            return False
        lost = count_lost(np.array(first), low, high - low)
        if len(ordered) < REFERENCE and (lost > LOST * len(first) or len({*first}) == 1):
            # a model that begins may have no losses, or all the same
            self._numbers = rest
            return False
        self._low, self._unit = low, high - low
        if self._former is not None:
            self._rows, self._sums, unit = self._former
            self._count, self._former = len(self._rows), None
            kernels.rescale(self._rows, self._sums, unit, np.array((self._low, self._unit)))
        return True

    def _check_unit(self, taken: int, lost: int) -> None:
        """Restart if many numbers are outside of what the unit can tell apart."""
        self._taken, self._lost = self._taken + taken, self._lost + lost
        if self._taken >= LEAST_BEFORE:
            is_lost = self._lost > LOST * self._taken
            self._taken, self._lost = 0, 0
            # a change that is likely, but has too few numbers yet, has time until the next check
            if is_lost and (not self._is_likely or self._was_lost):
                self._restart(self._known())
            self._was_lost = is_lost

    def _known(self) -> _Former | None:
        """Return the numbers so far, if they are many: what comes next may be a change."""
        rows = self._rows[: self._count].copy()
        if rows[:, SIZE].sum() < LONG:
            return None
        all_of_them = _together(rows)
        kernels.begin_anew(self._sums, all_of_them, all_of_them)
        return _Former(rows, self._sums, np.array((self._low, self._unit)))

    def _take(self, block: Floats) -> None:
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        rows = self._rows
        self._count, found = kernels.take(
            block, self._low, self._unit, rows, self._count, self._sums, self._least_before
        )
        statistic, likely, is_enough, split, earliest, first, variance, ratio, dependence = found
        expected = self._expected
        is_expected = expected > 0 and rows[split : self._count, SIZE].sum() <= expected
        least = self._least_expected if is_expected else self._least
        self._is_likely = likely > least
        if statistic <= least or not is_enough:
            return
        before, after = _together(rows[first:split]), _together(rows[split : self._count])
        low, unit = self._low, self._unit
        if kernels.checked(before, after, variance, ratio, low, unit) <= least:
            return
        later = rows[split : self._count]
        is_dependent = dependence > DEPENDENT
        if is_dependent and kernels.without_burst(before, later, variance, dependence) <= least:
            return
        # the block at the split may have numbers of before
        if after[SIZE] - rows[split, SIZE] < LEAST:
            return
        if not kernels.is_carried(before, _together(rows[split + 1 : self._count])):
            self.drift_detected = True
            self._expected = 0
            self.width, self.span = int(after[SIZE]), int(before[SIZE])
            self.widest = int(rows[earliest : self._count, SIZE].sum())
            self.inflation, self.selection = max(ratio, 1.0), 1.0 - SELECTED / statistic
            # the numbers after the change stay, and the variance that is known
            kernels.begin_anew(self._sums, before, after)
            self._count -= split
            rows[: self._count] = rows[split : split + self._count].copy()
            self._least_before = LEAST


@cache
def _compile() -> None:
    """Compile the inner loops when a detector is made, and not in the middle of a stream."""
    rows, numbers = np.zeros((1, FIELDS)), np.zeros(BLOCK)
    count_lost(numbers, 0.0, 0.0)
    sums = np.zeros((3, SIZES, SUMS))
    kernels.take(numbers, 0.0, 0.0, rows, 0, sums, LEAST)
    kernels.begin_anew(sums, rows[0], rows[0])
    kernels.rescale(rows, sums, np.zeros(2), np.zeros(2))
    add(rows[0], rows[0])
    kernels.checked(rows[0], rows[0], 1.0, 1.0, 0.0, 0.0)
    kernels.without_burst(rows[0], rows, 1.0, 1.0)
    kernels.is_carried(rows[0], rows[0])


def _together(rows: Floats) -> Floats:
    all_of_them: Floats = rows[0].copy()
    for row in rows[1:]:
        add(all_of_them, row)
    return all_of_them

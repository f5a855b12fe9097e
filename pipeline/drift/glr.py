"""A detector of changes of the mean that states how often it is wrong."""

import math
from functools import cache

import numpy as np

from fluxplain.drift import glr_kernels as kernels
from fluxplain.drift.glr_kernels import BLOCK, CARRIERS, FIELDS, SIZE, SIZES, SUMS
from fluxplain.evaluate.encoding import Floats

REFERENCE = 64
"""Numbers that tell the unit."""


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
    (3.5, 4.69)
    """
    low, high = 1.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        if 130.0 * middle * math.exp(-middle * middle / 2) > false_alarms:
            low = middle
        else:
            high = middle
    return high


class GLR:
    """A generalized likelihood ratio test after every eight numbers, in bounded memory.

    It compares the means before and after each possible split. The standard error of their
    difference holds also if the numbers depend on each other, and if their mean wanders slowly:
    see :func:`~fluxplain.drift.glr_kernels.note_variances`. The first 64 numbers determine the
    unit; outliers are clipped to their range, widened three times. A change must also hold without
    the three numbers on either side that carry most of it.

    It restarts after an alarm, and needs 256 numbers before the next change.

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
        Ratio of the variance of a mean to that of a mean of independent numbers, at an alarm.

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
    [(511, 16)]
    """

    def __init__(self, false_alarms: float = 1.0) -> None:
        _compile()
        self.false_alarms = false_alarms
        self._least = threshold(false_alarms) ** 2
        self.drift_detected = False
        self.width, self.widest, self.span, self.inflation = 0, 0, 0, 1.0
        self._restart()

    def _restart(self) -> None:
        self._numbers: list[float] = []
        self._low, self._unit = 0.0, -1.0  # until there are enough numbers
        self._rows, self._count = np.zeros((16, FIELDS)), 0
        self._sums = np.zeros((3, SIZES, SUMS))

    def update(self, number: float) -> None:
        """Take the next number."""
        self.drift_detected = False
        self._numbers.append(number)
        if len(self._numbers) < (BLOCK if self._unit >= 0.0 else REFERENCE):
            return
        numbers, self._numbers = np.array(self._numbers), []
        if self._unit < 0.0:
            ordered = np.sort(numbers)
            self._low = float(ordered[CARRIERS - 1])
            self._unit = float(ordered[-CARRIERS]) - self._low
        kernels.scale(numbers, self._low, self._unit)
        for begin in range(0, len(numbers), BLOCK):
            self._take(numbers[begin : begin + BLOCK])

    def _take(self, block: Floats) -> None:
        if self._count == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        rows = self._rows
        self._count, (statistic, split, earliest, first, variance, ratio) = kernels.take(
            block, rows, self._count, self._sums
        )
        if statistic <= self._least:
            return
        before, after = _together(rows[first:split]), _together(rows[split : self._count])
        if kernels.checked(before, after, variance, ratio) > self._least:
            self.drift_detected = True
            self.width, self.span = int(after[SIZE]), int(before[SIZE])
            self.widest = int(rows[earliest : self._count, SIZE].sum())
            self.inflation = ratio
            self._restart()


@cache
def _compile() -> None:
    """Compile the inner loops when a detector is made, and not in the middle of a stream."""
    rows, numbers = np.zeros((1, FIELDS)), np.zeros(BLOCK)
    kernels.scale(numbers, 0.0, 0.0)
    kernels.take(numbers, rows, 0, np.zeros((3, SIZES, SUMS)))
    kernels.add(rows[0], rows[0])
    kernels.checked(rows[0], rows[0], 1.0, 1.0)


def _together(rows: Floats) -> Floats:
    all_of_them: Floats = rows[0].copy()
    for row in rows[1:]:
        kernels.add(all_of_them, row)
    return all_of_them

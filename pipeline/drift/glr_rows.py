"""Numbers in rows of growing sizes, as :mod:`fluxplain.drift.glr_kernels` compares them."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats

BLOCK = 8
"""Numbers that are taken together: the statistic is computed after each block."""

PER_SIZE = 9
"""Largest number of rows of each size: the position of a change is exact to about an eighth."""

BEYOND = 1.0
"""Outliers are clipped to so many units beyond the unit."""

CARRIERS = 3
"""A change must hold without so many numbers on either side that carry most of it."""

SIZE, SUM, SQUARES, PLAIN, SMALLEST, LARGEST = 0, 1, 2, 3, 4, 4 + CARRIERS
FIELDS = LARGEST + CARRIERS
"""A row has the count, sum and sum of squares of consecutive numbers; the sum of these numbers as
they were given, and the smallest of these in ascending and the largest in descending order."""


@compiled
def clear(row: Floats) -> None:
    """Empty a row."""
    row[:SMALLEST] = 0.0
    row[SMALLEST:LARGEST] = math.inf
    row[LARGEST:] = -math.inf


@compiled
def keep_extremes(row: Floats, small: float, large: float) -> None:
    """Insert a number into the smallest ones, and one into the largest."""
    for i in range(CARRIERS):
        if small < row[SMALLEST + i]:
            row[SMALLEST + i], small = small, row[SMALLEST + i]
        if large > row[LARGEST + i]:
            row[LARGEST + i], large = large, row[LARGEST + i]


@compiled
def add(row: Floats, other: Floats) -> None:
    """Add another row's numbers to a row."""
    row[:SMALLEST] += other[:SMALLEST]
    for i in range(CARRIERS):
        keep_extremes(row, other[SMALLEST + i], other[LARGEST + i])


@compiled
def scaled(number: float, low: float, width: float) -> float:
    """Count from ``low`` in units of ``width``, clipped; only signs if that is 0.

    Numbers beyond the unit count up to ``BEYOND`` units.
    """
    in_units: float = np.sign(number - low)
    if width > 0.0:
        in_units = min(max((number - low) / width, -BEYOND), 1.0 + BEYOND)
    return in_units


@compiled
def count_lost(numbers: Floats, low: float, width: float) -> int:
    """Return how many numbers lose their size by :func:`scaled`."""
    lost = 0
    for number in numbers:
        lost += number < low - BEYOND * width or number > low + (1.0 + BEYOND) * width
    return lost


@compiled
def append(numbers: Floats, rows: Floats, count: int, low: float, width: float) -> int:
    """Append a block as a row; join the oldest rows of a size with too many; return the count."""
    row = rows[count]
    clear(row)
    for number in numbers:
        in_units = scaled(number, low, width)
        row[SIZE] += 1.0
        row[SUM] += in_units
        row[SQUARES] += in_units * in_units
        row[PLAIN] += number
        keep_extremes(row, number, number)
    end, size = count + 1, float(BLOCK)
    while True:
        begin = end
        while begin > 0 and rows[begin - 1, SIZE] == size:
            begin -= 1
        if end - begin <= PER_SIZE:
            return count + 1
        add(rows[begin], rows[begin + 1])
        for i in range(begin + 1, count):
            rows[i] = rows[i + 1]
        count -= 1
        end, size = begin + 1, 2.0 * size

"""Limits of the numbers in records, the same for writers and readers."""

import math
from collections.abc import Iterable

MAX_NUMBER = 1e150
"""Largest magnitude of a feature, a label, an output or an increment: squares of differences, and
sums of such squares, stay finite. An infinite one would spoil an estimate for ever."""


def are_moderate(numbers: Iterable[float]) -> bool:
    """Return whether :func:`is_moderate` holds for all numbers."""
    # max alone would not do: its result is arbitrary if one of the numbers is NaN
    sizes = [abs(number) for number in numbers]
    return not sizes or (max(sizes) <= MAX_NUMBER and sum(sizes) < math.inf)


def is_moderate(number: float) -> bool:
    """Return whether a number can be squared and summed; NaN and infinity cannot."""
    return abs(number) <= MAX_NUMBER

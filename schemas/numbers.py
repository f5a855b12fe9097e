"""Which numbers can be computed with: the same for whoever writes a record and whoever reads it."""

import math
from collections.abc import Iterable

MAX_NUMBER = 1e150
"""Largest magnitude of a feature, a label, an output or an increment: the square of a difference,
and a sum of such squares, is still finite. An infinite one would spoil an estimate for ever."""


def are_moderate(numbers: Iterable[float]) -> bool:
    """Return whether all numbers are; see :func:`is_moderate`."""
    # the largest of numbers with a NaN among them may be any
    sizes = [abs(number) for number in numbers]
    return not sizes or (max(sizes) <= MAX_NUMBER and sum(sizes) < math.inf)


def is_moderate(number: float) -> bool:
    """Return whether a number can be squared and summed; NaN and infinity cannot."""
    return abs(number) <= MAX_NUMBER

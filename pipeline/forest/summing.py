"""Sums of weights and shares, as ``sum`` of this Python adds them: River's sums are of that kind.

From Python 3.12 on, ``sum`` keeps what is lost when floats are rounded, and adds it at the end.

References
----------
Neumaier (1974), Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen.
CPython, ``builtin_sum_impl`` in ``Python/bltinmodule.c``.
"""

import math
import sys
from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import Flags, Integers

# constants for the compiler, which leaves out what this Python does not do
IS_COMPENSATED = sys.version_info >= (3, 12)
"""Whether ``sum`` keeps what floats lose."""

COMPENSATES_INTEGERS = sys.version_info >= (3, 14)
"""Whether it does so, too, where it adds an integer to a float."""

ADDED_TYPES = frozenset({float, int} if IS_COMPENSATED else {float, int, np.float64})
"""Types of numbers that are added here as ``sum`` adds them: it does not compensate NumPy's."""


class Sum(NamedTuple):
    """A sum so far: what floats have ``lost`` is not in the ``total``.

    Integers are added exactly until the first float comes: then it ``is_float``.
    """

    total: float
    lost: float
    is_float: bool


@borrowing
def plus(of: Sum, number: float, is_integer: bool) -> Sum:
    """Return the sum with another number, which is one of Python's integers or floats."""
    total, lost = of.total + number, of.lost
    if IS_COMPENSATED and of.is_float and (COMPENSATES_INTEGERS or not is_integer):
        if abs(of.total) >= abs(number):
            lost += (of.total - total) + number
        else:
            lost += (number - total) + of.total
    return Sum(total, lost, of.is_float or not is_integer)


@borrowing
def value_of(of: Sum) -> float:
    """Return what ``sum`` returns."""
    if IS_COMPENSATED and of.lost != 0.0 and math.isfinite(of.lost):
        return of.total + of.lost
    return of.total


@borrowing
def total(n: int, numbers: Floats) -> float:
    """Return the sum of the first ``n`` floats."""
    found = Sum(0.0, 0.0, False)
    for k in range(n):
        found = plus(found, numbers[k], False)
    return value_of(found)


@borrowing
def total_at(n: int, places: Integers, numbers: Floats) -> float:
    """Return the sum of the floats at ``n`` places, in their order."""
    found = Sum(0.0, 0.0, False)
    for k in range(n):
        found = plus(found, numbers[places[k]], False)
    return value_of(found)


@borrowing
def mixed_total_at(n: int, places: Integers, numbers: Floats, is_integer: Flags) -> float:
    """Return the sum of the floats and integers at ``n`` places, in their order."""
    found = Sum(0.0, 0.0, False)
    for k in range(n):
        found = plus(found, numbers[places[k]], is_integer[places[k]])
    return value_of(found)

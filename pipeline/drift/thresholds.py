"""Shortens thresholds to the digits that matter."""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context
from itertools import product

MOST_DIGITS = 17
"""Significant digits that distinguish any two floats."""


def shortest_between(low: float, high: float) -> float:
    """Return the number with the fewest significant digits from ``low`` to below ``high``.

    If ``low`` and ``high`` are neighbouring observed values, it divides the observations as
    ``low`` does: in those up to it, and those above. If no number lies there, it is ``low``.

    Examples
    --------
    >>> shortest_between(74_998.31, 75_031.2), shortest_between(39.0, 40.0)
    (75000.0, 39.0)
    """
    if low <= 0.0 < high:
        return 0.0
    for digits, rounding in product(range(1, MOST_DIGITS), (ROUND_HALF_EVEN, ROUND_CEILING)):
        found = float(Context(prec=digits, rounding=rounding).create_decimal_from_float(low))
        if low <= found < high:
            return found
    return low

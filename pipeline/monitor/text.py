"""Numbers and text as people read them in a terminal."""

import math


def measured(value: float, std_error: float, scale: float) -> str:
    """Return a value ± its standard error, with three digits of the ``scale``.

    Examples
    --------
    >>> measured(0.01234, 0.00056, scale=0.345), measured(12.34, 1.5, scale=345.0)
    ('0.012 ±0.001', '12 ±2')
    """
    return f"{number(value, scale)} ±{number(std_error, scale)}"


def number(value: float, scale: float) -> str:
    """Return a number as precisely as numbers of that scale are shown: three digits of it."""
    if not math.isfinite(value):
        return "?"
    digits = decimals(scale)
    # 0.0 added: no "-0.000"
    return f"{value:.2g}" if digits is None else f"{round(value, digits) + 0.0:.{digits}f}"


def decimals(scale: float) -> int | None:
    """Return how many decimals to show; None where they would be too many."""
    if not 1e-3 <= scale < 1e6:
        return None if scale else 3
    return max(0, 2 - math.floor(math.log10(scale)))


def printable(text: str) -> str:
    """Return text without what could steer a terminal: a record may hold anything."""
    return "".join(c if c.isprintable() else "�" for c in text)

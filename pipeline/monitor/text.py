"""Numbers and text as people read them in a terminal."""

import math

from pipeline.digits import told_apart


def measured(value: float, std_error: float, scale: float, more: int = 0) -> str:
    """Return a value ± its standard error, with three digits of the ``scale``, or more.

    Examples
    --------
    >>> measured(0.01234, 0.00056, scale=0.345), measured(12.34, 1.5, scale=345.0)
    ('0.012 ±0.001', '12 ±2')
    """
    return f"{number(value, scale, more)} ±{number(std_error, scale, more)}"


def number(value: float, scale: float, more: int = 0) -> str:
    """Return a number as precisely as numbers of that scale are shown: three digits of it."""
    if not math.isfinite(value):
        return "?"
    digits = decimals(scale)
    if digits is None:
        return f"{value:.{2 + more}g}"
    digits += more
    # 0.0 added: no "-0.000"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def compared(
    before: float | None,
    after: float | None,
    before_std_error: float | None = None,
    after_std_error: float | None = None,
) -> tuple[str, str]:
    """Return what was before and after, with enough digits to see that they differ.

    Examples
    --------
    >>> compared(0.0501, 0.1234, 0.002, 0.003), compared(0.21042, 0.2104), compared(None, 0.5)
    (('0.050 ±0.002', '0.123 ±0.003'), ('0.21042', '0.21040'), ('–', '0.500'))
    """
    scale = max(abs(before or 0.0), abs(after or 0.0))

    def write(value: float, std_error: float | None, more: int = 0) -> str:
        if std_error is None:
            return number(value, scale, more)
        return measured(value, std_error, scale, more)

    if before is None or after is None:
        one = "–" if before is None else write(before, before_std_error)
        return one, "–" if after is None else write(after, after_std_error)
    return told_apart((before, before_std_error), (after, after_std_error), write)


def decimals(scale: float) -> int | None:
    """Return how many decimals to show; None where they would be too many."""
    if not 1e-3 <= scale < 1e6:
        return None if scale else 3
    return max(0, 2 - math.floor(math.log10(scale)))


def printable(text: str) -> str:
    """Return text without what could steer a terminal: a record may hold anything."""
    return "".join(c if c.isprintable() else "�" for c in text)

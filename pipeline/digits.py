"""As many digits as it takes: of two numbers, a person must see which is larger."""

import math
from collections.abc import Callable

MOST_MORE = 17
"""Digits that tell any two floats apart."""

Mean = tuple[float, float | None]
"""A number and its standard error; None where it is not known."""


Write = Callable[[float, float | None, int], str]
"""Given a number, its standard error, and how many digits more than usual, returns a text that
begins with the number and a space, or is the number."""


def told_apart(one: Mean, other: Mean, write: Write) -> tuple[str, str]:
    """Return both as texts of which one can see that they differ, and which is larger.

    Parameters
    ----------
    one, other
        The numbers. Of equal ones the texts are as short as possible.
    write
        How they are written.

    Examples
    --------
    >>> told_apart((0.2104, None), (0.2098, None), lambda value, _, more: f"{value:.{2 + more}g}")
    ('0.2104', '0.2098')
    """
    difference = other[0] - one[0]
    for more in range(MOST_MORE):
        texts = write(*one, more), write(*other, more)
        if not difference or not math.isfinite(difference):
            break
        first, second = (float(text.split()[0]) for text in texts)
        if (second > first) == (difference > 0) and first != second:
            break
    return texts


def moved(before: Mean, after: Mean, write: Write) -> str:
    """Return how a number went from one value to another.

    Examples
    --------
    >>> moved((0.21, None), (0.5, None), written)
    'rose from 0.21 to 0.5'
    """
    texts = told_apart(before, after, write)
    if before[0] == after[0]:
        return f"stayed at {texts[1]}"
    return f"{'rose' if after[0] > before[0] else 'fell'} from {texts[0]} to {texts[1]}"


def written(value: float, _std_error: float | None, more: int) -> str:
    """Return a number alone, with three digits and more."""
    return f"{value:.{3 + more}g}"

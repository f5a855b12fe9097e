"""Finds the name that a misspelled one was meant for."""

from collections.abc import Iterable
from difflib import get_close_matches

SHORTEST = 3
"""Least characters of a name that may be the beginning of a longer one."""


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that may have been meant; None if none is similar.

    It differs by case only, or in few characters, or one is the beginning of the other.

    Examples
    --------
    >>> closest("Hall", ["city", "hall"]), closest("feat8", ["feat_8"])
    ('hall', 'feat_8')
    >>> closest("temp", ["time", "temperature"]), closest("zip", ["city"])
    ('temperature', None)
    """
    by_lower = {each.lower(): each for each in reversed([*names])}
    lower = name.lower()
    if lower in by_lower:
        return by_lower[lower]
    begun = [
        each
        for each in reversed(by_lower)
        if min(len(each), len(lower)) >= SHORTEST
        and (each.startswith(lower) or lower.startswith(each))
    ]
    found = [*get_close_matches(lower, [*by_lower], n=1), *begun]
    return by_lower[found[0]] if found else None


def hint(name: str, names: Iterable[str]) -> str:
    """Return the end of an error that asks whether a similar name was meant; empty without one.

    Examples
    --------
    >>> hint("feat8", ["feat_8"]), hint("zip", ["city"])
    ('; did you mean feat_8?', '')
    """
    found = closest(name, names)
    return "" if found is None else f"; did you mean {found}?"

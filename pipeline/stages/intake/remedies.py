"""Remedies of usual mistakes, which end the reasons of dead letters."""

import re
from collections.abc import Iterable
from itertools import islice

from fluxplain.config import LabelType
from fluxplain.schemas.record import Target, Value
from fluxplain.spelling import closest

MOST_ALIKE, LONGEST_ALIKE = 5, 64
"""Names, and their characters, that are compared with the name of a missing feature."""

# not Python's own parsers: they take more with each version, and a reason must stay the same
_NUMBER = re.compile(r"\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*", re.ASCII)
_DATE = re.compile(r"\s{0,9}\d{4}-\d\d-\d\d([T ]|\Z)", re.ASCII)

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})


def for_missing(feature: str, others: Iterable[str]) -> str:
    """Return a hint at an unconfigured name that may have been meant for a missing feature.

    Examples
    --------
    >>> for_missing("feat_8", ["colour", "feat8"])
    "; is it 'feat8', which is no feature?"
    >>> for_missing("temperature", ["hall", "temp"])
    "; is it 'temp', which is no feature?"
    >>> for_missing("feat_8", ["colour"])
    ''
    """
    few = [name for name in islice(others, MOST_ALIKE) if len(name) <= LONGEST_ALIKE]
    found = closest(feature, few) if len(feature) <= LONGEST_ALIKE else None
    return "" if found is None else f"; is it {found!r}, which is no feature?"


def for_number(value: Value) -> str:
    """Return the remedy for a value that should be a number.

    Examples
    --------
    >>> for_number("1.5"), for_number("1,5"), for_number("NA")
    ('; send it without quotes', '; decimals need a point', '; send null for a missing value')
    >>> for_number("red")
    ''
    """
    if not isinstance(value, str) or len(value) > LONGEST_ALIKE:
        return ""
    if _NUMBER.fullmatch(value):
        return "; send it without quotes"
    if _DECIMAL_COMMA.fullmatch(value):
        return "; decimals need a point"
    return "; send null for a missing value" if value.strip().lower() in _MISSING else ""


def for_feature(value: Value) -> str:
    """Return the remedy for a value that should be the number of a numeric feature."""
    if isinstance(value, str) and _DATE.match(value):
        return "; a time is no feature, but ts beside x"
    others = '; "categorical" features take it' if isinstance(value, bool | str) else ""
    return for_number(value) or others


def for_label(y: Target, kind: LabelType) -> str:
    """Return the remedy for a label that is not of the configured type.

    Examples
    --------
    >>> for_label("low", "boolean")
    "; label.type is 'boolean', and 'string' takes it"
    >>> for_label("2", "integer")
    '; send it without quotes'
    """
    if isinstance(y, float) and y.is_integer() and kind in {"boolean", "integer"}:
        return "; send it without decimals"
    if isinstance(y, str):
        if kind in {"integer", "number"} and (remedy := for_number(y)):
            return remedy
        if kind == "boolean" and y.lower() in {"true", "false", "0", "1"}:
            return "; send it without quotes"
        takes = "integer" if y.isascii() and y.isdigit() else "string"
    else:
        takes = {bool: "boolean", int: "integer", float: "number"}[type(y)]
    return f"; label.type is {kind!r}, and {takes!r} takes it"

"""What a source is, and how its values become JSON."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from pipeline.config import Config, FeatureType, LabelType


class SourceError(ValueError):
    """Observations that cannot be read. The message is one line, for people."""


@dataclass(frozen=True)
class Source:
    """Observations in order, as JSON; iterating again begins anew.

    Attributes
    ----------
    name
        What was asked for.
    total
        Number of observations; None if it is not known cheaply, or there is no end.
    read
        Begins to read.
    """

    name: str
    total: int | None
    read: Callable[[], Iterator[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield each observation as it goes on the topic ``features``."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a file, beside the features.

    Attributes
    ----------
    label, id, ts
        Of what becomes ``y``, ``id`` and ``ts`` of the observation; None if there is none.
    """

    label: str | None = None
    id: str | None = None
    ts: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """What it is for → its name, of those that there are."""
        named = {"label": self.label, "id": self.id, "ts": self.ts}
        return {use: name for use, name in named.items() if name is not None}


FIELDS = {"label": "y", "id": "id", "ts": "ts"}
"""What a column is for → the field of the observation."""


def check_columns(source: str, header: Sequence[str], config: Config, columns: Columns) -> None:
    """Raise ``SourceError`` unless each feature and the others have one column.

    The label's is its own.
    """
    listed = f"its columns, separated by commas, are {', '.join(header)}"
    for feature in config.features:
        if feature not in header:
            raise SourceError(f"{source} has no column for the feature {feature!r}: {listed}")
    for use, name in columns.names.items():
        if name not in header:
            raise SourceError(f"{source} has no column {name!r} for the {use}: {listed}")
    label = columns.label
    if label in config.features:
        raise SourceError(f"{source}: the column {label!r} cannot be both a feature and the label")
    for name in (*config.features, *columns.names.values()):
        if header.count(name) > 1:
            raise SourceError(f"{source} has more than one column {name!r}: {listed}")


def as_written(text: str) -> int | str:
    """Return the integer that the text is, if it is written as JSON writes it; else the text.

    Examples
    --------
    >>> as_written("198"), as_written("0198"), as_written("a-198"), as_written("9" * 20)
    (198, '0198', 'a-198', '99999999999999999999')
    """
    return int(text) if _INTEGER.fullmatch(text) else text


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
"""With more digits not all who read JSON keep them."""


def finite(text: str) -> float | str:
    """Return the number that the text is; the text if it is none."""
    try:
        number = float(text)
    except ValueError:
        return text
    # Python reads 1_000, but other programs do not write it
    return number if math.isfinite(number) and "_" not in text else text


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def label_of_text(text: str, kind: LabelType) -> bool | int | float | str:
    """Return the label that the text is in the configured type; the text if it is none."""
    if kind == "string":
        return text
    number = finite(text)
    if kind == "number":
        return number
    # programs that know only floating-point columns write the class 1 as 1.0
    whole = int(number) if isinstance(number, float) and _is_whole(number) else None
    if kind == "integer":
        return text if whole is None else whole
    return _BOOLEANS.get((text if whole is None else str(whole)).strip().lower(), text)


def label_of_value(y: Any, kind: LabelType) -> Any:
    """Return the label in the configured type, where it says the same; else as it is."""
    if kind == "string":
        return str(y)
    if isinstance(y, str):
        return y
    if kind == "boolean":
        return bool(y) if y in {0, 1} else y
    if kind == "integer":
        return int(y) if isinstance(y, bool) or _is_whole(float(y)) else y
    return float(y) if not isinstance(y, bool) else y


def plain(value: Any, kind: FeatureType = "numeric") -> Any:
    """Return a value that JSON has: Python's own in place of NumPy's, dates as text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        if kind == "categorical" and _is_whole(value):
            return int(value)
    return value


def _is_whole(number: float) -> bool:
    """Return whether an integer says the same; beyond 2⁵³ a float is no longer exact."""
    return number.is_integer() and abs(number) <= 2**53

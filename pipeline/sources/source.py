"""Interface of sources, and conversion of their values to JSON."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

import orjson

from fluxplain.config import Config, FeatureType, LabelType
from fluxplain.errors import UserError
from fluxplain.spelling import closest as closest_name

Convert = Callable[[Any], Any]

Column = tuple[str, str, Convert]
"""Field of the observation, name of the column, and conversion of its values."""

MOST_WHOLE = 2**63
"""Magnitude from which decimals become floats: not all JSON readers have larger integers."""


CSV_ENDINGS = (".csv", ".tsv", ".txt")
"""Endings of CSV files, whatever separates their cells; each may be followed by ``.gz``."""


def is_csv(source: str) -> bool:
    """Return whether a path is that of a CSV file, by its ending in any case.

    Examples
    --------
    >>> is_csv("U.CSV"), is_csv("data.tsv.gz"), is_csv("data.parquet")
    (True, True, False)
    """
    return source.lower().removesuffix(".gz").endswith(CSV_ENDINGS)


def is_parquet(source: str) -> bool:
    """Return whether a path is that of a Parquet file, by its ending in any case."""
    return source.lower().endswith(".parquet")


class SourceError(UserError, ValueError):
    """Observations that cannot be read. The message is one line, written for users."""


@dataclass(frozen=True)
class Source:
    """Observations in order, as JSON; each iteration reads from the beginning.

    `total` is None if counting would be slow, or if the source is endless.
    """

    name: str
    total: int | None
    read: Callable[[], Iterator[bytes]]

    def __iter__(self) -> Iterator[bytes]:
        """Yield each observation as a value of the topic ``features``."""
        return self.read()


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of the columns for ``y``, ``id`` and ``ts`` of an observation; None for none."""

    label: str | None = None
    id: str | None = None
    ts: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """Role → column name, for the named columns."""
        named = {"label": self.label, "id": self.id, "ts": self.ts}
        return {use: name for use, name in named.items() if name is not None}


def check_columns(source: str, header: Sequence[str], config: Config, columns: Columns) -> None:
    """Raise SourceError unless each feature and role has exactly one column.

    The label's column must be no feature.
    """
    listed = f"its columns, separated by commas, are {', '.join(header)}"
    for feature in config.features:
        if feature not in header:
            meant = closest(feature, header)
            raise SourceError(
                f"{source} has no column for the feature {feature!r}: {listed}{meant}"
            )
    for use, name in columns.names.items():
        if name not in header:
            meant = closest(name, header)
            raise SourceError(f"{source} has no column {name!r} for the {use}: {listed}{meant}")
    label = columns.label
    if label in config.features:
        raise SourceError(f"{source}: the column {label!r} cannot be both a feature and the label")
    for name in (*config.features, *columns.names.values()):
        if header.count(name) > 1:
            raise SourceError(f"{source} has more than one column {name!r}: {listed}")


def closest(name: str, names: Sequence[str]) -> str:
    """Return a hint at the name that may have been meant, empty without one."""
    found = closest_name(name, names)
    return "" if found is None else f"; did you mean {found!r}?"


def check_unique(source: str, names: Sequence[str]) -> None:
    """Raise SourceError if two columns have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SourceError(f"{source} has more than one column {name!r}")


class Observations:
    """Builds observations from the columns of a file; `passed` converts id and time."""

    def __init__(self, config: Config, columns: Columns, passed: Convert) -> None:
        self._features: list[Column] = [
            (name, name, partial(feature, kind=kind)) for name, kind in config.features.items()
        ]
        read: dict[str, Convert] = {
            "label": partial(label, kind=config.label.type),
            "id": passed,
            "ts": passed,
        }
        self._others: list[Column] = [
            ("y" if use == "label" else use, name, read[use]) for use, name in columns.names.items()
        ]

    def encode(self, row: Mapping[str, Any]) -> bytes:
        """Return the observation of a row: column → value, or None for a missing value."""
        return orjson.dumps({"x": _converted(row, self._features), **_converted(row, self._others)})


def _converted(row: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    return {field: read(row[name]) for field, name, read in columns if row[name] is not None}


def as_written(text: str) -> int | str:
    """Return the integer in a text in JSON's notation; otherwise the text.

    Examples
    --------
    >>> as_written("198"), as_written("0198"), as_written("a-198"), as_written("9" * 20)
    (198, '0198', 'a-198', '99999999999999999999')
    """
    return int(text) if _INTEGER.fullmatch(text) else text


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
"""At most 15 digits: not all JSON readers keep more."""


def finite(text: str) -> float | str:
    """Return the finite number in a text; otherwise the text."""
    try:
        number = float(text)
    except ValueError:
        return text
    # Python accepts 1_000, but no other program writes it
    return number if math.isfinite(number) and "_" not in text else text


def feature(value: Any, kind: FeatureType) -> Any:
    """Return a feature's value; for a numeric feature, text that is no finite number stays."""
    if isinstance(value, str):
        return finite(value) if kind == "numeric" else value
    return plain(value, kind)


def label(value: Any, kind: LabelType) -> Any:
    """Convert a label to the configured type if that keeps its value; otherwise leave it."""
    y = plain(value)
    if kind == "string":
        return str(y)
    if isinstance(y, str):
        return _label_of_text(y, kind)
    if kind == "boolean":
        return bool(y) if y in {0, 1} else y
    if kind == "integer":
        return int(y) if isinstance(y, bool) or _is_whole(float(y)) else y
    return float(y) if not isinstance(y, bool) else y


def plain(value: Any, kind: FeatureType = "numeric") -> Any:
    """Convert a value to a JSON type: NumPy's types to Python's, dates to text."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        is_whole = abs(value) < MOST_WHOLE and value == value.to_integral_value()
        value = int(value) if is_whole else float(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return str(value)
        if kind == "categorical" and _is_whole(value):
            return int(value)
    return value


_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def _label_of_text(text: str, kind: LabelType) -> bool | float | str:
    number = finite(text)
    if kind == "number":
        return number
    # programs with only floating-point columns write the class 1 as 1.0
    whole = int(number) if isinstance(number, float) and _is_whole(number) else None
    if kind == "integer":
        return text if whole is None else whole
    return _BOOLEANS.get((text if whole is None else str(whole)).strip().lower(), text)


def _is_whole(number: float) -> bool:
    """Return whether a float is exactly an integer; beyond 2⁵³ floats are no longer exact."""
    return number.is_integer() and abs(number) <= 2**53

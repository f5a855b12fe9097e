"""Converts data frames, exported or handmade, to records."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Protocol, runtime_checkable

import orjson

from fluxplain.results.columns import restored, restored_ice
from fluxplain.schemas import Change, Explanation, Prediction, Record

_DEFAULTS: dict[str, Any] = {
    "stream": "stream",
    "method": "ipfi",
    "previous_seq": None,
    "ts": None,
    "alpha": 0.0,
    "updates": 0,
    "std_error": 0.0,
    "increments": [],
}
"""Defaults of columns that a handmade frame of explanations may lack."""

_WHOLE = {
    *("seq", "previous_seq", "after_seq", "replay_seq", "window", "delay_bound", "updates"),
    *("rank_before", "rank_after", "ranked"),
}
"""Columns of integers, which a frame holds as floats if some are missing."""

_NESTED = {
    *("grid", "categories", "second_grid", "second_categories", "effect", "classes", "ice"),
    *("seqs", "increments", "curve_before", "curve_after", "probabilities"),
}
"""Columns of lists and objects; a frame holds them as such, as arrays, or as JSON text."""


@runtime_checkable
class Frame(Protocol):
    """A pandas data frame, or another class with this part of its interface."""

    @property
    def columns(self) -> Iterable[Any]:
        """Names of the columns."""

    def to_dict(self, orient: Any) -> list[dict[Any, Any]]:
        """Return one mapping per row for ``"records"``."""


def records_of(frame: Frame) -> list[Explanation | Change | Prediction]:
    """Return the records in the rows of a frame, exported or handmade.

    A handmade frame of explanations needs only ``seq``, ``feature`` and ``value``. A ``ValueError``
    names those that are missing.
    """
    columns = set(map(str, frame.columns))
    rows = [{str(k): _cell(str(k), v) for k, v in row.items()} for row in frame.to_dict("records")]
    if "kind" in columns:
        return [Change.validated(_fields(Change, row)) for row in rows]
    if "prediction" in columns:
        return [Prediction.validated(_fields(Prediction, row)) for row in rows]
    missing = sorted({"seq", "feature", "value"} - columns)
    if missing:
        raise ValueError(
            f"the frame lacks the columns {', '.join(missing)}: it must hold explanations (seq, "
            "feature, value, and optional fields of the schema), changes or predictions"
        )
    return [
        Explanation.validated({**_DEFAULTS, "seqs": [row["seq"]], **_fields(Explanation, row)})
        for row in rows
    ]


def _fields(kind: type[Record], row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's fields that have a value, and None for missing ones without a default."""
    is_export = "categories" in row
    found = restored(row) if is_export else dict(row)
    for name in ("curve_before", "curve_after"):
        if "categories" in (found.get(name) or ()):
            # pandas turns integers of a Parquet structure into floats if some rows have none
            found[name] = {**restored(found[name]), "seq": int(found[name]["seq"])}
    if is_export and row.get("ice") is not None:
        has_classes = row.get("classes") is not None
        found["ice"] = [restored_ice(each, has_classes=has_classes) for each in row["ice"]]
    needed = {f.name for f in fields(kind) if f.default is MISSING and kind is not Explanation}
    known = {field.name: found.get(field.name) for field in fields(kind)}
    return {name: v for name, v in known.items() if v is not None or name in needed}


def _cell(column: str, value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy
        value = value.tolist()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if column in _WHOLE:
        return int(value)
    if column == "incarnation":  # pandas reads "1" in a CSV file as a number
        return str(value)
    if column not in _NESTED:
        return value
    return orjson.loads(value) if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> Any:
    """Convert nested arrays, as Parquet gives them, to lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value

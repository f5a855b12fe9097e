"""Converts data frames, exported or handmade, to records."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Protocol, runtime_checkable

import orjson
import pyarrow as pa

from fluxplain.results.columns import columns_of, restored, restored_behind, restored_ice
from fluxplain.schemas import Change, Explanation, Prediction, Record

_DEFAULTS: dict[str, Any] = {
    "stream": "stream",
    "method": "ipfi",
    "previous_seq": None,
    "ts": None,
    "alpha": 0.0,
    "updates": 0,
    "std_error": None,
    "increments": [],
}
"""Defaults of columns that a handmade frame of explanations may lack."""

_TEXTS = {"stream", "feature", "model_version", "incarnation"}
"""Columns of text, which pandas reads from a CSV file as numbers if they look like some."""


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
    types = {c.name: c.type for kind in (Explanation, Change, Prediction) for c in columns_of(kind)}
    rows = [
        {str(name): _cell(str(name), value, types) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]
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
    found = restored(row) if is_export else {**row, **restored_behind(row)}
    for name in ("curve_before", "curve_after"):
        if "categories" in (found.get(name) or ()):
            found[name] = restored(found[name])
    if is_export and row.get("ice") is not None:
        has_classes = row.get("classes") is not None
        found["ice"] = [restored_ice(each, has_classes=has_classes) for each in row["ice"]]
    needed = {f.name for f in fields(kind) if f.default is MISSING and kind is not Explanation}
    known = {field.name: found.get(field.name) for field in fields(kind)}
    return {name: v for name, v in known.items() if v is not None or name in needed}


def _cell(column: str, value: Any, types: Mapping[str, pa.DataType]) -> Any:
    found = _typed(value, types.get(column, pa.string()))
    return str(found) if found is not None and column in _TEXTS else found


def _typed(value: Any, kind: pa.DataType) -> Any:
    """Return a value of a column's type from an array, JSON text, or a float for an integer.

    Integers become floats where pandas misses some, in structures too.
    """
    if hasattr(value, "tolist"):  # NumPy
        value = value.tolist()
    if isinstance(value, str) and pa.types.is_nested(kind):
        value = orjson.loads(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, Mapping):
        types = {each.name: each.type for each in kind} if pa.types.is_struct(kind) else {}
        return {k: _typed(v, types.get(k, pa.null())) for k, v in value.items()}
    if isinstance(value, list | tuple):
        inner = kind.value_type if pa.types.is_list(kind) else pa.null()
        return [_typed(each, inner) for each in value]
    return int(value) if pa.types.is_integer(kind) else value

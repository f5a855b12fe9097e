"""Exported frames, and frames by hand, as records."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Protocol, TypeVar, runtime_checkable

import orjson

from pipeline.monitor.plots.exported import original, original_ice
from schemas import FIRST_INCARNATION, Change, Explanation, Prediction
from schemas.change import Curve
from schemas.explanation import Ice

R = TypeVar("R", Explanation, Change, Prediction)

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
"""What a frame of explanations by hand may lack."""

_WHOLE = {
    *("seq", "previous_seq", "after_seq", "replay_seq", "window", "delay_bound", "updates"),
    *("rank_before", "rank_after", "ranked"),
}
"""Columns of whole numbers, which a frame holds as fractions where some are missing."""

_NESTED = {
    *("grid", "categories", "second_grid", "second_categories", "effect", "classes", "ice"),
    *("seqs", "increments", "curve_before", "curve_after", "probabilities"),
}
"""Columns of lists and objects: as such, as arrays, or as JSON text."""


@runtime_checkable
class Frame(Protocol):
    """A pandas data frame, or what has its rows in the same way."""

    @property
    def columns(self) -> Iterable[Any]:
        """Names of the columns."""

    def to_dict(self, orient: Any) -> list[dict[Any, Any]]:
        """Return one mapping a row for ``"records"``."""


def records_of(frame: Frame) -> list[Explanation | Change | Prediction]:
    """Return the records in the rows of a frame.

    Parameters
    ----------
    frame
        Explanations, changes or predictions: a row each, and columns as the fields of the records,
        with lists as such or as JSON. Explanations by hand need only ``seq``, ``feature`` and
        ``value``; then ``method`` is iPFI.

    Raises
    ------
    ValueError
        If it is none of them; the message names what is missing.

    Examples
    --------
    >>> import pandas as pd
    >>> [record] = records_of(pd.DataFrame({"seq": [7], "feature": ["age"], "value": [0.25]}))
    >>> record.method, record.seq, record.value, record.seqs
    ('ipfi', 7, 0.25, [7])
    """
    columns = set(map(str, frame.columns))
    rows = [{str(k): _cell(str(k), v) for k, v in row.items()} for row in frame.to_dict("records")]
    rows = [_typed(row, is_export="categories" in columns) for row in rows]
    if "kind" in columns:
        return [_record(Change, row) for row in rows]
    if "prediction" in columns:
        return [_record(Prediction, row) for row in rows]
    missing = sorted({"seq", "feature", "value"} - columns)
    if missing:
        raise ValueError(
            f"the frame lacks the columns {', '.join(missing)}: it must have explanations (seq, "
            "feature, value, and more as in the schema), changes or predictions"
        )
    return [_record(Explanation, {"seqs": [row["seq"]], **row}) for row in rows]


def _record(kind: type[R], row: Mapping[str, Any]) -> R:
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = row.get(field.name)
        if value is None and kind is Explanation and field.default is MISSING:
            value = _DEFAULTS.get(field.name)
        if value is None and field.name == "incarnation":
            value = FIRST_INCARNATION
        values[field.name] = value
    return kind(**values)


def _cell(column: str, value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
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


def _typed(row: dict[str, Any], *, is_export: bool) -> dict[str, Any]:
    """Return a row with objects for what is inside of it."""
    typed = dict(row)
    has_classes = row.get("classes") is not None
    for name in ("curve_before", "curve_after"):
        curve = row.get(name)
        if curve is not None:
            typed[name] = Curve(**(original(curve) if "categories" in curve else curve))
    if row.get("ice") is not None:
        ice = [original_ice(e, has_classes=has_classes) if is_export else e for e in row["ice"]]
        typed["ice"] = [Ice(**each) for each in ice]
    return original(typed) if is_export else typed


def _plain(value: Any) -> Any:
    """Return lists of lists, where Parquet gives arrays of arrays."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value

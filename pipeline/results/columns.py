"""Converts records to columns whose types never depend on the data, and back.

The columns follow from the records' definitions in ``schemas``:

- Text, numbers and booleans keep their type, and lists stay lists.
- Fields that may be any of them (an id, a time, a label, a class) are text, see :func:`as_text`.
- The points of a grid are numbers in ``grid``, or text in ``categories``; the other one is null.
- An effect always has the same depth: one surface per class, with one row per point of a pair's
  first feature. A curve is a surface of one row, and without classes there is one surface.
- Curves are structures.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson
import pyarrow as pa

from fluxplain.schemas import Record
from fluxplain.schemas.explanation import Effect, EffectErrors
from fluxplain.schemas.record import Typed, Value

SCALARS: dict[Any, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}

CURVES = pa.list_(pa.list_(pa.float64()))

SURFACES = pa.list_(CURVES)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, and the function ``of`` that returns its value from a record."""

    name: str
    type: pa.DataType
    of: Callable[[Any], Any]


def columns_of(record: type[Typed]) -> list[Column]:
    """Return the columns of a kind of record, in the order of its fields."""
    hints = get_type_hints(record)
    return [
        column
        for field in fields(record)
        for column in _columns(field.name, _without_none(hints[field.name]))
    ]


def schema_of(record: type[Record], *, nested: bool) -> pa.Schema:
    """Return the types of all columns; without ``nested``, lists and structures become text."""
    return pa.schema(
        [
            (c.name, c.type if nested or not pa.types.is_nested(c.type) else pa.string())
            for c in columns_of(record)
        ]
    )


def table_of(records: Sequence[Record], columns: Sequence[Column], schema: pa.Schema) -> pa.Table:
    """Return a table with one row per record."""
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        values = [column.of(record) for record in records]
        array = pa.array(values, column.type)  # also checks values that become text
        if field.type != column.type:
            texts = [None if value is None else orjson.dumps(value).decode() for value in values]
            array = pa.array(texts, field.type)
        arrays.append(array)
    return pa.Table.from_arrays(arrays, schema=schema)


def as_text(value: Value | None) -> str | None:
    """Encode a value of any type as text, from which :func:`from_text` restores it.

    Numbers and booleans become JSON. Text stays as it is, unless it could be read as JSON: then it
    is quoted.
    """
    if value is None or (isinstance(value, str) and not _reads_as_json(value)):
        return value
    return orjson.dumps(value).decode()


def from_text(text: Any) -> Any:
    """Decode a value that :func:`as_text` encoded."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def restored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Restore the fields of a record or a curve from a row's columns."""
    found = {name: value for name, value in row.items() if not name.endswith("categories")}
    for grid in ("grid", "second_grid"):
        categories = row.get(grid.replace("grid", "categories"))
        if categories is not None:
            found[grid] = [from_text(each) for each in categories]
    for name in ("classes", "values", "ids"):
        if found.get(name) is not None:
            found[name] = [from_text(each) for each in found[name]]
    classes = found.get("classes")
    if found.get("effect") is not None:
        effects = found["effect"]
        if found.get("second_grid") is None:
            effects = [surface[0] for surface in effects]
        found["effect"] = effects if classes is not None else effects[0]
    errors = found.get("effect_std_error")
    if errors is not None and classes is None:
        [found["effect_std_error"]] = errors
    return {**found, **restored_behind(found)}


def restored_behind(row: Mapping[str, Any]) -> dict[str, Any]:
    """Restore the fields of a change that say what is behind it, as far as a row has them."""
    found: dict[str, Any] = {}
    if row.get("evidence") is not None:
        found["evidence"] = [
            {**each, "id": from_text(each.get("id")), "value": from_text(each.get("value"))}
            for each in row["evidence"]
        ]
    if row.get("region") is not None:
        conditions = [
            {**each, "value": from_text(each.get("value"))} for each in row["region"]["conditions"]
        ]
        found["region"] = {**row["region"], "conditions": conditions}
    return found


def restored_ice(row: Mapping[str, Any], *, has_classes: bool) -> dict[str, Any]:
    """Restore the fields of one ICE curve."""
    effect = row["effect"]
    return {**restored({**row, "effect": None}), "effect": effect if has_classes else effect[0]}


def _reads_as_json(text: str) -> bool:
    try:
        json.loads(text or '""')
    except ValueError:
        return False
    except RecursionError:
        return True
    return True


def _columns(name: str, hint: Any) -> Iterator[Column]:
    if hint == list[Value]:
        categories = name.replace("grid", "categories")
        yield Column(name, pa.list_(pa.float64()), _getter(name, _numbers))
        yield Column(categories, pa.list_(pa.string()), _getter(name, _categories))
    elif hint == Effect:
        yield Column(name, SURFACES, _surfaces)
    elif hint == EffectErrors:
        yield Column(name, CURVES, _errors)
    elif hint == list[float] | list[list[float]]:
        yield Column(name, CURVES, _getter(name, _curves))
    else:
        arrow_type, convert = _type_of(hint)
        yield Column(name, arrow_type, _getter(name, convert))


def _getter(name: str, convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of an owner, which converts its field unless that is None."""

    def converted(owner: Any) -> Any:
        value = getattr(owner, name)
        return None if value is None else convert(value)

    return converted


def _type_of(hint: Any) -> tuple[pa.DataType, Callable[[Any], Any]]:
    """Return the type of a field's column and the conversion of its values."""
    if get_origin(hint) is Literal:
        return pa.string(), _same
    if get_origin(hint) is list:
        inner, convert = _type_of(*get_args(hint))
        return pa.list_(inner), lambda values: [convert(value) for value in values]
    if get_origin(hint) in {Union, UnionType}:
        return pa.string(), as_text
    if hint in SCALARS:
        return SCALARS[hint], _same
    columns = columns_of(hint)
    struct = pa.struct([(column.name, column.type) for column in columns])
    return struct, lambda owner: {column.name: column.of(owner) for column in columns}


def _same(value: Any) -> Any:
    return value


def _without_none(hint: Any) -> Any:
    if get_origin(hint) not in {Union, UnionType}:
        return hint
    return reduce(or_, (each for each in get_args(hint) if each is not NoneType))


def _numbers(points: Sequence[Value]) -> list[float] | None:
    return [float(point) for point in points] if all(map(_is_number, points)) else None


def _categories(points: Sequence[Value]) -> list[str | None] | None:
    return None if all(map(_is_number, points)) else [as_text(point) for point in points]


def _is_number(value: Value) -> bool:
    """Return whether a 64-bit float can hold the value."""
    return type(value) is float or (type(value) is int and float(value) == value)


def _surfaces(owner: Any) -> Any:
    """Return the effect of an explanation or a curve as [class][row][point]."""
    effect = owner.effect
    if effect is None:
        return None
    of_classes = effect if owner.classes is not None else [effect]
    return of_classes if owner.second_grid is not None else [[curve] for curve in of_classes]


def _errors(owner: Any) -> Any:
    """Return the standard errors of an explanation's effect as [class][point]."""
    errors = owner.effect_std_error
    return errors if errors is None or owner.classes is not None else [errors]


def _curves(effect: list[Any]) -> Any:
    """Return the effect of an ICE curve as [class][point]."""
    return effect if effect and isinstance(effect[0], list) else [effect]

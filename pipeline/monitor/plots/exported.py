"""Undoes what :mod:`pipeline.monitor.columns` does to records to give each column one type."""

import json
from collections.abc import Mapping
from typing import Any


def original(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record, or of a curve, of which a row of an export has the columns.

    Examples
    --------
    >>> row = {"grid": None, "categories": ["red", "1"], "effect": [[[0.5, 0.7]]]}
    >>> original(row)
    {'grid': ['red', 1], 'effect': [0.5, 0.7]}
    """
    fields = {name: value for name, value in row.items() if not name.endswith("categories")}
    for grid in ("grid", "second_grid"):
        categories = row.get(grid.replace("grid", "categories"))
        if categories is not None:
            fields[grid] = [_value(each) for each in categories]
    classes = fields.get("classes")
    if classes is not None:
        fields["classes"] = [_value(each) for each in classes]
    if fields.get("effect") is not None:
        is_pair = fields.get("second_grid") is not None
        fields["effect"] = _effect(fields["effect"], classes is not None, is_pair)
    return fields


def original_ice(row: Mapping[str, Any], *, has_classes: bool) -> dict[str, Any]:
    """Return the fields of one observation's curve."""
    fields = original({**row, "effect": None})
    effect = row["effect"]
    return {**fields, "effect": effect if has_classes else effect[0]}


def _effect(surfaces: list[Any], has_classes: bool, is_pair: bool) -> Any:
    effects = surfaces if is_pair else [surface[0] for surface in surfaces]
    return effects if has_classes else effects[0]


def _value(text: Any) -> Any:
    """Return a value of any kind from its text."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text

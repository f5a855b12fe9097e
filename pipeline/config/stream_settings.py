"""Settings of a single stream: the keys it may override, and how they are merged."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

TABLES = ("missing", "label", "model", "explain", "drift", "reasons")
"""Tables that a stream may override."""

SHARED = (
    *("label.type", "label.column", "label.topic", "model.directory", "model.shards"),
    *("explain.groups", "explain.ipdp.pairs"),
)
"""Keys in them that all streams share: they determine topics, roles, fields of records, and the
explained names, each of which has a partition."""

DEPENDENT = {
    "factory": ("params", "version", "evaluator"),
    "detector": ("params", "delta", "grace_period", "false_alarms"),
}
"""Key → sibling keys whose common values no longer apply when a stream overrides this key."""

MAX_PARTITION = 9_999
"""Largest partition number of ``features``; each partition has its own state."""


def _partition(key: object) -> object:
    if isinstance(key, str) and not re.fullmatch(r"0|[1-9][0-9]*", key):
        raise ValueError(f"must be the number of a partition, from 0 to {MAX_PARTITION:,}")
    return key


Partition = Annotated[int, BeforeValidator(_partition), Field(ge=0, le=MAX_PARTITION)]

Own = Mapping[str, Mapping[str, Any]]
"""Table → a stream's own keys. As ``dict``, numbers from the environment would stay strings."""


def override_errors(own: Own) -> Iterator[str]:
    """Yield an error for each table or key that a stream may not override; it begins with the key.

    >>> [line[:40] for line in override_errors({"model": {"shards": 2}, "drift": {"delta": 0.1}})]
    ['model.shards must be the same for all st']
    """
    for table in own:
        if table not in TABLES:
            yield f"{table} cannot be set for one stream; allowed here: {', '.join(TABLES)}"
    for key in SHARED:
        value: object = own
        for name in key.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            yield f"{key} must be the same for all streams, as {', '.join(SHARED)} must be"


def merged(common: BaseModel, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's fields; a stream's own values override the common ones, recursively."""
    fields = dict(common)
    for key in own.keys() & DEPENDENT.keys():
        for name in DEPENDENT[key]:
            fields.pop(name, None)
    return fields | {key: _joined(fields.get(key), value) for key, value in own.items()}


def _joined(common: object, own: object) -> object:
    if isinstance(own, Mapping):
        if isinstance(common, BaseModel):
            return merged(common, own)
        if isinstance(common, Mapping):
            return {**common, **own}
    return own

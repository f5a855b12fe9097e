"""Settings that one stream has of its own: which there may be, and how they join the common ones.

What the streams share cannot differ: their topics and roles, what is in a record, and the names of
what is explained, since each has its partition.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

TABLES = ("missing", "label", "model", "explain", "drift")
"""Tables that a stream may have of its own."""

SHARED = (
    *("label.type", "label.column", "label.topic", "model.directory", "model.shards"),
    *("explain.groups", "explain.ipdp.pairs"),
)
"""Keys of these tables that are the same for all streams."""

BEGINS_ANEW = {
    "factory": ("params", "version", "evaluator"),
    "detector": ("params", "delta", "grace_period"),
}
"""Key → the keys beside it that mean nothing, or something else, without its common value."""

MAX_PARTITION = 9_999
"""Of ``features``, each of which has a state."""


def _partition(key: object) -> object:
    if isinstance(key, str) and not re.fullmatch(r"0|[1-9][0-9]*", key):
        raise ValueError(f"must be the number of a partition, from 0 to {MAX_PARTITION:,}")
    return key


Partition = Annotated[int, BeforeValidator(_partition), Field(ge=0, le=MAX_PARTITION)]

Own = Mapping[str, Mapping[str, Any]]
"""Table → what a stream has in it of its own. With ``dict``, the environment's numbers and lists
would stay texts."""


def refused(own: Own) -> Iterator[str]:
    """Yield what a stream may not have of its own, a line for each table or key, beginning with it.

    Examples
    --------
    >>> [line[:40] for line in refused({"model": {"shards": 2}, "drift": {"delta": 0.1}})]
    ['model.shards must be the same for all st']
    """
    for table in own:
        if table not in TABLES:
            yield f"{table} cannot be set for one stream; allowed here: {', '.join(TABLES)}"
    for key in SHARED:
        if _has(own, key):
            yield f"{key} must be the same for all streams, as {', '.join(SHARED)} must be"


def merged(common: BaseModel, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a table; what a stream has of its own goes before the common ones.

    Likewise in the tables within it, such as ``model.params``. If a factory or detector is named,
    what is said of the common one is left out.
    """
    fields = {name: getattr(common, name) for name in type(common).model_fields}
    for key in own.keys() & BEGINS_ANEW.keys():
        for name in BEGINS_ANEW[key]:
            fields.pop(name, None)
    for key, value in own.items():
        before = fields.get(key)
        if isinstance(before, BaseModel) and isinstance(value, Mapping):
            fields[key] = merged(before, value)
        elif isinstance(before, Mapping) and isinstance(value, Mapping):
            fields[key] = {**before, **value}
        else:
            fields[key] = value
    return fields


def _has(table: object, key: str) -> bool:
    first, _, rest = key.partition(".")
    if not isinstance(table, Mapping) or first not in table:
        return False
    return not rest or _has(table[first], rest)

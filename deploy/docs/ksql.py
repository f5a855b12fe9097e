"""Generates ksqlDB statements for the topics, from the records' JSON Schemas."""

from collections.abc import Mapping
from typing import Any

from fluxplain.schemas import Change, Explanation, Prediction, Reasons, Record

STREAMS = (Prediction, Reasons, Explanation, Change)

PREFIX = "fluxplain."

_SCALARS = {"string": "VARCHAR", "integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}


def statements() -> str:
    """Return a `CREATE STREAM` statement for each topic that people query."""
    return "\n".join(["```sql", "\n\n".join(map(statement, STREAMS)), "```"])


def statement(record: type[Record]) -> str:
    """Return the statement that creates a stream of a topic, with the records' field names."""
    schema = record.json_schema()
    columns = ["`message_key` VARCHAR KEY"]
    columns += _columns(schema["properties"], schema.get("$defs", {}))
    listed = ",\n".join(f"  {column}" for column in columns)
    return (
        f"CREATE STREAM {record.TOPIC} (\n{listed}\n) WITH (\n"
        f"  KAFKA_TOPIC = '{PREFIX}{record.TOPIC}', KEY_FORMAT = 'KAFKA', VALUE_FORMAT = 'JSON'\n);"
    )


def type_of(schema: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return the ksqlDB type of a JSON Schema, with its definitions by name; a union is text.

    Examples
    --------
    >>> type_of({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, {})
    'ARRAY<BIGINT>'
    >>> type_of({"anyOf": [{"type": "integer"}, {"type": "string"}]}, {})
    'VARCHAR'
    """
    match schema:
        case {"anyOf": kinds}:
            others = [kind for kind in kinds if kind != {"type": "null"}]
            return type_of(others[0], known) if len(others) == 1 else "VARCHAR"
        case {"$ref": path}:
            parts = _columns(known[path.rpartition("/")[2]]["properties"], known)
            return f"STRUCT<{', '.join(parts)}>"
        case {"items": kind}:
            return f"ARRAY<{type_of(kind, known)}>"
        case _:
            return _SCALARS[schema["type"]]


def _columns(properties: Mapping[str, Any], known: Mapping[str, Any]) -> list[str]:
    # quoted: some names are words of SQL, and ksqlDB would make the others upper-case
    return [f"`{name}` {type_of(kind, known)}" for name, kind in properties.items()]

"""Converts Avro values to JSON values, and back."""

import io
import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import orjson
from fastavro.read import LOGICAL_READERS

from fluxplain.schemas import BadRecordError, Record
from fluxplain.schemas.avro import avro_schema

MAX_LONG = 2**63 - 1
MAX_INTEGER = 2**64 - 1
"""Largest integer that is read."""

MOST_DECIMAL_BYTES = 416
"""Longest decimal in bytes: 1,000 digits. Conversion takes quadratic time: minutes for 1 MB."""

LEAST_BYTES = {
    **dict.fromkeys(("boolean", "int", "long", "bytes", "string", "enum", "array", "map"), 1),
    "null": 0,
    "float": 4,
    "double": 8,
}

NAMED = {"record", "error", "enum", "fixed"}

_read_decimal = LOGICAL_READERS["bytes-decimal"]


def _short_decimal(data: bytes, *schemas: Any) -> Any:
    if len(data) > MOST_DECIMAL_BYTES:
        raise ValueError(
            f"a decimal has {len(data):,} bytes, but must have at most {MOST_DECIMAL_BYTES}"
        )
    return _read_decimal(data, *schemas)


LOGICAL_READERS["bytes-decimal"] = LOGICAL_READERS["fixed-decimal"] = _short_decimal


def reader(texts: Sequence[str]) -> Callable[[bytes], dict[str, Any]]:
    """Return a reader of records with the last of these schemas; it may refer to the others.

    Raises BadRecordError for an invalid schema, or for one that could turn a short message into a
    large or deep value: by recursion, or by parts that need no bytes.
    """
    named: dict[str, Any] = {}
    try:
        for text in texts:
            parsed = fastavro.parse_schema(json.loads(text), named, _force=True)
        _Sizes(named).least(parsed)
    except BadRecordError:
        raise
    except Exception as error:
        raise BadRecordError(f"its schema cannot be read as Avro: {_in_one_line(error)}") from None

    def read(payload: bytes) -> dict[str, Any]:
        stream = io.BytesIO(payload)
        try:
            value = _plain(fastavro.schemaless_reader(stream, parsed, None))
        except Exception as error:  # malformed bytes may raise anything
            raise BadRecordError(f"not Avro of its schema: {_in_one_line(error)}") from None
        if left := len(payload) - stream.tell():
            raise BadRecordError(f"not Avro of its schema: {left} bytes are left")
        if not isinstance(value, dict):
            raise BadRecordError("not a record, as its schema says")
        return value

    return read


def writer(kind: type[Record]) -> Callable[[Record], bytes]:
    """Return a writer of one type of records; it raises for a record that does not match."""
    schema = fastavro.parse_schema(avro_schema(kind))

    def write(record: Record) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, _exact(orjson.loads(record.encode())))
        return stream.getvalue()

    return write


class _Sizes:
    """Smallest encoded size of values, in bytes; each named type is examined once."""

    def __init__(self, named: dict[str, Any]) -> None:
        self._named = named
        self._least: dict[str, int | None] = {}

    def least(self, schema: Any) -> int:
        if isinstance(schema, list):
            for member in schema:
                if member != "null":
                    self.least(member)
            return 1
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(kind, dict | list):
            return self.least(kind)
        if kind in NAMED or kind in self._named:
            return self._of_named(schema["name"] if kind in NAMED else kind)
        return self._of_kind(kind, schema)

    def _of_named(self, name: str) -> int:
        if name not in self._least:
            self._least[name] = None
            schema = self._named[name]
            self._least[name] = self._of_kind(schema["type"], schema)
        least = self._least[name]
        if least is None:
            raise BadRecordError(f"its schema is recursive ({name})")
        return least

    def _of_kind(self, kind: str, schema: Any) -> int:
        if kind in {"record", "error"}:
            least = sum(self.least(field["type"]) for field in schema["fields"])
        elif kind == "fixed":
            least = schema["size"]
        else:
            for part in ("items", "values"):
                if isinstance(schema, dict) and part in schema:
                    self.least(schema[part])
            least = LEAST_BYTES[kind]
        if least == 0:
            raise BadRecordError(f"its schema has a part that needs no bytes ({kind})")
        return least


def _plain(value: Any) -> Any:
    """Return a JSON value: times become text, bytes what Avro's own JSON encoding has."""
    convert = _CONVERSIONS.get(type(value))
    return value if convert is None else convert(value)


def _whole_or_float(value: Decimal) -> int | float:
    is_whole = value == value.to_integral_value() and abs(value) <= MAX_INTEGER
    return int(value) if is_whole else float(value)


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    float: lambda value: value if math.isfinite(value) else str(value),
    dict: lambda value: {name: _plain(each) for name, each in value.items()},
    list: lambda value: [_plain(each) for each in value],
    Decimal: _whole_or_float,
    datetime: lambda value: value.isoformat().replace("+00:00", "Z"),
    date: date.isoformat,
    time: time.isoformat,
    bytes: lambda value: value.decode("latin-1"),
    UUID: str,
}


def _exact(value: Any) -> Any:
    """Return a value with integers beyond Avro's range as exact decimals."""
    if isinstance(value, dict):
        return {name: _exact(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_exact(each) for each in value]
    return Decimal(value) if type(value) is int and value > MAX_LONG else value


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"

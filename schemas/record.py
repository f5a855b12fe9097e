"""Base of all records: JSON on the wire, typed and validated."""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar, Self, cast

import orjson
from pydantic import ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema

Value = bool | int | float | str
"""The value of one feature."""

Label = bool | int | str
"""A class."""

Target = Label | float
"""A predicted or true target: a class, or a number."""

Number = int | float

Timestamp = int | float | str
"""The input record's own time, in any format; passed through."""

Incarnation = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}(/[1-9][0-9]{0,18}){0,2}$")]
"""A stream's incarnation, to which the record belongs: see :class:`schemas.Prediction`."""

MAX_RECORD_BYTES = 900_000
"""Largest record made of one observation, in bytes; brokers accept messages up to 1 MB."""

FIRST_INCARNATION: Incarnation = "1"


class BadRecordError(ValueError):
    """A record that cannot be used. The message is the reason, written for users."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Base of all JSON objects."""

    # strict: "1" and true are no numbers, and a NaN would spoil every mean that it enters
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, allow_inf_nan=False)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Self], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept a dict for the object itself; its fields stay strict."""
        schema = handler(source)
        _fail_fast(schema)
        return {**schema, "strict": False}


@dataclass(frozen=True, slots=True)
class Record(Typed):
    """Base of all records. A record is one JSON object on its topic."""

    TOPIC: ClassVar[str]
    """Name of the topic, without the prefix."""

    def message_key(self) -> str | None:
        """Return the message key; None for the key of the input message."""
        return None

    def message_headers(self) -> Mapping[str, bytes]:
        """Return the message's headers."""
        return {}

    def encode(self) -> bytes:
        """Return the record as JSON. Floats come back exactly."""
        return orjson.dumps(self)

    @classmethod
    def decode(cls, value: bytes | None) -> Self:
        """Return the record in a message.

        Raises
        ------
        BadRecordError
            If the message is not JSON, or :meth:`of` refuses its fields.
        """
        return cls.of(load_object(value))

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields; raise ``BadRecordError`` if they are none."""
        return cls.validated(fields)

    @classmethod
    def validated(cls, fields: dict[str, Any]) -> Self:
        """Return the record of fields that have its types, or raise ``BadRecordError``."""
        try:
            record: Self = _adapter(cast(Hashable, cls)).validate_python(fields)
            return record
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "record"
            raise BadRecordError(f"{where}: {first['msg']}") from None

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema (2020-12) of the record."""
        schema = _adapter(cast(Hashable, cls)).json_schema()
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _fail_fast(schema: Any) -> None:
    """Stop validating a list at its first wrong item: all errors can take 800 times its size."""
    if isinstance(schema, dict):
        if schema.get("type") == "list":
            schema["fail_fast"] = True
        schema = list(schema.values())
    if isinstance(schema, list | tuple):
        for part in schema:
            _fail_fast(part)


def load_object(value: bytes | None) -> dict[str, Any]:
    """Return the JSON object in a message.

    Raises
    ------
    BadRecordError
        If it holds none.
    """
    if value is None:
        raise BadRecordError("the message has no value (a tombstone)")
    try:
        fields = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise BadRecordError(f"not JSON: {error}{_remedy(value)}") from None
    if not isinstance(fields, dict):
        raise BadRecordError(f"not a JSON object, but {describe(fields)}")
    return fields


def _remedy(value: bytes) -> str:
    """Return the remedy of a usual mistake in a message that is not JSON."""
    if value.startswith(b"\0"):
        return "; it begins as messages of a schema registry do: set registry.url"
    if b"NaN" in value or b"Infinity" in value:
        return "; JSON has no NaN or Infinity: send null for a missing value"
    # a dict that Python printed
    return "; JSON has double quotes" if value.startswith((b"{'", b"b'")) else ""


def describe(value: object) -> str:
    """Return a value's JSON type and its shortened JSON, for a message.

    Examples
    --------
    >>> describe({"a": 1}), describe(True), describe("red")
    ('an object {"a":1}', 'a boolean true', 'a string "red"')
    """
    kinds = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    if value is None:
        return "null"
    try:
        return f"{kinds[type(value)]} {shown(value)}"
    except TypeError:  # orjson reads deeper nesting than it writes
        return f"{kinds[type(value)]}, deeply nested"


def shown(value: object, limit: int = 60) -> str:
    """Return a value's shortened JSON, for a message.

    Examples
    --------
    >>> shown(198), shown("198"), shown("1" * 9, limit=5)
    ('198', '"198"', '"1111…')
    """
    text = orjson.dumps(value).decode()
    return text if len(text) <= limit else text[:limit] + "…"


@cache
def _adapter(cls: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(type, cls))


def is_newer(incarnation: Incarnation, than: Incarnation) -> bool:
    """Return whether an incarnation of a stream began after another one.

    Examples
    --------
    >>> is_newer("9", than="1"), is_newer("10/4", than="9/7"), is_newer("1/7", than="1/12")
    (True, True, False)
    >>> is_newer("1/7", than="1")
    True
    """
    return incarnation_key(incarnation) > incarnation_key(than)


@lru_cache(maxsize=1_000)
def incarnation_key(incarnation: Incarnation) -> tuple[int, ...]:
    """Return a sort key of a stream's incarnations, the oldest first."""
    return tuple(map(int, incarnation.split("/")))


def stream_name(topic: str, partition: int) -> str:
    """Return the name of a stream: topic and partition, as Kafka's tools print them.

    Examples
    --------
    >>> stream_name("features", 3)
    'features-3'
    """
    return f"{topic}-{partition}"


@lru_cache(maxsize=1_000)  # keeps no refused names, which may be long
def parse_stream(name: str) -> tuple[str, int]:
    """Return topic and partition of a stream.

    Raises
    ------
    BadRecordError
        If it is not a name that :func:`stream_name` writes.

    Examples
    --------
    >>> parse_stream("fluxplain.features-3")
    ('fluxplain.features', 3)
    """
    if not _STREAM.fullmatch(name):
        raise BadRecordError(f"stream must be topic-partition, not {name[:300]!r}")
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


_STREAM = re.compile(r"[A-Za-z0-9._-]{1,249}-(0|[1-9][0-9]{0,8})")
"""A topic name that Kafka allows, and a partition without leading zeros."""

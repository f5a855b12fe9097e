"""The wire format: a value with a reference to its schema.

A zero byte and the schema's id (4 bytes) precede the value; or a header holds them, or a one and a
UUID.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from fluxplain.schemas import BadRecordError

HEADER = "__value_schema_id"

PREFIX = struct.Struct(">cI")

Reference = int | UUID


class Framed(NamedTuple):
    """A value in the wire format: the schema's id or UUID, and the encoded bytes."""

    schema: Reference
    payload: bytes


def unframed(value: bytes | None, headers: Mapping[str, bytes]) -> Framed | None:
    """Split a value in the wire format; return None for any other value.

    Raises BadRecordError if the reference to the schema is truncated or unknown.

    Examples
    --------
    >>> unframed(b"\\x00\\x00\\x00\\x00\\x07{}", {})
    Framed(schema=7, payload=b'{}')
    >>> unframed(b'{"x": {}}', {})
    """
    if value is None:
        return None
    header = headers.get(HEADER)
    if header is not None:
        return Framed(_reference(header), value)
    if not value.startswith(b"\0"):  # JSON never does
        return None
    if len(value) < PREFIX.size:
        raise BadRecordError("the message ends within the id of its schema")
    return Framed(PREFIX.unpack_from(value)[1], value[PREFIX.size :])


def framed(schema: int, payload: bytes) -> bytes:
    """Return a value in the wire format."""
    return PREFIX.pack(b"\0", schema) + payload


def _reference(header: bytes) -> Reference:
    if header.startswith(b"\0") and len(header) == PREFIX.size:
        return int.from_bytes(header[1:], "big")
    if header.startswith(b"\1") and len(header) == 17:
        return UUID(bytes=header[1:])
    raise BadRecordError(f"the header {HEADER} names no schema")

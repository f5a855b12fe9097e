"""The wire format: which schema a value has, and where it begins.

Before the value stand a 0 and the schema's id, 4 bytes; or a header holds as much, or a 1 and the
schema's UUID.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from schemas import BadRecordError

HEADER = "__value_schema_id"

OF_ID = b"\x00"
OF_UUID = b"\x01"

PREFIX = struct.Struct(">cI")

Reference = int | UUID
"""Id or UUID of a schema."""


class Framed(NamedTuple):
    """A value in the wire format.

    Attributes
    ----------
    schema
        Which one it has.
    payload
        Its bytes, as the schema's type wants them.
    """

    schema: Reference
    payload: bytes


def unframed(value: bytes | None, headers: Mapping[str, bytes]) -> Framed | None:
    """Return what is in a message; None if it is not in the wire format.

    Raises
    ------
    BadRecordError
        If it begins as one that is, and ends too soon.

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
    if not value.startswith(OF_ID):  # JSON never does
        return None
    if len(value) < PREFIX.size:
        raise BadRecordError("the message ends within the id of its schema")
    return Framed(PREFIX.unpack_from(value)[1], value[PREFIX.size :])


def framed(schema: int, payload: bytes) -> bytes:
    """Return a value in the wire format."""
    return PREFIX.pack(OF_ID, schema) + payload


def _reference(header: bytes) -> Reference:
    if header.startswith(OF_ID) and len(header) == PREFIX.size:
        schema: int = PREFIX.unpack(header)[1]
        return schema
    if header.startswith(OF_UUID) and len(header) == 17:
        return UUID(bytes=header[1:])
    raise BadRecordError(f"the header {HEADER} names no schema")

"""Reads Kafka's record batches, whatever bytes they hold, in bounded memory.

Kafka's clients raise an error at a header name that is not UTF-8, so one record stops a consumer
for good, and they unpack a compressed batch at once, however large it becomes. Here every offset
of a batch gives a record: an unreadable one holds the reason, and becomes a dead letter. The same
batch gives the same records and reasons on every machine.

References
----------
Kafka, "Message Format": https://kafka.apache.org/documentation/#recordbatch
"""

import mmap
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import cramjam
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.util import calc_crc32c

from fluxplain.kafka.headers import Unreadable

MAX_BATCH_BYTES = 32 * 1024 * 1024
"""Largest size of an unpacked batch, in bytes. Brokers take batches of 1 MB; compression reduces
JSON to a tenth or twentieth, and zeros to less than a thousandth."""

SMALL_BYTES = 16 * 1024
"""Size of a compressed batch, in bytes, up to which a small buffer is tried first."""

MAX_MESSAGE_BYTES = 1024 * 1024
"""Largest size of key, value and headers of a message, in bytes: by default, brokers take larger
ones only if compressed."""

MAX_HEADERS = 2_000
"""Largest number of headers: twice as many as the join role passes on, since it adds its own."""

Headers = tuple[tuple[str, bytes | None], ...]

MAGIC = 2
"""The message format that is read; brokers may still hold older ones, from before Kafka 0.11."""

_IS_COMPILED = DefaultRecordBatch is not _DefaultRecordBatchPy
"""Whether aiokafka's compiled parser is there; the Python one accepts truncated records."""

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CHECKED_FROM = struct.calcsize(">qiibI")

MAGIC_OFFSET, OLD_ATTRIBUTES_OFFSET = 16, 17
"""Offsets of the format in a batch, and of the compression in one of an older format."""

_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20  # it holds the broker's markers of transactions

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
"""Header of the Java client's snappy format: blocks, each preceded by its length."""

_GZIP = b"\x1f\x8b"

_Unpack = Callable[[memoryview, memoryview], int]

_FAILURES = cramjam.DecompressionError, zlib.error, struct.error

_FIRST_PIECE = 1024
"""First output size for each member of a gzip stream, in bytes; a batch may have very many."""


class FlawError(Exception):
    """A record or a whole batch is unreadable. The message has the reason."""


class BatchRecord(NamedTuple):
    """One record of a batch, with the attributes of aiokafka's.

    Headers with names that are not UTF-8 are left out. An unreadable record has the timestamp -1,
    no key, no value, and :class:`Unreadable` as its headers.
    """

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as sent by the broker: its bytes, and the fields of its header.

    ``next_offset`` is the first offset after it. ``count`` is the claimed number of records: fewer
    than offsets after compaction.
    """

    buffer: memoryview
    base_offset: int
    next_offset: int
    count: int
    magic: int
    crc: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int

    @classmethod
    def of(cls, buffer: memoryview) -> "Batch":
        """Return the batch in a buffer of at least 61 bytes."""
        base, _, _, magic, crc, attributes, last, first_at, max_at, producer, _, _, count = (
            _HEADER.unpack_from(buffer)
        )
        # at least one offset, or a reader would never get past it
        behind = base + max(last, 0) + 1
        return cls(buffer, base, behind, count, magic, crc, attributes, first_at, max_at, producer)

    @classmethod
    def of_old(cls, buffer: memoryview) -> "Batch":
        """Return a message in an older format, as an unreadable batch.

        A compressed one holds several messages, of which only the last offset is known.
        """
        (last,) = struct.unpack_from(">q", buffer)
        packed = buffer[OLD_ATTRIBUTES_OFFSET] & _CODEC_MASK
        first = 0 if packed else last
        return cls(buffer, first, last + 1, last + 1 - first, buffer[MAGIC_OFFSET], 0, 0, 0, 0, -1)

    def has(self, attribute: int) -> bool:
        """Return whether a bit such as TRANSACTIONAL is set."""
        return bool(self.attributes & attribute)

    @property
    def has_valid_crc(self) -> bool:
        """Whether the checksum matches; older formats are not checked."""
        checked = bytes(self.buffer[_CHECKED_FROM:])
        return self.magic < MAGIC or bool(calc_crc32c(checked) == self.crc)

    @property
    def is_dense(self) -> bool:
        """Whether each of its offsets has a record: compaction removed none."""
        return self.count == self.next_offset - self.base_offset

    def unpacked(self) -> memoryview:
        """Return the batch uncompressed, with its header.

        Raises ``FlawError`` if it cannot be unpacked into :data:`MAX_BATCH_BYTES`.
        """
        if self.magic < MAGIC:
            raise FlawError(f"it is in Kafka's message format {self.magic}, of before 0.11")
        codec = self.attributes & _CODEC_MASK
        if not codec:
            return self.buffer
        if codec not in _CODECS:
            raise FlawError(f"its batch has an unknown compression ({codec})")
        name, unpack = _CODECS[codec]
        packed = self.buffer[_HEADER.size :]
        if len(packed) <= SMALL_BYTES:
            with suppress(*_FAILURES):  # mostly enough, and far sooner there than a mapping
                return self._unpacked_into(bytearray(_HEADER.size + 16 * len(packed)), unpack)
        try:
            # a mapping is allocated where it is written
            return self._unpacked_into(mmap.mmap(-1, _HEADER.size + MAX_BATCH_BYTES), unpack)
        except _FAILURES:
            raise FlawError(
                f"its batch ({name}) cannot be unpacked into at most {MAX_BATCH_BYTES:,} bytes"
            ) from None

    def _unpacked_into(self, room: bytearray | mmap.mmap, unpack: "_Unpack") -> memoryview:
        whole = memoryview(room)
        n = unpack(self.buffer[_HEADER.size :], whole[_HEADER.size :])
        whole[: _HEADER.size] = self.buffer[: _HEADER.size]
        struct.pack_into(">h", whole, _CHECKED_FROM, self.attributes & ~_CODEC_MASK)
        return whole[: _HEADER.size + n]

    def records(self, unpacked: memoryview) -> Iterator[Any]:
        """Yield a record, readable or not, for each offset in the unpacked batch that has one."""
        index, least = 0, self.base_offset
        if _IS_COMPILED:
            is_dense, behind = self.is_dense, self.next_offset
            try:
                for read in DefaultRecordBatch(unpacked):
                    offset = read.offset
                    if not least <= offset < behind or (is_dense and offset > least):
                        break
                    index += 1
                    least = offset + 1
                    value = read.value
                    if read.headers or read.key or (value and len(value) > MAX_MESSAGE_BYTES):
                        yield _checked(read)
                    else:
                        yield read
            except Exception:  # noqa: S110 — the compiled parser refuses it
                pass
        if index < self.count:
            yield from self._parsed(unpacked, index, least)

    def unreadable(self, reason: str, start: int) -> Iterator[BatchRecord]:
        """Yield an unreadable record for each offset from ``start`` on."""
        for offset in range(start, self.next_offset):
            yield _unreadable(offset, reason)

    def _parsed(self, unpacked: memoryview, skip: int, least: int) -> Iterator[BatchRecord]:
        """Yield the records after the first ``skip``; ``least`` is the next one's least offset."""
        at = _HEADER.size
        for index in range(max(self.count, 0)):
            if least >= self.next_offset:
                return
            try:
                length, at = _varint(unpacked, at, len(unpacked))
                if not 0 <= length <= len(unpacked) - at:
                    raise FlawError("its length goes beyond its batch")
            except FlawError as error:
                yield from self.unreadable(f"the record cannot be read: {error}", least)
                return
            start, at = at, at + length
            if index < skip:
                continue
            record = self._record(unpacked, start, at, least)
            least = record.offset + 1
            yield record

    def _record(self, unpacked: memoryview, at: int, end: int, least: int) -> BatchRecord:
        try:
            timestamp_delta, at = _varint(unpacked, at + 1, end)
            delta, at = _varint(unpacked, at, end)
            offset = self.base_offset + delta
            if not least <= offset < self.next_offset or (self.is_dense and offset > least):
                raise FlawError(f"its offset is {delta:,} after the first of its batch")
            key, at = _sized(unpacked, at, end)
            value, at = _sized(unpacked, at, end)
            headers, names, at = _headers(unpacked, at, end)
            if at != end:
                raise FlawError("it does not end where its length says")
        except FlawError as error:
            return _unreadable(least, f"the record cannot be read: {error}")
        size = len(key or b"") + len(value or b"") + names
        if reason := _beyond_limits(size, len(headers)):
            return _unreadable(least, reason)
        if self.attributes & _LOG_APPEND_TIME:
            timestamp, kind = self.max_timestamp, 1
        else:
            # wrapped to 64 bits, as processors do
            timestamp, kind = (self.base_timestamp + timestamp_delta + 2**63) % 2**64 - 2**63, 0
        key_bytes, value_bytes = (None if each is None else bytes(each) for each in (key, value))
        kept = tuple(each for each in headers if each is not None)
        return BatchRecord(offset, timestamp, kind, key_bytes, value_bytes, kept)


def _beyond_limits(size: int, headers: int) -> str | None:
    """Return the reason if a record exceeds the limits, else None."""
    if size > MAX_MESSAGE_BYTES:
        return f"the message has {size:,} bytes, but must have at most {MAX_MESSAGE_BYTES:,}"
    if headers > MAX_HEADERS:
        return f"the message has {headers:,} headers, but must have at most {MAX_HEADERS:,}"
    return None


def _checked(read: Any) -> Any:
    """Return the parsed record, or an unreadable one if it exceeds the limits."""
    headers = read.headers
    size = len(read.key or b"") + len(read.value or b"")
    if headers:
        size += sum(len(name.encode()) + len(content or b"") for name, content in headers)
    reason = _beyond_limits(size, len(headers))
    return read if reason is None else _unreadable(read.offset, reason)


def _unreadable(offset: int, reason: str) -> BatchRecord:
    return BatchRecord(offset, -1, 0, None, None, Unreadable(reason))


def _gunzip(packed: memoryview, room: memoryview) -> int:
    """Unpack the members of a gzip stream; like Java, ignore trailing bytes."""
    done = at = 0
    while packed[at : at + 2] == _GZIP:
        member, piece = zlib.decompressobj(wbits=31), _FIRST_PIECE
        while not member.eof:
            if at >= len(packed):
                raise zlib.error("incomplete")
            content = member.decompress(packed[at : at + piece], len(room) - done + 1)
            if len(content) > len(room) - done:
                raise zlib.error("too large")
            room[done : done + len(content)] = content
            done += len(content)
            at = min(at + piece, len(packed)) - len(member.unused_data)
            piece *= 2
    if not at:
        raise zlib.error("no gzip")
    return done


def _unsnap(packed: memoryview, room: memoryview) -> int:
    if len(packed) <= len(_XERIAL) or packed[: len(_XERIAL)] != _XERIAL:
        return _unsnap_block(packed, room)
    done, at = 0, len(_XERIAL)
    while at < len(packed):
        (length,) = struct.unpack_from(">i", packed, at)
        at += 4
        if not 0 <= length <= len(packed) - at:
            raise struct.error("a block goes beyond the batch")
        done += _unsnap_block(packed[at : at + length], room[done:])
        at += length
    return done


def _unsnap_block(packed: memoryview, room: memoryview) -> int:
    if cramjam.snappy.decompress_raw_len(packed) > len(room):
        raise zlib.error("too large")
    return int(cramjam.snappy.decompress_raw_into(packed, room))


_CODECS: dict[int, tuple[str, _Unpack]] = {
    1: ("gzip", _gunzip),
    2: ("snappy", _unsnap),
    3: ("lz4", cramjam.lz4.decompress_into),
    4: ("zstd", cramjam.zstd.decompress_into),
}
"""Compression → its name, and what unpacks bytes into the given room and returns their number."""


def _varint(buffer: memoryview, at: int, end: int) -> tuple[int, int]:
    """Return a zigzag varint of at most 64 bits, and the position after it."""
    result = shift = 0
    while shift < 70:
        if at >= end:
            raise FlawError("it ends within a number")
        byte = buffer[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            result &= (1 << 64) - 1
            return (result >> 1) ^ -(result & 1), at
        shift += 7
    raise FlawError("a number in it has more than 64 bits")


def _sized(buffer: memoryview, at: int, end: int) -> tuple[memoryview | None, int]:
    """Return length-prefixed bytes, None for a negative length, and the position after them."""
    length, at = _varint(buffer, at, end)
    if length < 0:
        return None, at
    if length > end - at:
        raise FlawError("a part of it goes beyond its end")
    return buffer[at : at + length], at + length


def _headers(
    buffer: memoryview, at: int, end: int
) -> tuple[list[tuple[str, bytes | None] | None], int, int]:
    """Return the headers (None: name not UTF-8), their size, and the position after them."""
    count, at = _varint(buffer, at, end)
    if not 0 <= count <= (end - at) // 2:
        raise FlawError(f"it cannot hold {count:,} headers")
    headers: list[tuple[str, bytes | None] | None] = []
    size = 0
    for _ in range(count):
        name, at = _sized(buffer, at, end)
        content, at = _sized(buffer, at, end)
        if name is None:
            raise FlawError("a header has no name")
        size += len(name) + len(content or b"")
        if len(headers) > MAX_HEADERS or size > MAX_MESSAGE_BYTES:
            headers.append(None)  # only counted: the record is too large
            continue
        try:
            text = str(name, "utf-8")
        except UnicodeDecodeError:
            headers.append(None)
        else:
            headers.append((text, None if content is None else bytes(content)))
    return headers, size, at

"""Checkpoints as records of a compacted topic.

A checkpoint is a sequence of chunks, followed by its header. All records of one slot are in one
partition, by default without those of any other slot::

    key                                     value
    model features-0/1/0                    digest of the whole state (32 bytes), chunk 0
    model features-0/1/1                    digest of the whole state (32 bytes), chunk 1
    model features-0/1/header               the signed header

The number after the slot counts checkpoints modulo three, so that compaction keeps exactly three. A
tombstone (a record without a value) removes the earlier record of its key.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, Slot, State
from fluxplain.kafka.checkpoints.envelope import DamagedError, Envelope, RefusedError

CHUNK_BYTES = 900_000
"""Bytes of the state in one record; brokers take messages of 1 MB."""

GENERATIONS = 3
"""Number of a slot's checkpoints that compaction keeps: one being written, one complete, and one
for a former owner that does not know it yet."""

_DIGEST_BYTES = 32
_HEADER = "header"


class LogRecord(NamedTuple):
    """A record of the partition; no value means a tombstone."""

    offset: int
    key: bytes | None
    value: bytes | None


Windows = Iterable[Sequence[LogRecord]]
"""Windows of a partition from its end backwards, each in the order of the log."""


def split(
    slot: Slot, generation: int, header: bytes, state: State
) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of a checkpoint as (key, value), in writing order."""
    prefix = f"{slot}/{generation}"
    digest = hashlib.sha256(state).digest()
    for index, start in enumerate(range(0, len(state), CHUNK_BYTES)):
        yield f"{prefix}/{index}".encode(), digest + state[start : start + CHUNK_BYTES]
    # last: a header implies its chunks
    yield f"{prefix}/{_HEADER}".encode(), header


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint assembled from the records read so far; ``offset`` is its header's."""

    envelope: Envelope
    slot: Slot
    header: bytes
    offset: int
    generation: int
    chunks: Mapping[tuple[bytes, str], bytes]

    def lacks_chunks(self) -> bool:
        """Return whether the header is valid, but chunks are missing."""
        try:
            header = self.envelope.read_header(self.slot, self.header)
        except (DamagedError, RefusedError):
            return False
        return bool(len(self._state(header)) < header["bytes"])

    def open(self) -> Checkpoint:
        """Return the checkpoint; raise ``DamagedError`` or ``RefusedError``."""
        header = self.envelope.read_header(self.slot, self.header)
        return self.envelope.open(header, self._state(header))

    def _state(self, header: Mapping[str, Any]) -> bytes:
        digest, index = bytes.fromhex(header["sha256"]), 0
        state = bytearray()
        while len(state) < header["bytes"] and (chunk := self.chunks.get((digest, str(index)))):
            state += chunk
            index += 1
        return bytes(state)


def newest_first(windows: Windows, slot: Slot, envelope: Envelope) -> Iterator[FoundCheckpoint]:
    """Yield the slot's checkpoints, newest first; read further back while one lacks chunks."""
    removed: set[bytes] = set()
    chunks: dict[tuple[bytes, str], bytes] = {}
    waiting: deque[FoundCheckpoint] = deque()
    for window in windows:
        for (generation, name), record in _backwards(window, slot, removed):
            value = record.value or b""
            if name == _HEADER:
                waiting.append(
                    FoundCheckpoint(envelope, slot, value, record.offset, generation, chunks)
                )
            else:
                # keys are reused: the digest identifies the chunk's checkpoint
                chunks.setdefault((value[:_DIGEST_BYTES], name), value[_DIGEST_BYTES:])
        while waiting and not waiting[0].lacks_chunks():
            yield waiting.popleft()
    yield from waiting


def kept_keys(windows: Windows, slot: Slot) -> list[bytes]:
    """Return the keys of all records of the slot, to be removed by tombstones."""
    removed: set[bytes] = set()
    kept = [
        record.key or b"" for window in windows for _, record in _backwards(window, slot, removed)
    ]
    return sorted(set(kept))


def _backwards(
    window: Sequence[LogRecord], slot: Slot, removed: set[bytes]
) -> Iterator[tuple[tuple[int, str], LogRecord]]:
    """Yield the slot's records, newest first, without those that a tombstone has removed."""
    for record in reversed(window):
        key = record.key or b""
        place = _parse_key(slot, key)
        if place is None or key in removed:
            continue
        if record.value is None:
            removed.add(key)
        else:
            yield place, record


def _parse_key(slot: Slot, key: bytes) -> tuple[int, str] | None:
    """Return generation and name of a record of the slot; None for any other record."""
    found = re.fullmatch(rb"%b/(\d{1,3})/(\d{1,9}|header)" % re.escape(str(slot).encode()), key)
    return (int(found[1]), found[2].decode()) if found else None

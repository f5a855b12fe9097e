"""Batches that stop Kafka's usual clients, though brokers take them, and what they must give.

Each kind is one that Kafka 4.3.1 takes from any producer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fluxplain.kafka.faust.batches import MAX_BATCH_BYTES, MAX_HEADERS, MAX_MESSAGE_BYTES
from fluxplain.stages import Message
from tests.kit.batches import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    Batch,
    Header,
    batch,
    compressed,
    record,
    xerial,
)

BOMB_BYTES = 3 * MAX_BATCH_BYTES

FORGED: Sequence[Header] = (
    (b"fluxplain-origin", b"elsewhere-3@999999"),
    (b"fluxplain-origin-timestamp", b"1"),
    (b"fluxplain-writer", b"model-0@999999"),
    (b"fluxplain-previous", b"-1"),
    (b"fluxplain-origin\x00x", b"elsewhere-3@999999"),
    (b"tracestate", b"\xff" * 600),
    (b"traceparent", b"\xff\x00"),
)


@dataclass(frozen=True, slots=True)
class Poison:
    """A batch as it is sent, and what becomes of its offsets.

    ``values`` are what is read of each, ``reasons`` why it is a dead letter by its offset, or None.
    """

    batch: Batch
    values: Sequence[bytes | None]
    reasons: Sequence[str | None]

    def messages(self, topic: str, partition: int, offset: int) -> list[Message]:
        """Return what a stage is given when the batch is at an offset."""
        return [
            Message(topic, partition, offset + i, None, value, flaw=reason)
            for i, (value, reason) in enumerate(zip(self.values, self.reasons, strict=True))
        ]


def read(made: Batch, *values: bytes | None) -> Poison:
    """Return a batch whose records are all read."""
    return Poison(made, values, [None] * len(values))


def refused(made: Batch, reason: str) -> Poison:
    """Return a batch none of whose records can be read."""
    return Poison(made, [None] * made.count, [reason] * made.count)


def _too_many(codec: str) -> str:
    return (
        f"the record cannot be read: its batch ({codec}) cannot be unpacked into at most "
        f"{MAX_BATCH_BYTES:,} bytes"
    )


def _with(*headers: Header) -> Callable[[bytes], Poison]:
    return lambda good: read(batch([record(0, good, headers=headers)]), good)


def _bomb(codec: int, name: str) -> Callable[[bytes], Poison]:
    content = record(0, bytes(BOMB_BYTES)), record(1, b"{}")
    made = batch(content, codec)  # made once: it takes its time
    return lambda _good: refused(made, _too_many(name))


def _large(good: bytes) -> Poison:
    value = good + b" " * 2_000_000
    reason = f"the message has {len(value):,} bytes, but must have at most {MAX_MESSAGE_BYTES:,}"
    made = batch([record(0, good), record(1, value), record(2, good)], ZSTD)
    return Poison(made, [good, None, good], [None, reason, None])


def _many_headers(good: bytes) -> Poison:
    reason = f"the message has 5,000 headers, but must have at most {MAX_HEADERS:,}"
    return refused(batch([record(0, good, headers=[(b"a", b"1")] * 5_000)]), reason)


def _other_offsets(good: bytes) -> Poison:
    reason = "the record cannot be read: its offset is 5 after the first of its batch"
    made = batch([record(0, good), record(5, good), record(2, good)])
    return Poison(made, [good, None, good], [None, reason, None])


def poisons() -> dict[str, Callable[[bytes], Poison]]:
    """Return the name of each kind, and what makes one of a good value."""
    return {
        "a header name that is not UTF-8": _with((b"\xff\xfe", b"1"), (b"a", None)),
        "a header name of lone surrogates": _with((b"\xed\xa0\x80", b"1")),
        "header names that are empty or the same": _with((b"", b"1"), (b"", b"2"), (b"a\0", b"")),
        "forged headers": _with(*FORGED),
        "a huge header": _with((b"a", b"\xff" * 500_000)),
        "very many headers": _many_headers,
        "a bomb of gzip": _bomb(GZIP, "gzip"),
        "a bomb of lz4": _bomb(LZ4, "lz4"),
        "a bomb of zstd": _bomb(ZSTD, "zstd"),
        "a large message in a small batch": _large,
        "offsets that lie": _other_offsets,
        "gzip with something behind": lambda good: read(
            Batch(compressed(record(0, good), GZIP) + b"xyz", 1, GZIP), good
        ),
        "gzip in two parts": lambda good: read(
            Batch(compressed(record(0, good), GZIP) + compressed(record(1, good), GZIP), 2, GZIP),
            good,
            good,
        ),
        "lz4 with another end": lambda good: refused(
            Batch(compressed(record(0, good), LZ4)[:-3] + b"xyz", 1, LZ4), _too_many("lz4")
        ),
        "snappy of Java": lambda good: read(Batch(xerial(record(0, good)), 1, SNAPPY), good),
        "a tombstone": lambda _good: read(batch([record(0, None)]), None),
    }

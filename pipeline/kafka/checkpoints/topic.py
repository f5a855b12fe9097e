"""Checkpoints in a compacted topic, for workers that move between machines.

A checkpoint is a run of chunks and, after them, its header. All records of one slot are in one
partition, and by default no other slot's::

    key                                     value
    model features-0/1/0                    digest of the whole state (32 bytes), chunk 0
    model features-0/1/1                    digest of the whole state (32 bytes), chunk 1
    model features-0/1/header               the signed header

The number after the slot counts checkpoints modulo three, so that compaction keeps three of them
and no more. Loading reads from the partition's end backwards, no further than needed.
"""

import hashlib
import itertools
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from pipeline.config import Config
from pipeline.kafka.checkpoints.base import Checkpoint, Slot
from pipeline.kafka.checkpoints.envelope import (
    DamagedError,
    Envelope,
    Opener,
    RefusedError,
    newest_usable,
)
from pipeline.kafka.client import BrokerError, client_settings, log_offsets, partitions_of
from pipeline.kafka.producer import RecordProducer

CHUNK_BYTES = 900_000
"""Of the state in one record; brokers take messages of 1 MB."""

GENERATIONS = 3
"""Checkpoints of a slot that compaction keeps: one that is being written, one whole, and one for
a worker that lost its partition and does not know it yet."""

FIRST_WINDOW = 64
"""Records to read from the end at first: a few checkpoints of a large forest."""

READ_TIMEOUT_S = 30.0

_ROLES = ("model", "explainer", "drift")

_DIGEST_BYTES = 32
_HEADER = "header"


class TopicCheckpointStore:
    """Checkpoints in the topic ``checkpoints``.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    envelope
        Seals and opens them. It must have a key: unpickling what anybody may have written into
        the topic would run their code.
    """

    def __init__(self, config: Config, envelope: Envelope) -> None:
        if not envelope.signs:
            raise ValueError("checkpoints in a topic must be signed")
        self._config = config
        self._topic = config.topic("checkpoints")
        self._envelope = envelope
        self._producer = RecordProducer(config)
        self._partitions = len(partitions_of(config, self._topic))
        self._generations: dict[Slot, int] = {}

    def save(self, slot: Slot, checkpoint: Checkpoint) -> None:
        """Write the checkpoint; it is there when every record was acknowledged."""
        generation = (self._generations.get(slot, -1) + 1) % GENERATIONS
        prefix = f"{slot}/{generation}"
        header, state = self._envelope.seal(slot, checkpoint)
        digest = hashlib.sha256(state).digest()
        place = partition_of(slot, self._partitions)

        for index, start in enumerate(range(0, len(state), CHUNK_BYTES)):
            chunk = digest + state[start : start + CHUNK_BYTES]
            self._producer.send(self._topic, chunk, f"{prefix}/{index}".encode(), place)
        # last: who finds a header finds what it is about
        self._producer.send(self._topic, header, f"{prefix}/{_HEADER}".encode(), place)
        self._producer.flush()
        self._generations[slot] = generation

    def load(self, slot: Slot) -> Checkpoint | None:
        """Return the newest usable checkpoint, reading only the slot's own partition."""
        place = partition_of(slot, self._partitions)
        with _PartitionReader(self._config, self._topic, place) as reader:
            remedy = f"remove the records of {slot} from partition {place} of {self._topic}"
            return newest_usable(slot, self._candidates(slot, reader), remedy)

    def _candidates(self, slot: Slot, reader: "_PartitionReader") -> Iterator[tuple[str, Opener]]:
        """Yield the slot's checkpoints, the newest first, reading on when one lacks chunks."""
        chunks: dict[tuple[bytes, str], bytes] = {}
        waiting: list[tuple[Message, int]] = []  # headers with their generation, the newest first
        for records in reader.from_the_end():
            for record in reversed(records):
                generation, name = _parse_key(slot, record.key())
                value = record.value() or b""
                if name == _HEADER:
                    waiting.append((record, generation))
                elif name:
                    digest, chunk = value[:_DIGEST_BYTES], value[_DIGEST_BYTES:]
                    chunks.setdefault((digest, name), chunk)
            while waiting:
                record, generation = waiting[0]
                opener = _Opener(self._envelope, slot, record.value() or b"", chunks)
                if opener.lacks_chunks() and not reader.at_the_beginning:
                    break
                del waiting[0]
                self._generations[slot] = generation
                yield f"{self._topic}-{reader.partition}@{record.offset()}", opener


class _Opener:
    """Puts one checkpoint together, of what was read so far."""

    def __init__(
        self,
        envelope: Envelope,
        slot: Slot,
        header: bytes,
        chunks: Mapping[tuple[bytes, str], bytes],
    ) -> None:
        self._envelope = envelope
        self._slot = slot
        self._header = header
        self._chunks = chunks

    def lacks_chunks(self) -> bool:
        """Return whether the header is fine, but chunks of its state were not found."""
        try:
            header = self._envelope.read_header(self._slot, self._header)
        except (DamagedError, RefusedError):
            return False
        return bool(len(self._state(header)) < header["bytes"])

    def __call__(self) -> Checkpoint:
        header = self._envelope.read_header(self._slot, self._header)
        return self._envelope.open(header, self._state(header))

    def _state(self, header: Mapping[str, Any]) -> bytes:
        digest = bytes.fromhex(header["sha256"])
        state = bytearray()
        for index in itertools.count():
            chunk = self._chunks.get((digest, str(index)))
            if not chunk or len(state) >= header["bytes"]:
                return bytes(state)
            state += chunk
        raise AssertionError("unreachable")


def partition_of(slot: Slot, partitions: int) -> int:
    """Return where a slot's records are; it never changes while there are enough partitions.

    Examples
    --------
    >>> [partition_of(Slot(role, "t", 1), 12) for role in ("model", "explainer", "drift")]
    [3, 4, 5]
    """
    return (len(_ROLES) * slot.partition + _ROLES.index(slot.role)) % partitions


def _parse_key(slot: Slot, key: bytes | None) -> tuple[int, str]:
    """Return generation and name of a record of the slot; an empty name for any other record."""
    owner, _, rest = (key or b"").decode(errors="replace").rpartition(f"{slot}/")
    generation, _, name = rest.partition("/")
    if owner or not (generation.isascii() and generation.isdigit() and len(generation) < 4):
        return 0, ""
    return int(generation), name


class _PartitionReader:
    """Reads one partition from its end backwards, in windows that grow."""

    def __init__(self, config: Config, topic: str, partition: int) -> None:
        self.partition = partition
        self.at_the_beginning = False
        self._topic = topic
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": config.topic("checkpoints"),  # never joined: a partition is assigned
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )

    def from_the_end(self) -> Iterator[list[Message]]:
        """Yield the records of the newest window, then of the one before it, and so on.

        Raises
        ------
        BrokerError
            If the broker does not answer.
        """
        try:
            low, end = self._bound(OFFSET_BEGINNING), self._bound(OFFSET_END)
            window = FIRST_WINDOW
            while end > low:
                start = max(low, end - window)
                self.at_the_beginning = start == low
                yield self._read(start, end)
                end, window = start, window * 4
        except KafkaException as error:
            raise BrokerError(
                f"cannot read checkpoints from {self._topic}: {error.args[0].str()}"
            ) from None

    def _bound(self, which: int) -> int:
        asked = (self._consumer, self._topic, [self.partition], which, READ_TIMEOUT_S)
        return log_offsets(*asked)[self.partition]

    def _read(self, start: int, end: int) -> list[Message]:
        self._consumer.assign([TopicPartition(self._topic, self.partition, start)])
        records: list[Message] = []
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline:
            for message in self._consumer.consume(100, 0.5):
                deadline = time.monotonic() + READ_TIMEOUT_S
                problem = message.error()
                if problem is None and message.offset() < end:
                    records.append(message)
                ended = problem is not None and problem.code() == KafkaError._PARTITION_EOF
                if ended or (problem is None and message.offset() >= end - 1):
                    return records
        raise BrokerError(
            f"no record of {self._topic}-{self.partition} came for {READ_TIMEOUT_S:.0f} s"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._consumer.close()

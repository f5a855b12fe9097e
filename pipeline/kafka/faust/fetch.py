"""Replaces the parts of aiokafka's consumer that unpack fetched batches.

aiokafka's own parts raise an error at a header name that is not UTF-8, unpack a compressed batch
however large it becomes, and hold one unpacked batch per partition. These use
:mod:`fluxplain.kafka.faust.batches`, and bound what a call returns and what is held in memory.
"""

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiokafka.consumer import consumer, fetcher
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import CorruptRecordException
from aiokafka.record.control_record import ABORT_MARKER, ControlRecord
from aiokafka.structs import ConsumerRecord

from fluxplain.kafka.faust.batches import (
    CONTROL,
    MAGIC,
    MAGIC_OFFSET,
    OLD_ATTRIBUTES_OFFSET,
    TRANSACTIONAL,
    Batch,
    FlawError,
)
from fluxplain.kafka.headers import size_of

MAX_DRAINED_BYTES = 4 * 1024 * 1024
"""Limit of one call, in bytes of messages and of batches unpacked for them; a first message may
exceed it. So the consumer's thread soon returns to its heartbeats."""

IDLE_MAX_WAIT_MS = 200
"""Milliseconds that a broker may hold a fetch of all assigned partitions. A seek waits for it."""

LARGE_BYTES = 1024 * 1024
"""Size in bytes above which only one unpacked batch is held; others are unpacked again."""

_LENGTH_OFFSET, _LOG_OVERHEAD, _BATCH_OVERHEAD = 8, 12, 61


@dataclass(slots=True)
class Drain:
    """Counts the bytes of messages that one call returns, and of batches unpacked for them."""

    bytes: int = 0
    has_messages: bool = False

    def begin(self) -> None:
        """Count from zero."""
        self.bytes, self.has_messages = 0, False

    @property
    def is_full(self) -> bool:
        """Whether the call must return."""
        return self.bytes >= MAX_DRAINED_BYTES and self.has_messages


DRAIN = Drain()
"""The process's counter: it has one consumer."""


class RecordSet:
    """The batches in a broker's answer; the last one may be incomplete."""

    def __init__(self, content: bytes) -> None:
        self._buffer = memoryview(content)
        self._end = self._next_end(0)
        self._at = 0

    def size_in_bytes(self) -> int:
        """Return the size of the answer."""
        return len(self._buffer)

    def has_next(self) -> bool:
        """Return whether another batch is complete."""
        return self._end is not None

    def next_batch(self) -> Batch:
        """Return the next batch; raise ``CorruptRecordException`` if it is something else."""
        buffer = self._buffer[self._at : self._end]
        is_old = len(buffer) > OLD_ATTRIBUTES_OFFSET and buffer[MAGIC_OFFSET] < MAGIC
        if not is_old and (len(buffer) < _BATCH_OVERHEAD or buffer[MAGIC_OFFSET] != MAGIC):
            raise CorruptRecordException(f"a batch is not in Kafka's message format {MAGIC}")
        self._at += len(buffer)
        self._end = self._next_end(self._at)
        return Batch.of_old(buffer) if is_old else Batch.of(buffer)

    def _next_end(self, start: int) -> int | None:
        if len(self._buffer) - start < _LOG_OVERHEAD:
            return None
        length = self._buffer[start + _LENGTH_OFFSET : start + _LOG_OVERHEAD]
        end = start + _LOG_OVERHEAD + int.from_bytes(length, "big")
        return end if end <= len(self._buffer) else None


class PartitionRecords(fetcher.PartitionRecords):
    """Yields the messages of one partition in a broker's answer, like aiokafka's class.

    Each offset with a record gives a message; an unreadable one has
    :class:`~fluxplain.kafka.headers.Unreadable` headers. It continues at ``next_fetch_offset``.
    """

    _holder: "weakref.ref[PartitionRecords] | None" = None
    _batch: Batch | None = None
    _unpacked: Iterator[Any] | None = None
    next_fetch_offset: int

    def _unpack_records(self) -> None:
        """Start no generator, which would keep the fetched bytes alive by a reference cycle."""

    def __next__(self) -> "ConsumerRecord[bytes, bytes]":
        while True:
            batch = self._batch
            if batch is None:
                self._batch = self._next_batch()
                continue
            records = self._unpacked
            if records is None:
                records = self._unpacked = self._unpack(batch)
            for record in records:
                offset = record.offset
                # a batch read from its middle contains earlier messages too
                if offset >= self.next_fetch_offset:
                    self.next_fetch_offset = offset + 1
                    key, value, headers = record.key, record.value, record.headers
                    return ConsumerRecord(
                        self._tp.topic,
                        self._tp.partition,
                        offset,
                        record.timestamp,
                        record.timestamp_type,
                        key,
                        value,
                        None,
                        -1 if key is None else len(key),
                        -1 if value is None else len(value),
                        headers if isinstance(headers, tuple) else tuple(headers),
                    )
            # also if compaction removed the last records
            self.next_fetch_offset = max(self.next_fetch_offset, batch.next_offset)
            self._batch = self._unpacked = None

    def _next_batch(self) -> Batch | None:
        """Return the next batch; None if its records are not for readers.

        Raises ``CorruptRecordException`` for a wrong checksum.
        """
        if not self._records.has_next():
            raise StopIteration
        batch: Batch = self._records.next_batch()
        if self._check_crcs and not batch.has_valid_crc:
            raise CorruptRecordException(f"Invalid CRC - {self._tp}")
        is_committed = self._isolation_level == fetcher.READ_COMMITTED
        if is_committed:
            self._consume_aborted_up_to(batch.base_offset)
            if batch.has(CONTROL) and _is_abort(batch):
                self._aborted_producers.discard(batch.producer_id)
        is_aborted = batch.has(TRANSACTIONAL) and batch.producer_id in self._aborted_producers
        if batch.has(CONTROL) or (is_committed and is_aborted):
            self.next_fetch_offset = max(self.next_fetch_offset, batch.next_offset)
            return None
        return batch

    def _unpack(self, batch: Batch) -> Iterator[Any]:
        start = max(batch.base_offset, self.next_fetch_offset)
        try:
            unpacked = batch.unpacked()
        except FlawError as error:
            DRAIN.bytes += MAX_DRAINED_BYTES  # the attempt took long
            return batch.unreadable(f"the record cannot be read: {error}", start)
        if unpacked is not batch.buffer:
            DRAIN.bytes += len(unpacked)
            if len(unpacked) > LARGE_BYTES:
                self._hold()
        return batch.records(unpacked)

    def _hold(self) -> None:
        """Make the previous holder drop its unpacked batch, which it unpacks again."""
        holder = PartitionRecords._holder
        other = holder() if holder else None
        if other is not None and other is not self:
            other._unpacked = None
        PartitionRecords._holder = weakref.ref(self)


def _is_abort(batch: Batch) -> bool:
    """Return whether a control batch marks an aborted transaction."""
    record = next(batch.records(batch.buffer), None)
    if record is None or record.key is None or len(record.key) < 4:
        return False
    return bool(ControlRecord.parse(record.key) == ABORT_MARKER)


class FetchResult(fetcher.FetchResult):
    """aiokafka's class, limited by :data:`DRAIN`."""

    _partition_records: PartitionRecords | None

    def getall(self, max_records: int | None = None) -> "list[ConsumerRecord[bytes, bytes]]":
        """Return the next messages."""
        records = self._partition_records
        if records is None or not self.check_assignment(self._topic_partition):
            return []
        messages: list[ConsumerRecord[bytes, bytes]] = []
        while not DRAIN.is_full and (max_records is None or len(messages) < max_records):
            message = next(records, None)
            if message is None:
                self._update_position()
                self._partition_records = None
                return messages
            DRAIN.bytes += size_of(message)
            DRAIN.has_messages = True
            messages.append(message)
        self._update_position()
        return messages


class Fetcher(fetcher.Fetcher):
    """Lets the broker hold a request longer if it is about all assigned partitions.

    It returns at the first new message anyway. A request without the partitions whose messages are
    still being taken must return soon: there is no other one to the same broker meanwhile.
    """

    def _get_actions_per_node(self, assignment: Any) -> Any:
        actions = super()._get_actions_per_node(assignment)
        requests = [request for _, request in actions[0]]
        asked = sum(len(partitions) for request in requests for _, partitions in request.topics)
        if asked == len(assignment.tps):
            for request in requests:
                request._max_wait_ms = IDLE_MAX_WAIT_MS
        return actions


def install() -> None:
    """Make the consumers of this process read with these classes."""
    fetcher.MemoryRecords = RecordSet
    fetcher.PartitionRecords = PartitionRecords
    fetcher.FetchResult = FetchResult
    consumer.Fetcher = Fetcher
    # during a rebalance aiokafka would return nothing until all members have joined again; what is
    # read of a partition that moves does no harm, since former owners are ignored
    SubscriptionState.reassignment_in_progress = False

"""Delivers several messages of a partition as one of Faust's.

Faust spends more on delivering a message than most roles on processing it: two coroutines, an
event, a place in a queue, counters. So its scheduler hands out consecutive messages together.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from faust.transport.utils import DefaultSchedulingStrategy
from faust.types import TP
from faust.types.tuples import ConsumerMessage

from fluxplain.kafka.headers import size_of

MOST_MESSAGES = 16
"""Largest number of messages in a delivery: other partitions wait for as many."""

MOST_BYTES = 1024 * 1024
"""Size of a delivery in bytes, from which on nothing is added."""

Record = Any
"""aiokafka's ``ConsumerRecord``, whose timestamp is in milliseconds."""


class Received(NamedTuple):
    """A message; see :class:`fluxplain.kafka.driver.Received`."""

    topic: str
    partition: int
    offset: int
    timestamp: float | None
    key: bytes | None
    value: bytes | None
    headers: Any
    generation_id: int


class Delivery(ConsumerMessage):
    """Consecutive messages of a partition; for Faust, it is the first of them, without a value."""

    __slots__ = ("records",)

    records: list[Record]

    @classmethod
    def of(cls, tp: TP, records: list[Record], generation_id: int) -> "Delivery":
        """Return the delivery of some messages, at least one."""
        sizes: Any = (None, None, -1, -1)  # neither value nor checksum
        made = cls(
            *tp, records[0].offset, None, 0, None, None, *sizes, tp, generation_id=generation_id
        )
        made.records = records
        return made

    @property
    def next_offset(self) -> int:
        """The offset after the last message."""
        return int(self.records[-1].offset) + 1

    def messages(self) -> Iterator[Received]:
        """Yield the messages."""
        for record in self.records:
            yield Received(
                record.topic,
                record.partition,
                record.offset,
                None if record.timestamp is None else record.timestamp / 1000.0,
                record.key,
                record.value,
                record.headers,
                self.generation_id,
            )


class Together(DefaultSchedulingStrategy):
    """Faust's round robin over topics and partitions, of several messages at a time."""

    def iterate(self, records: Mapping[TP, list[Record]]) -> Iterator[tuple[TP, Any]]:
        """Yield lists of consecutive messages with their partition."""
        together = {tp: [*_parts(several)] for tp, several in records.items()}
        delivered: Iterator[tuple[TP, Any]] = super().iterate(together)
        return delivered


def _parts(records: list[Record]) -> Iterator[list[Record]]:
    part: list[Record] = []
    size = 0
    for record in records:
        if part and (len(part) == MOST_MESSAGES or size >= MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(record)
        size += size_of(record)
    if part:
        yield part

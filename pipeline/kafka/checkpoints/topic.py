"""Checkpoints in a compacted topic, for workers that move between machines.

Loading reads the slot's partition from its end backwards, no further than needed.
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaException,
)

from pipeline.config import Config
from pipeline.kafka.asking import ask
from pipeline.kafka.checkpoints.base import Checkpoint, Savable, Slot
from pipeline.kafka.checkpoints.envelope import Envelope, Opener, newest_usable
from pipeline.kafka.checkpoints.records import (
    GENERATIONS,
    LogRecord,
    kept_keys,
    newest_first,
    split,
)
from pipeline.kafka.client import BrokerError, client_settings, log_offsets, partitions_of
from pipeline.kafka.peek import Record, read_on
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.timeouts import CHECKPOINT_READ_S
from pipeline.kafka.writers import ANY, Begin
from pipeline.parts import Role

FIRST_WINDOW = 64
"""Records to read from the end at first: a few checkpoints of a large forest."""

LARGEST_WINDOW = 256
"""Records to read at once further back: they are in memory, and most have 900 kB."""

_PLACES: dict[Role, int] = {"model": 0, "explainer": 1, "drift": 2, "join": 2}
"""Role → which of the partitions for a partition of its input; what two share is small."""


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

    def save(self, slot: Slot, checkpoint: Savable) -> None:
        """Write the checkpoint; it is there when every record was acknowledged."""
        generation = (self._generations.get(slot, -1) + 1) % GENERATIONS
        place = partition_of(slot, self._partitions)
        for key, value in split(slot, generation, *self._envelope.seal(slot, checkpoint)):
            self._producer.send(self._topic, value, key, place)
        self._producer.flush()
        self._generations[slot] = generation

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint, reading only the slot's own partition."""
        with self._reader(slot) as reader:
            return newest_usable(slot, self._candidates(slot, reader), begin)

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot, of any writer."""
        with self._reader(slot) as reader:
            keys = kept_keys(reader.from_the_end(), slot)
        place = partition_of(slot, self._partitions)
        for key in keys:
            self._producer.send(self._topic, None, key, place)
        self._producer.flush()
        return bool(keys)

    def _reader(self, slot: Slot) -> "_PartitionReader":
        return _PartitionReader(self._config, self._topic, partition_of(slot, self._partitions))

    def _candidates(self, slot: Slot, reader: "_PartitionReader") -> Iterator[tuple[str, Opener]]:
        for found in newest_first(reader.from_the_end(), slot, self._envelope):
            self._generations[slot] = found.generation
            yield f"{self._topic}-{reader.partition}@{found.offset}", found.open


def partition_of(slot: Slot, partitions: int) -> int:
    """Return where a slot's records are; it never changes while there are enough partitions.

    Examples
    --------
    >>> [partition_of(Slot(role, "t", 1), 12) for role in ("model", "explainer", "drift")]
    [3, 4, 5]
    """
    return (3 * slot.partition + _PLACES[slot.role]) % partitions


class _PartitionReader:
    """Reads one partition from its end backwards, in windows that grow."""

    def __init__(self, config: Config, topic: str, partition: int) -> None:
        self.partition = partition
        self._config = config
        self._topic = topic
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": config.topic("checkpoints"),  # never joined: a partition is assigned
                "enable.auto.commit": False,
            }
        )

    def from_the_end(self) -> Iterator[list[LogRecord]]:
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
                yield self._read(start, end)
                end, window = start, min(window * 4, LARGEST_WINDOW)
        except KafkaException as error:
            raise BrokerError(
                f"cannot read checkpoints from {self._topic}: {error.args[0].str()}"
            ) from None

    def _bound(self, which: int) -> int:
        asked = (self._consumer, self._topic, [self.partition], which, CHECKPOINT_READ_S)
        what = f"cannot read checkpoints from {self._topic}"
        offsets = ask(self._config, self._consumer, self._topic, what, lambda: log_offsets(*asked))
        return offsets[self.partition]

    def _read(self, start: int, end: int) -> list[LogRecord]:
        records: list[LogRecord] = []

        def take(message: Record) -> bool:
            if message.offset < end:
                records.append(LogRecord(message.offset, message.key, message.value))
            return bool(message.offset < end - 1)

        place = self._topic, self.partition, start
        if read_on(self._config, *place, CHECKPOINT_READ_S, take) is None:
            raise BrokerError(f"cannot read {self._topic}-{self.partition}: it was cut off")
        return records

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._consumer.close()

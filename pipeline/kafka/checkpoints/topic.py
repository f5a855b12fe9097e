"""Checkpoints in a compacted topic, for workers that move between machines.

Loading reads the slot's partition from its end backwards, no further than needed.
"""

from collections.abc import Iterator
from contextlib import closing

from confluent_kafka import KafkaException

from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.checkpoints.checkpoint import Candidate, Checkpoint, Slot, Snapshot
from fluxplain.kafka.checkpoints.envelope import Envelope, newest_usable
from fluxplain.kafka.checkpoints.records import (
    GENERATIONS,
    LogRecord,
    kept_keys,
    newest_first,
    split,
)
from fluxplain.kafka.client import (
    BrokerError,
    TopicPartition,
    ask_log_ranges,
    asking_consumer,
    partitions_of,
)
from fluxplain.kafka.driver import Received
from fluxplain.kafka.faust.peek import read_on
from fluxplain.kafka.ownership.writers import ANY, Begin
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import CHECKPOINT_READ_S

FIRST_WINDOW = 64
"""Number of records in the first window, at the end: a few checkpoints of a large forest."""

LARGEST_WINDOW = 256
"""Largest number of records in a window: it is in memory, and most records have 900 kB."""

_ROLE_INDEX: dict[Role, int] = {"model": 0, "explainer": 1, "drift": 2, "join": 2}
"""Role → index among the three partitions per input partition; drift and join share one, since
their states are small."""


class TopicCheckpointStore:
    """Checkpoints in the topic ``checkpoints``, for a broker that answers.

    The envelope must have a key: anybody may write to the topic, and unpickling runs code.
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

    def save(self, slot: Slot, checkpoint: Checkpoint | Snapshot) -> None:
        """Write the checkpoint and wait until every record is acknowledged."""
        generation = (self._generations.get(slot, -1) + 1) % GENERATIONS
        partition = partition_of(slot, self._partitions)
        for key, value in split(slot, generation, *self._envelope.seal(slot, checkpoint)):
            self._producer.send(self._topic, value, key, partition)
        self._producer.flush()
        self._generations[slot] = generation

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint, reading only the slot's own partition."""
        return newest_usable(slot, self.candidates(slot), begin)

    def candidates(self, slot: Slot) -> Iterator[Candidate]:
        """Yield the slot's checkpoints, newest first; only the newest three are kept."""
        partition = partition_of(slot, self._partitions)
        windows = _windows(self._config, self._topic, partition)
        for found in newest_first(windows, slot, self._envelope):
            self._generations[slot] = found.generation
            yield Candidate(f"{self._topic}-{partition}@{found.offset}", found.open)

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot."""
        partition = partition_of(slot, self._partitions)
        keys = kept_keys(_windows(self._config, self._topic, partition), slot)
        for key in keys:
            self._producer.send(self._topic, None, key, partition)
        self._producer.flush()
        return bool(keys)


def partition_of(slot: Slot, partitions: int) -> int:
    """Return the partition of a slot's records; constant while there are enough partitions.

    Examples
    --------
    >>> [partition_of(Slot(role, "t", 1), 12) for role in ("model", "explainer", "drift")]
    [3, 4, 5]
    """
    return (3 * slot.partition + _ROLE_INDEX[slot.role]) % partitions


def _windows(config: Config, topic: str, partition: int) -> Iterator[list[LogRecord]]:
    """Yield windows of a partition's records, from the end backwards."""
    what = f"cannot read checkpoints from {topic}"
    tp, window = TopicPartition(topic, partition), FIRST_WINDOW
    with closing(asking_consumer(config, topic)) as consumer:
        log_range = ask_log_ranges(config, consumer, topic, [partition], what)[tp]
    low, end = log_range.start, log_range.stop
    while end > low:
        start = max(low, end - window)
        try:
            yield _read(config, tp, start, end)
        except KafkaException as error:
            raise BrokerError(f"{what}: {error.args[0].str()}") from None
        end, window = start, min(window * 4, LARGEST_WINDOW)


def _read(config: Config, tp: TopicPartition, start: int, end: int) -> list[LogRecord]:
    records: list[LogRecord] = []

    def take(message: Received) -> bool:
        if message.offset < end:
            records.append(LogRecord(message.offset, message.key, message.value))
        return message.offset < end - 1

    if read_on(config, *tp, start, CHECKPOINT_READ_S, take) is None:
        raise BrokerError(f"cannot read {tp}: its end was deleted meanwhile")
    return records

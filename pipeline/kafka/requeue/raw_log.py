"""Reads the topics that users write as they are: undecoded, and without open transactions."""

import math
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing

from confluent_kafka import Message

from fluxplain.config import Config, RegistrySettings
from fluxplain.kafka.client import (
    BrokerError,
    TopicPartition,
    ask_log_ranges,
    asking_consumer,
    partitions_of,
)
from fluxplain.kafka.topics.topic_reader import CANNOT_READ, GROUP, TopicReader

OPEN_TRANSACTION_S = 90.0
"""Seconds to wait for the end of a producer's transaction, behind which nothing can be read. By
default Kafka's clients end one after 60 s."""

POLL_S = 0.2


def read_now(config: Config, topic: str, starts: Mapping[int, int]) -> Iterator[Message]:
    """Yield everything that partitions hold now, from an offset of each on.

    ``topic`` has no prefix. Waits for transactions that are open now. Raises ``BrokerError``, also
    if one stays open.
    """
    logs = log_ranges(config, topic, starts)
    wanted = {tp: range(starts[tp.partition], log.stop) for tp, log in logs.items()}
    with _reader(config, topic, starts) as reader:
        deadline = time.monotonic() + OPEN_TRANSACTION_S
        while behind := [tp for tp, log in reader.extent().items() if log.stop < wanted[tp].stop]:
            if time.monotonic() > deadline:
                raise BrokerError(
                    f"a producer's transaction in {behind[0]} has been open for "
                    f"{OPEN_TRANSACTION_S:.0f} s, and what follows cannot be read: try again later"
                )
            time.sleep(POLL_S)
        yield from reader.until(wanted)


def read_ranges(config: Config, topic: str, ranges: Mapping[int, range]) -> Iterator[Message]:
    """Yield what is left of ranges of offsets, by partition; ``topic`` has no prefix."""
    starts = {partition: offsets.start for partition, offsets in ranges.items()}
    wanted = {TopicPartition(config.topic(topic), p): offsets for p, offsets in ranges.items()}
    with _reader(config, topic, starts) as reader:
        yield from reader.until(wanted)


def oldest_message_ms(config: Config, place: TopicPartition) -> float:
    """Return the timestamp of a partition's oldest message; infinity if it holds none."""
    name = place.topic.removeprefix(config.topics.prefix)
    log = log_ranges(config, name, [place.partition])[place]
    for message in read_ranges(config, name, {place.partition: log}):
        return float(message.timestamp()[1])
    return math.inf


def log_ranges(
    config: Config, topic: str, partitions: Collection[int]
) -> dict[TopicPartition, range]:
    """Return the offsets that partitions hold now, with those of open transactions."""
    full = config.topic(topic)
    there = [each for each in partitions_of(config, full) if each in partitions]
    settings = {"isolation.level": "read_uncommitted"}
    with closing(asking_consumer(config, config.topic(GROUP), **settings)) as consumer:
        return ask_log_ranges(config, consumer, full, there, CANNOT_READ)


def _reader(config: Config, topic: str, starts: Mapping[int, int]) -> TopicReader:
    # without the registry, which would turn values into plain JSON
    raw = config.model_copy(update={"registry": RegistrySettings()})
    return TopicReader(raw, [topic], from_beginning=True, starts=starts)

"""Reads the pipeline's topics without a consumer group."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, Message

from fluxplain.config import Config
from fluxplain.kafka.client import (
    BrokerError,
    TopicPartition,
    ask_log_ranges,
    asking_consumer,
    partitions_of,
)
from fluxplain.kafka.topics.decoded_messages import CANNOT_READ, DecodedMessages, tp_of

SILENCE_S = 30.0
"""Seconds without a message after which reading fails if the log holds more."""

QUEUED_KB = 8 * 1024
"""Kilobytes fetched ahead of the reader; librdkafka's default is 64 MB."""

GROUP = "reader"
"""Name of the group after the prefix; never joined, since partitions are assigned."""


class TopicReader:
    """Yields the messages of all partitions of some topics as they arrive.

    Messages in a configured schema registry's wire format become plain JSON; they wait while the
    registry does not answer. All methods raise ``BrokerError`` if the broker refuses, does not
    answer, or has no such topic.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topics
        Names without the prefix.
    from_beginning
        Start with the oldest message; otherwise with the next new one.
    starts
        Partition → the first offset to read, for the partitions to read; None for all.
    newest
        With ``from_beginning``, at most so many messages of each partition; None for all.
    """

    def __init__(
        self,
        config: Config,
        topics: Sequence[str],
        *,
        from_beginning: bool,
        starts: Mapping[int, int] | None = None,
        newest: int | None = None,
    ) -> None:
        self._config = config
        self._prefix = config.topics.prefix
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self._partitions = {
            topic: [p for p in partitions_of(config, topic) if starts is None or p in starts]
            for topic in map(config.topic, topics)
        }
        settings = {
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 50,
            "queued.max.messages.kbytes": QUEUED_KB,
        }
        self._consumer = asking_consumer(config, f"{self._prefix}{GROUP}", **settings)
        self._messages = DecodedMessages(config, self._consumer)
        begins = {
            TopicPartition(topic, partition): (starts or {}).get(partition, offset)
            for topic, partitions in self._partitions.items()
            for partition in partitions
        }
        self._ahead: dict[TopicPartition, range] = {}
        if from_beginning and newest is not None:
            for tp, offsets in self.extent().items():
                begins[tp] = max(offsets.start, offsets.stop - newest)
                self._ahead[tp] = range(begins[tp], offsets.stop)
        self._consumer.assign(
            [confluent_kafka.TopicPartition(*tp, begin) for tp, begin in begins.items()]
        )

    @property
    def backlog(self) -> int:
        """Number of unread messages among those at the start; 0 without ``newest``."""
        return sum(map(len, self._ahead.values()))

    @property
    def trouble(self) -> str | None:
        """The registry's error while messages wait for it; None if none wait."""
        trouble = self._messages.trouble
        return None if trouble is None else str(trouble)

    def poll(self, timeout_s: float, limit: int = 1000) -> list[Message]:
        """Return the messages that arrive within a time limit."""
        return [each for each in self._consume(timeout_s, limit) if not each.error()]

    def extent(self) -> dict[TopicPartition, range]:
        """Return the offsets that each partition holds now."""
        extent: dict[TopicPartition, range] = {}
        for topic, partitions in self._partitions.items():
            if partitions:
                extent |= ask_log_ranges(
                    self._config, self._consumer, topic, partitions, CANNOT_READ
                )
        return extent

    def until(self, extent: Mapping[TopicPartition, range]) -> Iterator[Message]:
        """Yield the messages below the ends of an extent, in the order of each partition."""
        self._ahead = {tp: offsets for tp, offsets in extent.items() if offsets}
        heard_at = time.monotonic()
        while self._ahead:
            messages = self._consume(0.2, 1000)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_S:
                raise self._messages.trouble or BrokerError(
                    f"{CANNOT_READ}: no message arrived for {SILENCE_S:.0f} s, although the log "
                    "has more"
                )
            for message in messages:
                end = extent.get(tp_of(message), range(0)).stop
                if not message.error() and int(message.offset() or 0) < end:
                    yield message

    def _consume(self, timeout_s: float, limit: int) -> list[Message]:
        """Return the next messages, and transient errors."""
        messages = self._messages.take(limit, timeout_s)
        if self._ahead:
            for message in messages:
                self._pass(message)
        return messages

    def _pass(self, message: Message) -> None:
        """Remove a message, and all before it, from the ranges ahead."""
        tp, error = tp_of(message), message.error()
        if tp not in self._ahead:
            return
        if not error:
            self._ahead[tp] = range(int(message.offset() or 0) + 1, self._ahead[tp].stop)
        # compaction and transactions leave no message at the last offset
        if not self._ahead[tp] or (error and error.code() == KafkaError._PARTITION_EOF):
            del self._ahead[tp]

    def name(self, message: Message) -> str:
        """Return the message's topic without the prefix."""
        return str(message.topic()).removeprefix(self._prefix)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def read_to_end(
    config: Config, topic: str, starts: Mapping[int, int] | None = None
) -> Iterator[Message]:
    """Yield the current messages of a topic, each partition in order; see :class:`TopicReader`."""
    with TopicReader(config, [topic], from_beginning=True, starts=starts) as reader:
        yield from reader.until(reader.extent())

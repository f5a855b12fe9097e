"""Reads the pipeline's topics without a consumer group."""

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException, Message

from fluxplain.config import Config
from fluxplain.kafka.client import (
    PASSING,
    BrokerError,
    TopicPartition,
    ask_log_ranges,
    asking_consumer,
    partitions_of,
    refusal,
)
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.registry.registry_wait import DisplayDecoder
from fluxplain.kafka.topics.unreadable import UnreadableBatches

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
        self._opener = DisplayDecoder(open_decoder(config))
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
        self._unreadable = UnreadableBatches(config, self._consumer)
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
        return None if self._opener.trouble is None else str(self._opener.trouble)

    def poll(self, timeout_s: float, limit: int = 1000) -> list[Message]:
        """Return the messages that arrive within a time limit."""
        return [each for each in self._consume(timeout_s, limit) if not each.error()]

    def extent(self) -> dict[TopicPartition, range]:
        """Return the offsets that each partition holds now."""
        extent: dict[TopicPartition, range] = {}
        for topic, partitions in self._partitions.items():
            if partitions:
                extent |= ask_log_ranges(self._config, self._consumer, topic, partitions, _WHAT)
        return extent

    def until(self, extent: Mapping[TopicPartition, range]) -> Iterator[Message]:
        """Yield the messages below the ends of an extent, in the order of each partition."""
        ahead = {tp: offsets for tp, offsets in extent.items() if offsets}
        heard_at = time.monotonic()
        while ahead:
            messages = self._consume(0.2, 1000)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_S:
                raise self._opener.trouble or BrokerError(
                    f"{_WHAT}: no message arrived for {SILENCE_S:.0f} s, although the log has more"
                )
            for message in messages:
                end = ahead.get(_tp_of(message), range(0)).stop
                _pass(ahead, message)
                if not message.error() and int(message.offset() or 0) < end:
                    yield message

    def _consume(self, timeout_s: float, limit: int) -> list[Message]:
        """Return the next messages, and transient errors."""
        read = self._read(timeout_s, limit) if self._opener.is_empty else []
        messages = self._opener.opened(read, timeout_s)
        if self.backlog:
            for message in messages:
                _pass(self._ahead, message)
        return messages

    def _read(self, timeout_s: float, limit: int) -> list[Message]:
        try:
            messages = self._unreadable.passed(self._consumer.consume(limit, timeout_s))
        except KafkaException as error:
            raise refusal(self._config, _WHAT, error.args[0]) from None
        _raise_permanent(self._config, messages)
        return messages

    def name(self, message: Message) -> str:
        """Return the message's topic without the prefix."""
        return str(message.topic()).removeprefix(self._prefix)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_to_end(
    config: Config, topic: str, starts: Mapping[int, int] | None = None
) -> Iterator[Message]:
    """Yield the current messages of a topic, each partition in order; see :class:`TopicReader`."""
    with TopicReader(config, [topic], from_beginning=True, starts=starts) as reader:
        yield from reader.until(reader.extent())


def without_errors(config: Config, messages: Sequence[Message]) -> list[Message]:
    """Return the messages without transient errors; raise ``BrokerError`` at other errors."""
    _raise_permanent(config, messages)
    return [message for message in messages if not message.error()]


def _tp_of(message: Message) -> TopicPartition:
    return TopicPartition(str(message.topic()), int(message.partition() or 0))


def _pass(ahead: dict[TopicPartition, range], message: Message) -> None:
    """Remove a message, and all before it, from the ranges ahead."""
    tp = _tp_of(message)
    if tp not in ahead:
        return
    if not message.error():
        ahead[tp] = range(int(message.offset() or 0) + 1, ahead[tp].stop)
    # compaction and transactions leave no message at the last offset
    if not ahead[tp] or (message.error() and _is_end(message)):
        del ahead[tp]


def _is_end(message: Message) -> bool:
    return bool(message.error().code() == KafkaError._PARTITION_EOF)


def _raise_permanent(config: Config, messages: Sequence[Message]) -> None:
    for message in messages:
        problem = message.error()
        if problem and problem.code() not in _PASSING:
            raise refusal(config, _WHAT, problem)


_WHAT = "cannot read the topics"

_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""Errors of a topic that was deleted meanwhile."""

_PASSING = PASSING - _GONE | {KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN}

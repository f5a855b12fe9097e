"""Reads the pipeline's topics as any consumer would, without a group."""

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

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
from pipeline.kafka.asking import PASSING, ask
from pipeline.kafka.client import (
    BrokerError,
    Place,
    client_settings,
    log_offsets,
    partitions_of,
    refusal,
)
from pipeline.kafka.registry.opener import Opener
from pipeline.kafka.registry.opening import open_decoder
from pipeline.kafka.unreadable import UnreadableBatches

SILENCE_S = 30.0
"""How long a broker may say nothing while there is more to read."""

QUEUED_KB = 8 * 1024
"""What is fetched ahead of who reads: librdkafka's own 64 MB are for faster readers."""

GROUP = "reader"
"""Name of the group, behind the prefix; it is never joined, since partitions are assigned."""


class TopicReader:
    """Messages of some topics, all partitions, as they come.

    What is in the wire format of a schema registry, if one is configured, comes as plain JSON; it
    waits while the registry does not answer.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topics
        Names without the prefix.
    from_beginning
        Start with the oldest message there is; else with the next new one.
    starts
        Partition → the first offset to read, for the partitions to read; None for all.
    newest
        With ``from_beginning``, start with at most so many messages of each partition; None for
        all.

    Raises
    ------
    BrokerError
        If the broker does not answer, or a topic does not exist.
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
        self._opener = Opener(open_decoder(config))
        self._prefix = config.topics.prefix
        offset = OFFSET_BEGINNING if from_beginning else OFFSET_END
        self._partitions = {
            topic: [p for p in partitions_of(config, topic) if starts is None or p in starts]
            for topic in map(config.topic, topics)
        }
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{self._prefix}{GROUP}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
                "fetch.error.backoff.ms": 50,
                "queued.max.messages.kbytes": QUEUED_KB,
            }
        )
        self._unreadable = UnreadableBatches(config, self._consumer)
        begins = {
            (topic, partition): (starts or {}).get(partition, offset)
            for topic, partitions in self._partitions.items()
            for partition in partitions
        }
        self._ahead: dict[Place, range] = {}
        if from_beginning and newest is not None:
            for place, offsets in self.extent().items():
                begins[place] = max(offsets.start, offsets.stop - newest)
                self._ahead[place] = range(begins[place], offsets.stop)
        self._consumer.assign([TopicPartition(*place, begin) for place, begin in begins.items()])

    @property
    def backlog(self) -> int:
        """How many messages are to be read of those that were there at the start.

        0 if there was no ``newest``: then nobody asked how many there were.
        """
        return sum(map(len, self._ahead.values()))

    @property
    def trouble(self) -> str | None:
        """Why messages that were read wait for the schema registry; None if none does."""
        return None if self._opener.trouble is None else str(self._opener.trouble)

    def poll(self, timeout_s: float, limit: int = 1000) -> list[Message]:
        """Return the next messages; none if none came in time.

        Raises
        ------
        BrokerError
            If the broker reports an error that does not pass by itself.
        """
        return [each for each in self._consume(timeout_s, limit) if not each.error()]

    def extent(self) -> dict[Place, range]:
        """Return which offsets of each partition are there now.

        Raises
        ------
        BrokerError
            If the broker does not answer.
        """
        extent: dict[Place, range] = {}
        for topic, partitions in self._partitions.items():
            if partitions:
                starts = self._log_offsets(topic, partitions, OFFSET_BEGINNING)
                ends = self._log_offsets(topic, partitions, OFFSET_END)
                extent |= {(topic, p): range(starts[p], ends[p]) for p in partitions}
        return extent

    def _log_offsets(self, topic: str, partitions: Sequence[int], which: int) -> dict[int, int]:
        return ask(
            self._config,
            self._consumer,
            topic,
            _WHAT,
            lambda: log_offsets(self._consumer, topic, partitions, which, SILENCE_S),
        )

    def until(self, extent: Mapping[Place, range]) -> Iterator[Message]:
        """Yield the messages below the ends of an extent, in the order of each partition.

        Raises
        ------
        BrokerError
            If the broker reports an error that does not pass by itself, or nothing comes any more.
        """
        ahead = {place: offsets for place, offsets in extent.items() if offsets}
        heard_at = time.monotonic()
        while ahead:
            messages = self._consume(0.2, 1000)
            if messages:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > SILENCE_S:
                raise self._opener.trouble or BrokerError(
                    f"{_WHAT}: nothing came for {SILENCE_S:.0f} s, but there is more"
                )
            for message in messages:
                end = ahead.get(_place(message), range(0)).stop
                _pass(ahead, message)
                if not message.error() and int(message.offset() or 0) < end:
                    yield message

    def _consume(self, timeout_s: float, limit: int) -> list[Message]:
        """Return the next messages, and errors that pass by themselves."""
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
        _raise_what_does_not_pass(self._config, messages)
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
    """Return what a topic holds now, each partition in order.

    Parameters
    ----------
    config
        The settings, for a broker that answers.
    topic
        Its name without the prefix.
    starts
        Partition → the first offset to read, for the partitions to read; None for everything.

    Raises
    ------
    BrokerError
        If the broker does not answer, has no such topic, or stops answering.
    """
    with TopicReader(config, [topic], from_beginning=True, starts=starts) as reader:
        yield from reader.until(reader.extent())


def without_errors(config: Config, messages: Sequence[Message]) -> list[Message]:
    """Return the messages that are none of the client's own about errors.

    Raises
    ------
    BrokerError
        If one is about an error that does not pass by itself.
    """
    _raise_what_does_not_pass(config, messages)
    return [message for message in messages if not message.error()]


def _place(message: Message) -> Place:
    return str(message.topic()), int(message.partition() or 0)


def _pass(ahead: dict[Place, range], message: Message) -> None:
    """Take from what is ahead all that lies before a message, and the message."""
    place = _place(message)
    if place not in ahead:
        return
    if not message.error():
        ahead[place] = range(int(message.offset() or 0) + 1, ahead[place].stop)
    # of what was compacted, or of transactions, there is no message at the last offset
    if not ahead[place] or (message.error() and _is_end(message)):
        del ahead[place]


def _is_end(message: Message) -> bool:
    return bool(message.error().code() == KafkaError._PARTITION_EOF)


def _raise_what_does_not_pass(config: Config, messages: Sequence[Message]) -> None:
    for message in messages:
        problem = message.error()
        if problem and problem.code() not in _PASSING:
            raise refusal(config, _WHAT, problem)


_WHAT = "cannot read the topics"

_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""Of a topic that was there a moment ago: it was deleted."""

_PASSING = PASSING - _GONE | {KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN}

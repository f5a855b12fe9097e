"""Reads the pipeline's topics, past errors and batches that librdkafka stops at."""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)

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
from fluxplain.kafka.timeouts import UNREADABLE_S

log = logging.getLogger("fluxplain.reader")
registry_log = logging.getLogger("fluxplain.registry")

SILENCE_S = 30.0
"""Seconds without a message after which reading fails if the log holds more."""

QUEUED_KB = 8 * 1024
"""Kilobytes fetched ahead of the reader; librdkafka's default is 64 MB."""

GROUP = "reader"
"""Name of the group after the prefix; never joined, since partitions are assigned."""

CANNOT_READ = "cannot read the topics"

_UNREADABLE = frozenset(
    {
        KafkaError._BAD_COMPRESSION,  # also zstd that unpacks to more than 100 MB
        KafkaError._BAD_MSG,
        KafkaError._NOT_IMPLEMENTED,  # an unknown compression
        KafkaError._UNDERFLOW,
    }
)
"""librdkafka's errors at a batch that it cannot unpack or parse: they repeat for ever."""

_GONE = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}
"""Errors of a topic that was deleted meanwhile."""

_PASSING = PASSING - _GONE | {KafkaError._PARTITION_EOF, KafkaError._ALL_BROKERS_DOWN}


class DecodedMessages:
    """The messages of a consumer; those in the wire format become plain JSON.

    While the registry does not answer, messages wait, in their order; ``trouble`` is its error.
    """

    def __init__(self, config: Config, consumer: Consumer) -> None:
        self._config = config
        self._consumer = consumer
        self._decoder = open_decoder(config)
        self._waiting: deque[Message] = deque()
        self._behind: dict[TopicPartition, int] = {}
        self.trouble: BrokerError | None = None

    def take(self, limit: int, timeout_s: float) -> list[Message]:
        """Return the next messages, and transient errors; raise ``BrokerError`` at other errors.

        None is read while messages wait for the registry; without one to return, this takes
        ``timeout_s``. Batches that librdkafka cannot unpack are skipped.
        """
        if not self._waiting:
            self._waiting.extend(self._read(limit, timeout_s))
        taken: list[Message] = []
        try:
            while self._waiting:
                if self._decoder is not None and not self._waiting[0].error():
                    self._decoder.open_in_place(self._waiting[0])
                taken.append(self._waiting.popleft())
            self.trouble = None
        except BrokerError as error:
            if self.trouble is None:
                registry_log.warning("%s: waiting for it", error)
            self.trouble = error
            if not taken:
                time.sleep(timeout_s)
        return taken

    def _read(self, limit: int, timeout_s: float) -> list[Message]:
        try:
            messages = self._consumer.consume(limit, timeout_s)
        except KafkaException as error:
            raise refusal(self._config, CANNOT_READ, error.args[0]) from None
        messages = [message for message in messages if not self._skips(message)]
        for message in messages:
            problem = message.error()
            if problem and problem.code() not in _PASSING:
                raise refusal(self._config, CANNOT_READ, problem)
        return messages

    def _skips(self, message: Message) -> bool:
        """Seek behind a batch that librdkafka cannot unpack, if the message is its error."""
        error = message.error()
        if not error or error.code() not in _UNREADABLE or message.topic() is None:
            return False
        tp, offset = tp_of(message), int(message.offset() or 0)
        if offset < self._behind.get(tp, 0):
            return True  # already skipped
        try:
            # imported here: few need it, and it takes time
            from fluxplain.kafka.faust.peek import batch_end  # noqa: PLC0415

            behind = batch_end(self._config, *tp, offset, UNREADABLE_S)
            self._consumer.seek(confluent_kafka.TopicPartition(*tp, behind))
        except KafkaException as problem:  # the error repeats, and with it this attempt
            log.warning("cannot skip a batch of %s: %s", tp, problem.args[0].str())
            return True
        self._behind[tp] = behind
        log.warning("skipping offsets %d to %d of %s: %s", offset, behind - 1, tp, error.str())
        return True


def tp_of(message: Message) -> TopicPartition:
    """Return where a message is."""
    return TopicPartition(str(message.topic()), int(message.partition() or 0))


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

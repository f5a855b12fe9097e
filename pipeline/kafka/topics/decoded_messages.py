"""Takes the messages of librdkafka's consumers, past errors and batches that they stop at."""

import logging
import time
from collections import deque

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from fluxplain.config import Config
from fluxplain.kafka.client import PASSING, BrokerError, TopicPartition, refusal
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.timeouts import UNREADABLE_S

log = logging.getLogger("fluxplain.reader")
registry_log = logging.getLogger("fluxplain.registry")

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

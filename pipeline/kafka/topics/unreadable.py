"""Skips batches that librdkafka's consumers cannot unpack."""

import logging
from collections.abc import Sequence

import confluent_kafka
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from fluxplain.config import Config
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.timeouts import UNREADABLE_S

log = logging.getLogger("fluxplain.reader")

UNREADABLE = frozenset(
    {
        KafkaError._BAD_COMPRESSION,  # also zstd that unpacks to more than 100 MB
        KafkaError._BAD_MSG,
        KafkaError._NOT_IMPLEMENTED,  # an unknown compression
        KafkaError._UNDERFLOW,
    }
)
"""librdkafka's errors at a batch that it cannot unpack or parse: they repeat for ever."""


class UnreadableBatches:
    """Moves a consumer with assigned partitions past such batches."""

    def __init__(self, config: Config, consumer: Consumer) -> None:
        self._config = config
        self._consumer = consumer
        self._behind: dict[TopicPartition, int] = {}

    def passed(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages without errors about such batches, which are skipped."""
        return [message for message in messages if not self._passes(message)]

    def _passes(self, message: Message) -> bool:
        error = message.error()
        if not error or error.code() not in UNREADABLE or message.topic() is None:
            return False
        tp = TopicPartition(str(message.topic()), int(message.partition() or 0))
        offset = int(message.offset() or 0)
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

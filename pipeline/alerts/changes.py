"""Consumes the topic ``changes`` in its own consumer group."""

import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from fluxplain.config import Config
from fluxplain.kafka.client import ask, client_settings, log_offsets, partitions_of, refusal
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.registry.registry_wait import DisplayDecoder
from fluxplain.kafka.timeouts import ALERTS_POLL_S, ALERTS_SESSION_S, REQUEST_S
from fluxplain.kafka.topics.reader import without_errors
from fluxplain.kafka.topics.unreadable import UnreadableBatches
from fluxplain.schemas import Change

log = logging.getLogger("fluxplain.alerts")

GROUP = "alerts"
"""The consumer group's name, after the prefix."""


class ChangeConsumer:
    """Consumer of ``changes`` with explicit commits.

    The first start of the group begins with new messages: nobody wants last week's alerts. Later
    starts resume at the committed offsets, and read added partitions from their beginning. Raises
    BrokerError if the broker does not answer, or the topic does not exist.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic(Change.TOPIC)
        self._opener = DisplayDecoder(open_decoder(config))
        partitions_of(config, self._topic)
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{config.topics.prefix}{GROUP}",
                # offsets are stored in done(); librdkafka commits stored ones periodically
                "enable.auto.offset.store": False,
                # for added partitions, and after unread messages were deleted
                "auto.offset.reset": "earliest",
                "max.poll.interval.ms": int(ALERTS_POLL_S * 1000),
                "session.timeout.ms": int(ALERTS_SESSION_S * 1000),
            }
        )
        self._unreadable = UnreadableBatches(config, self._consumer)
        self._consumer.subscribe([self._topic], on_assign=self._on_assigned)

    def poll(self, timeout_s: float) -> Message | None:
        """Return the next message; None on a timeout, or while a message waits for the registry.

        Raises BrokerError for a permanent error.
        """
        read = self._read(timeout_s) if self._opener.is_empty else []
        return next(iter(self._opener.opened(read, timeout_s)), None)

    def _read(self, timeout_s: float) -> list[Message]:
        try:
            message = self._consumer.poll(timeout_s)
        except KafkaException as error:
            raise refusal(self._config, "cannot read the changes", error.args[0]) from None
        read = self._unreadable.passed([message] if message else [])
        return without_errors(self._config, read)

    def done(self, message: Message, *, at_once: bool) -> None:
        """Commit a message, at once or soon."""
        self._consumer.store_offsets(message)
        if not at_once:
            return
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            log.warning("cannot commit, so alerts may be repeated: %s", error.args[0].str())

    def close(self) -> None:
        """Commit and leave the group."""
        self._consumer.close()

    def _on_assigned(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        all_partitions = partitions_of(self._config, self._topic)
        partitions = [TopicPartition(self._topic, partition) for partition in all_partitions]
        what = f"cannot read the offsets of {self._topic}"

        def request(question: Callable[[], Any]) -> Any:
            return ask(self._config, consumer, self._topic, what, question)

        committed = request(lambda: consumer.committed(partitions, timeout=REQUEST_S))
        if any(each.offset >= 0 for each in committed):
            log.info("resuming at the committed offsets, in %d partitions", len(assigned))
            return
        # for all partitions: other members of a new group must not mistake theirs for added ones;
        # at once: messages that arrive while this process is down must not be skipped
        ends = request(
            lambda: log_offsets(consumer, self._topic, all_partitions, OFFSET_END, REQUEST_S)
        )
        begins = [TopicPartition(self._topic, p, end) for p, end in ends.items()]
        consumer.commit(offsets=begins, asynchronous=False)
        log.info("first start: alerts begin with new changes")


def taken_at_s(message: Message, now_s: float) -> float:
    """Return a message's timestamp in seconds since 1970; ``now_s`` if it has none."""
    kind, at_ms = message.timestamp()
    return now_s if kind == TIMESTAMP_NOT_AVAILABLE else at_ms / 1000.0

"""Reads ``changes`` as a consumer group of its own, and commits what is done with."""

import logging
from types import TracebackType
from typing import Self

from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from pipeline.config import Config
from pipeline.kafka.asking import ask
from pipeline.kafka.client import client_settings, log_offsets, partitions_of, refusal
from pipeline.kafka.reader import without_errors
from pipeline.kafka.registry.opener import Opener
from pipeline.kafka.registry.opening import open_decoder
from pipeline.kafka.timeouts import ALERTS_POLL_S, ALERTS_SESSION_S, REQUEST_S
from pipeline.kafka.unreadable import UnreadableBatches
from schemas import Change

log = logging.getLogger("fluxplain.alerts")

GROUP = "alerts"
"""Name of the consumer group, behind the prefix."""


class ChangeConsumer:
    """The messages of ``changes``, each until it is done with.

    The first start of the group begins with the next new message: nobody wants alerts of last
    week. From then on it goes on where it was, also in partitions that are added later.

    Raises
    ------
    BrokerError
        If the broker does not answer, or the topic does not exist.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic(Change.TOPIC)
        self._opener = Opener(open_decoder(config))
        partitions_of(config, self._topic)
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{config.topics.prefix}{GROUP}",
                # what is done with is committed now and then; what was delivered, at once
                "enable.auto.offset.store": False,
                # of partitions that are new, and where messages were deleted unread
                "auto.offset.reset": "earliest",
                "max.poll.interval.ms": int(ALERTS_POLL_S * 1000),
                "session.timeout.ms": int(ALERTS_SESSION_S * 1000),
            }
        )
        self._unreadable = UnreadableBatches(config, self._consumer)
        self._consumer.subscribe([self._topic], on_assign=self._begin)

    def poll(self, timeout_s: float) -> Message | None:
        """Return the next message; None if none came in time, or it waits for the registry.

        Raises
        ------
        BrokerError
            If the broker reports an error that does not pass by itself.
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
        """Take note that a message need not come again; commit that at once, or soon."""
        self._consumer.store_offsets(message)
        if not at_once:
            return
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            log.warning("cannot commit, so alerts may come again: %s", error.args[0].str())

    def close(self) -> None:
        """Commit and leave the group."""
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

    def _begin(self, consumer: Consumer, assigned: list[TopicPartition]) -> None:
        everything = partitions_of(self._config, self._topic)
        asked = [TopicPartition(self._topic, partition) for partition in everything]
        what = f"cannot ask where to begin in {self._topic}"
        committed = ask(
            self._config,
            consumer,
            self._topic,
            what,
            lambda: consumer.committed(asked, timeout=REQUEST_S),
        )
        if any(each.offset >= 0 for each in committed):
            log.info("reading on from what was committed, in %d partitions", len(assigned))
            return
        # for all partitions: another member of a new group must not take its own for added ones;
        # at once: what comes while this process is not running must not be passed over
        ends = ask(
            self._config,
            consumer,
            self._topic,
            what,
            lambda: log_offsets(consumer, self._topic, everything, OFFSET_END, REQUEST_S),
        )
        begins = [TopicPartition(self._topic, p, end) for p, end in ends.items()]
        consumer.commit(offsets=begins, asynchronous=False)
        log.info("the first start: alerts begin with new changes")


def taken_at_s(message: Message, now_s: float) -> float:
    """Return when Kafka took a message, in seconds since 1970; now if it does not say."""
    kind, at_ms = message.timestamp()
    return now_s if kind == TIMESTAMP_NOT_AVAILABLE else at_ms / 1000.0

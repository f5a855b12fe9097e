"""The alerts process: consumes changes, filters, delivers, commits."""

import asyncio
import logging
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Any

from confluent_kafka import (
    OFFSET_END,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from fluxplain.alerts.filter import AlertFilter
from fluxplain.alerts.formats import content
from fluxplain.alerts.webhook import Answer, Webhook, deliver
from fluxplain.config import Config
from fluxplain.kafka.client import ask, client_settings, log_offsets, partitions_of
from fluxplain.kafka.timeouts import ALERTS_POLL_S, REQUEST_S, subscriber_settings
from fluxplain.kafka.topics.topic_reader import DecodedMessages
from fluxplain.results.feature_names import FeatureNames
from fluxplain.results.notes_topic import NotesReader
from fluxplain.schemas import BadRecordError, Change

log = logging.getLogger("fluxplain.alerts")

GROUP = "alerts"
"""The consumer group's name, after the prefix."""

POLL_S = 0.5
"""Longest wait of a poll, in seconds; it delays a shutdown."""

STOP_S = 5.0
"""Seconds that a shutdown gives a running attempt."""


async def run(config: Config) -> None:
    """Send alerts until SIGTERM or Ctrl-C.

    Each change takes three steps: (1) filter; (2) deliver, or give up; (3) commit. A process that
    ends between 2 and 3 delivers again at its next start, with the same id. The filter knows what
    people have muted: all notes are read before the first change. Raises BrokerError if the broker
    does not answer, or reports a permanent error.
    """
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with Webhook(config.alerts) as webhook:
        signed = "signed" if config.alerts.signing_secret() else "not signed (alerts.secret)"
        log.info("alerts go to %s, %s", webhook.name, signed)
        with NotesReader(config) as people, closing(ChangeConsumer(config)) as changes:
            window = config.drift.incident_window
            alerts = AlertFilter(config.alerts, people.notes, window)
            sender = _Sender(config, alerts, webhook, changes, stop)
            while not stop.is_set():
                message = await asyncio.to_thread(changes.poll, POLL_S)
                await asyncio.to_thread(people.update)
                if message is not None:
                    await sender.handle(message)
    counts = ", ".join(f"{n:,} {what}" for what, n in sender.counts.items())
    log.info("ended: %s", counts or "no changes")


class ChangeConsumer:
    """Consumer of ``changes`` with explicit commits.

    The first start of the group begins with new messages: nobody wants last week's alerts. Later
    starts resume at the committed offsets, and read added partitions from their beginning. Raises
    BrokerError if the broker does not answer, or the topic does not exist.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._topic = config.topic(Change.TOPIC)
        partitions_of(config, self._topic)
        self._consumer = Consumer(
            {
                **client_settings(config),
                "group.id": f"{config.topics.prefix}{GROUP}",
                # offsets are stored in done(); librdkafka commits stored ones periodically
                "enable.auto.offset.store": False,
                # for added partitions, and after unread messages were deleted
                "auto.offset.reset": "earliest",
                **subscriber_settings(config.kafka, ALERTS_POLL_S),
            }
        )
        self._messages = DecodedMessages(config, self._consumer)
        self._consumer.subscribe([self._topic], on_assign=self._on_assigned)

    def poll(self, timeout_s: float) -> Message | None:
        """Return the next message; None on a timeout, or while a message waits for the registry.

        Raises BrokerError for a permanent error.
        """
        messages = self._messages.take(1, timeout_s)
        return next((message for message in messages if not message.error()), None)

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


class _Sender:
    """Handles messages, and counts them by result."""

    def __init__(
        self,
        config: Config,
        alerts: AlertFilter,
        webhook: Webhook,
        changes: ChangeConsumer,
        stop: asyncio.Event,
    ) -> None:
        self._filter = alerts
        self._settings = config.alerts
        self._names = FeatureNames.configured(config)
        self._webhook = webhook
        self._changes = changes
        self._stop = stop
        self.counts: Counter[str] = Counter()

    async def handle(self, message: Message) -> None:
        """Filter a message, deliver its alert, and commit."""
        try:
            change = _change(message)
        except BadRecordError as error:
            where = f"{message.topic()}-{message.partition()} offset {message.offset()}"
            log.warning("%s is no change: %s", where, error)
            self._done(message, "unreadable")
            return
        kind, at_ms = message.timestamp()
        at_s = time.time() if kind == TIMESTAMP_NOT_AVAILABLE else at_ms / 1000.0
        objection = self._filter.objection(change, at_s)
        if objection is not None:
            self._done(message, f"held back by {objection}")
            return
        answer = await self._unless_stopped(change, at_s)
        if answer is None:
            log.info("change %s: not delivered before shutdown; the next start will", change.id)
        elif answer.delivered:
            log.info("change %s: %s %s", change.id, self._webhook.name, answer.what)
            self._filter.delivered(change, at_s)
            await asyncio.to_thread(self._done, message, "delivered", at_once=True)
        else:
            log.error(
                "change %s: given up, %s %s; it stays on the topic: `fluxplain explain-change %s`",
                *(change.id, self._webhook.name, answer.what, change.id),
            )
            await asyncio.to_thread(self._done, message, "given up", at_once=True)

    def _done(self, message: Message, what: str, *, at_once: bool = False) -> None:
        self.counts[what] += 1
        self._changes.done(message, at_once=at_once)

    async def _unless_stopped(self, change: Change, at_s: float) -> Answer | None:
        """Return the result of a delivery; None if the process is stopped before."""
        alert = content(self._settings, change, self._names)
        delivery = asyncio.create_task(
            deliver(
                lambda: self._webhook.send(change.event_id, alert),
                age_s=lambda: time.time() - at_s,
                pause=self._pause,
                report=lambda line: log.warning(
                    "change %s: %s %s", change.id, self._webhook.name, line
                ),
            )
        )
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({delivery, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({delivery}, timeout=STOP_S)
        stopped.cancel()
        if not delivery.done():
            delivery.cancel()
            return None
        return await delivery

    async def _pause(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return True
        return False


def _change(message: Message) -> Change:
    change = Change.decode(message.value())
    if not _ID.fullmatch(change.id):
        raise BadRecordError("id must be 12 hexadecimal digits")  # the id becomes a header
    return change


_ID = re.compile(r"[0-9a-f]{12}")

"""The alerts process: consumes changes, filters, delivers, commits."""

import asyncio
import logging
import re
import signal
import time
from collections import Counter
from contextlib import closing

from confluent_kafka import Message

from fluxplain.alerts.changes import ChangeConsumer, taken_at_s
from fluxplain.alerts.filter import AlertFilter
from fluxplain.alerts.message import body
from fluxplain.alerts.webhook import Answer, Webhook, deliver
from fluxplain.config import Config
from fluxplain.schemas import BadRecordError, Change

log = logging.getLogger("fluxplain.alerts")

POLL_S = 0.5
"""Longest wait of a poll, in seconds; it delays a shutdown."""

STOP_S = 5.0
"""Seconds that a shutdown gives a running attempt."""


async def run(config: Config) -> None:
    """Send alerts until SIGTERM or Ctrl-C.

    Each change takes three steps: (1) filter; (2) deliver, or give up; (3) commit. A process that
    ends between 2 and 3 delivers again at its next start, with the same id. Raises BrokerError if
    the broker does not answer, or reports a permanent error.
    """
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    async with Webhook(config.alerts) as webhook:
        signed = "signed" if config.alerts.signing_secret() else "not signed (alerts.secret)"
        log.info("alerts go to %s, %s", webhook.name, signed)
        with closing(ChangeConsumer(config)) as changes:
            sender = _Sender(config, webhook, changes, stop)
            while not stop.is_set():
                message = await asyncio.to_thread(changes.poll, POLL_S)
                if message is not None:
                    await sender.handle(message)
    counts = ", ".join(f"{n:,} {what}" for what, n in sender.counts.items())
    log.info("ended: %s", counts or "no changes")


class _Sender:
    """Handles messages, and counts them by result."""

    def __init__(
        self, config: Config, webhook: Webhook, changes: ChangeConsumer, stop: asyncio.Event
    ) -> None:
        self._filter = AlertFilter(config.alerts)
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
        at_s = taken_at_s(message, time.time())
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
        content = body(change)
        delivery = asyncio.create_task(
            deliver(
                lambda: self._webhook.send(change.id, content),
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

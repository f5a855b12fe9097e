"""For workers: partitions that wait for an announced model, or for its withdrawal.

What stands behind an announcement cannot be taken before it, so its withdrawal is looked for ahead
in the log. Nothing else of what is ahead is looked at, and it is read again in its own place.

The first who finds the model, or its withdrawal, decides in the topic ``register`` for all shards
of the stream, and for all later starts.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from confluent_kafka import KafkaException
from faust.types import TP

from pipeline.config import Config
from pipeline.kafka.batches import Unreadable
from pipeline.kafka.client import BrokerError
from pipeline.kafka.headers import usable_headers
from pipeline.kafka.peek import Record, read_on
from pipeline.kafka.register import Register
from pipeline.kafka.registry.opening import open_decoder
from pipeline.kafka.timeouts import PEEK_S
from pipeline.kafka.writers import WRITER, Writer
from pipeline.parts import Part
from pipeline.stages import Message
from pipeline.stages.announced import Exchanges, Found, NotYetError, or_withdraw
from schemas import Control, stream_name

log = logging.getLogger("fluxplain.worker")

LOOK_S = 1.0
"""Seconds between two looks for a model, and for its withdrawal."""

MOST_READ = 20_000
"""Messages to read ahead in one look; the next one goes on behind them."""

READ_S = 0.5
"""Seconds that reading ahead may take in one look."""


Outcome = Found | Literal["withdrawn"]
"""The model that takes over, or that it was withdrawn."""


@dataclass(slots=True, eq=False)
class ModelWait:
    """A partition whose stage awaits a model.

    Attributes
    ----------
    tp, stage
        Which partition, and its stage.
    next_offset
        Where it goes on.
    ahead
        Offset of the next message to look at for a withdrawal.
    looked_at
        When it was looked for last, in seconds of a monotonic clock.
    reason
        Why it is not there; None before the first look.
    outcome
        How it ended; None while that is open, or the file of a model that was taken is missing.
    has_dropped
        Whether messages were dropped that must be read again.
    is_logged
        Whether the log says that it is waited for.
    """

    tp: TP
    stage: Exchanges
    next_offset: int
    ahead: int
    looked_at: float = 0.0
    reason: str | None = None
    outcome: Outcome | None = None
    has_dropped: bool = False
    is_logged: bool = False


class ModelWaits:
    """The waiting partitions of a worker.

    Parameters
    ----------
    config, part
        Settings, and whose partitions.
    register
        Where decisions are, and who has claimed which slot.
    settings
        Number of the registered settings.
    """

    def __init__(self, config: Config, part: Part, register: Register, settings: int) -> None:
        self._part = part
        self._register, self._settings = register, settings
        self._waits: dict[TP, ModelWait] = {}
        self._reader = ControlReader(config, self._knows)

    def get(self, tp: TP) -> ModelWait | None:
        """Return the wait of a partition; None if it does not wait."""
        return self._waits.get(tp)

    def begin(self, tp: TP, stage: Exchanges, next_offset: int) -> ModelWait:
        """Let a partition wait before an offset."""
        # Faust's own kind of it: a message has aiokafka's, which Faust cannot resume
        wait = self._waits[tp] = ModelWait(TP(*tp), stage, next_offset, next_offset)
        return wait

    def end(self, wait: ModelWait) -> None:
        """Let a partition go on."""
        if self._waits.get(wait.tp) is wait:
            del self._waits[wait.tp]
        if wait.is_logged:
            done = "withdrawn" if wait.outcome == "withdrawn" else "taken"
            log.warning("%s: goes on: the model was %s", self._name(wait), done)

    def clear(self) -> None:
        """Forget all: the partitions are taken away."""
        self._waits.clear()

    def is_current(self, wait: ModelWait) -> bool:
        """Return whether a partition still waits, and is still this worker's."""
        return self._waits.get(wait.tp) is wait

    def due(self, now: float) -> list[ModelWait]:
        """Return what to look for now: all, if any was not looked for a second long."""
        waits = list(self._waits.values())
        return waits if any(now - wait.looked_at >= LOOK_S for wait in waits) else []

    @property
    def reasons(self) -> dict[TP, str]:
        """Partition → why its model is not there; may be called from any thread."""
        waits = list(self._waits.values())
        return {wait.tp: wait.reason or "an announced model" for wait in waits}

    @property
    def waits_for(self) -> str | None:
        """What is missing, for people; None if nothing is. May be called from any thread."""
        reasons = {stream_name(*tp): reason for tp, reason in self.reasons.items()}
        if not reasons:
            return None
        first, *others = sorted(reasons)
        more = f"; {', '.join(others)} wait for a model, too" if others else ""
        return f"{first}: {reasons[first]}{more}"

    def look(self, waits: Sequence[ModelWait], *, ahead: bool = True) -> None:
        """Look for models, and for withdrawals ahead in the log; blocks, so call it in a thread."""
        for wait in waits:
            # the first look ahead is not for the moment in which nothing else can be taken
            wait.looked_at = time.monotonic() if ahead else 0.0
            try:
                wait.outcome = self._outcome(wait, ahead=ahead)
            except BrokerError as error:
                wait.reason = str(error)

    def _outcome(self, wait: ModelWait, *, ahead: bool) -> Outcome | None:
        """Return how a wait ends, and decide it if nobody has; None while it goes on."""
        model, message = wait.stage.awaited, wait.stage.announcement
        if model is None or message is None:
            return None  # it was taken away meanwhile
        place = stream_name(*wait.tp), message.offset
        decision, found = self._register.decision(*place), None
        if decision != "withdrawn":
            try:
                found = wait.stage.find()
            except NotYetError as error:
                also = or_withdraw(model) if decision is None else "; it was taken already"
                wait.reason = f"{error}{also}"
        if decision is None:
            if found is not None:
                decision = self._register.decide(*place, "taken", self._settings)
            elif ahead and any(map(wait.stage.is_withdrawn_by, self._reader.read(wait))):
                decision = self._register.decide(*place, "withdrawn", self._settings)
        if decision == "withdrawn":
            return "withdrawn"
        return found if decision == "taken" else None

    def _knows(self, writer: Writer) -> bool:
        return self._register.read(writer.epoch).knows(writer)

    def log_once(self, wait: ModelWait) -> None:
        """Log, once, why a partition waits."""
        if not wait.is_logged:
            wait.is_logged = True
            log.warning(
                "%s: waits at offset %d: %s", self._name(wait), wait.next_offset, wait.reason
            )

    def _name(self, wait: ModelWait) -> str:
        return f"{self._part} {stream_name(*wait.tp)}"


class ControlReader:
    """Reads control records ahead of where partitions wait.

    Parameters
    ----------
    config
        The settings.
    knows
        Returns whether a writer has claimed its slot; what others wrote is passed over.
    """

    def __init__(self, config: Config, knows: Callable[[Writer], bool]) -> None:
        self._config = config
        self._knows = knows
        self._control = config.topic(Control.TOPIC)
        self._decoder = open_decoder(config)

    def read(self, wait: ModelWait) -> Iterator[Message]:
        """Yield the control records of one look, and move the wait on in the log."""
        found: list[Message] = []
        read, deadline = 0, time.monotonic() + READ_S

        def take(record: Record) -> bool:
            nonlocal read
            read += 1
            message = _message(record)
            if message is not None and message.origin[0] == self._control:
                found.append(message)
            return read < MOST_READ and time.monotonic() < deadline

        try:
            place = wait.tp.topic, wait.tp.partition, wait.ahead
            end = read_on(self._config, *place, PEEK_S, take)
        except KafkaException:
            return  # it passes, or the watchdog sees it too
        try:
            for message in found:
                writer = Writer.read(message.headers.get(WRITER, b""))
                if writer is None or not self._knows(writer):
                    continue  # in its own place it is a dead letter
                yield message if self._decoder is None else self._decoder.opened(message)
                wait.ahead = message.offset + 1
        except BrokerError:
            return  # the registry is away: read it again
        if end is not None:
            wait.ahead = end


def _message(record: Record) -> Message | None:
    """Return a record of the log as the stages take it; None if it cannot be read."""
    if isinstance(record.headers, Unreadable):
        return None
    return Message(
        record.topic,
        record.partition,
        record.offset,
        record.key,
        record.value,
        headers=usable_headers(record.headers, is_own=True),
    )


async def stay_in_group(consumer: Any) -> None:
    """Keep a Faust consumer in its group although all of its partitions wait.

    aiokafka leaves the group on behalf of a consumer that has asked for nothing for
    ``max_poll_interval_ms``, and Faust does not ask as long as every partition is paused.
    """
    thread = consumer._thread

    async def ask_for_nothing() -> None:
        with thread._ensure_consumer()._subscription.fetch_context():
            pass

    await thread.call_thread(ask_for_nothing)

"""Partitions that wait for an announced model, or for its withdrawal.

Messages after an announcement must wait for it, so its withdrawal is searched ahead in the log. All
other messages are ignored there, and read later in order.

The first worker that finds the model, or its withdrawal, decides in the topic ``register`` for all
shards of the stream, and for all later starts.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.kafka.client import BrokerError, TopicPartition
from fluxplain.kafka.driver import Received
from fluxplain.kafka.faust.peek import read_on
from fluxplain.kafka.headers import incoming_message
from fluxplain.kafka.ownership.writers import WRITER, Writer
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.timeouts import PEEK_S
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.gaps import Gaps
from fluxplain.kafka.worker.partition import AssignedPartition, ModelWait, Outcome
from fluxplain.schemas import Control
from fluxplain.stages import Message
from fluxplain.stages.active_model import ActiveModel, HasActiveModel, or_withdraw

log = logging.getLogger("fluxplain.worker")

LOOK_S = 1.0
"""Seconds between two searches for a model, and for its withdrawal."""

MOST_READ = 20_000
"""Largest number of messages read ahead at a time; the next call continues after them."""

READ_S = 0.5
"""Seconds that one call may read ahead."""


@dataclass(eq=False)
class ModelWaits:
    """The waiting partitions of a worker."""

    context: Context
    gaps: Gaps

    def __post_init__(self) -> None:
        self._reader = ControlReader(self.context.config, self._knows)
        self._looking = asyncio.Lock()

    def resume(self, partition: AssignedPartition) -> ModelWait | None:
        """Let a partition wait if its stage awaits a model."""
        stage = partition.stage
        # isinstance comes last: it is slow, and this runs after each message
        active: ActiveModel | None = getattr(stage, "active", None)
        if active is None or active.awaited is None or not isinstance(stage, HasActiveModel):
            return None
        partition.wait = ModelWait(stage, partition.next_offset)
        return partition.wait

    async def begin(self, partition: AssignedPartition) -> None:
        """Let a partition wait if its last step announced a model that is not there yet."""
        wait = self.resume(partition)
        if wait is not None:
            await self._look(partition, wait, ahead=False)
            await self._conclude(partition, wait)

    def holds_back(self, partition: AssignedPartition) -> bool:
        """Return whether a partition waits; its messages are read again afterwards."""
        if partition.wait is None:
            return False
        # at each message: Faust resumes partitions after its own backpressure
        self.context.driver.pause(partition.tp)
        partition.wait.has_dropped = True
        return True

    async def look(self, busy: asyncio.Lock) -> None:
        """Look for all awaited models once a second, while the other partitions continue."""
        waiting, now = self._waiting(), time.monotonic()
        if not any(now - wait.looked_at >= LOOK_S for _, wait in waiting):
            return
        await self.context.driver.stay_in_group()
        for partition, wait in waiting:
            await self._look(partition, wait, ahead=True)
            async with busy:
                await self._conclude(partition, wait)

    @property
    def reasons(self) -> dict[TopicPartition, str]:
        """Partition → why its model is missing; safe to read from any thread."""
        return {partition.tp: wait.reason for partition, wait in self._waiting()}

    def _waiting(self) -> list[tuple[AssignedPartition, ModelWait]]:
        return [(each, wait) for each in self.context.assignment if (wait := each.wait) is not None]

    async def _look(self, partition: AssignedPartition, wait: ModelWait, *, ahead: bool) -> None:
        async with self._looking:
            if not _is_current(partition, wait):
                return
            # the first search ahead comes later: the event loop waits for this one
            wait.looked_at = time.monotonic() if ahead else 0.0
            try:
                # in a thread: the event loop must handle rebalances and signals
                outcome = asyncio.to_thread(self._outcome, partition.tp, wait, ahead=ahead)
                wait.outcome = await outcome
            except BrokerError as error:
                wait.reason = str(error)

    def _outcome(self, tp: TopicPartition, wait: ModelWait, *, ahead: bool) -> Outcome | None:
        """Return the outcome of a wait, and register it if it is new; None while it is open."""
        active = wait.stage.active
        if active.awaited is None:
            return None  # concluded meanwhile
        model, message = active.awaited
        place, register = (str(tp), message.offset), self.context.register
        decision, found = register.read().decisions.get(place), None
        if decision != "withdrawn":
            try:
                found = active.find()
            except NotYetError as error:
                also = or_withdraw(model.version) if decision is None else "; it was already taken"
                wait.reason = f"{error}{also}"
        if decision is None:
            if found is not None:
                decision = register.decide(*place, "taken", self.context.registered)
            elif ahead and self._is_withdrawn(tp, wait):
                decision = register.decide(*place, "withdrawn", self.context.registered)
        if decision == "withdrawn":
            return "withdrawn"
        return found if decision == "taken" else None

    def _is_withdrawn(self, tp: TopicPartition, wait: ModelWait) -> bool:
        """Return whether a message ahead withdraws the model; else ``wait.ahead`` advances."""
        messages, end = self._reader.read(tp, wait.ahead)
        if any(map(wait.stage.active.is_withdrawn_by, messages)):
            return True
        wait.ahead = end
        return False

    def _knows(self, writer: Writer) -> bool:
        return self.context.register.read(writer.epoch).knows(writer)

    async def _conclude(self, partition: AssignedPartition, wait: ModelWait) -> None:
        """Resume a partition once the outcome of its wait is decided."""
        if self.context.assignment.is_stopping or not _is_current(partition, wait):
            return
        stage, outcome = wait.stage, wait.outcome
        if outcome is None:
            if not wait.is_logged:
                wait.is_logged = True
                where = partition.slot, partition.next_offset
                log.warning("%s: waits at offset %d: %s", *where, wait.reason)
            self.context.outbox.send_all()  # finished records need not wait
            return
        awaited = stage.active.awaited
        records = stage.conclude(None if outcome == "withdrawn" else outcome)
        if awaited is not None:
            self.context.outbox.publish(partition, records, awaited.message)
        partition.must_save = True  # the newest checkpoint still holds the former model
        partition.wait = None
        if wait.is_logged:
            done = "withdrawn" if outcome == "withdrawn" else "taken"
            log.warning("%s: resumes: the model was %s", partition.slot, done)
        if wait.has_dropped:
            self.context.driver.resume(partition.tp)
            await self.gaps.read_dropped(partition)


def _is_current(partition: AssignedPartition, wait: ModelWait) -> bool:
    """Return whether a partition is still held and has the same wait."""
    return partition.is_held and partition.wait is wait


class ControlReader:
    """Reads control records whose writer is a worker, as decided by ``knows``."""

    def __init__(self, config: Config, knows: Callable[[Writer], bool]) -> None:
        self._config = config
        self._knows = knows
        self._control = config.topic(Control.TOPIC)
        self._decoder = open_decoder(config)

    def read(self, tp: TopicPartition, offset: int) -> tuple[list[Message], int]:
        """Return control records from an offset on, and the offset to continue from."""
        found: list[Message] = []
        read, deadline = 0, time.monotonic() + READ_S

        def take(record: Received) -> bool:
            nonlocal read
            read += 1
            message = incoming_message(record, is_own=True)  # its time does not matter
            if message.flaw is None and message.origin[0] == self._control:
                found.append(message)
            return read < MOST_READ and time.monotonic() < deadline

        try:
            end = read_on(self._config, *tp, offset, PEEK_S, take)
        except KafkaException:
            return [], offset  # transient, or the watchdog reports it too
        opened = []
        for message in found:
            writer = Writer.read(message.headers.get(WRITER, b""))
            try:
                if writer is None or not self._knows(writer):
                    continue  # when the stage reads it, it becomes a dead letter
                opened.append(self._decoder.opened(message) if self._decoder else message)
            except BrokerError:
                return opened, message.offset  # register or registry do not answer: again later
        return opened, offset if end is None else end

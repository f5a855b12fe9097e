"""One role of the pipeline: its assignment, and the order of its messages.

:mod:`agents` defines what a role does with a message. This module decides which message is next in
its partition, and yields it as a :class:`Turn`.
"""

import asyncio
import logging
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from fluxplain.kafka.checkpoints.checkpoint import StageFactory
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.driver import Delivery, Received
from fluxplain.kafka.exits import fail
from fluxplain.kafka.headers import incoming_message
from fluxplain.kafka.registry.codec import Decoder
from fluxplain.kafka.registry.registry_wait import WaitingDecoder
from fluxplain.kafka.worker.claims import Claims
from fluxplain.kafka.worker.commit import Committer
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.gaps import Gaps
from fluxplain.kafka.worker.merge import Merge
from fluxplain.kafka.worker.model_waits import ModelWaits
from fluxplain.kafka.worker.output_partitions import OutputPartitions
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.kafka.worker.status import WorkerStatus
from fluxplain.schemas import Control, Record
from fluxplain.stages import Message, process
from fluxplain.stages.active_model import HasActiveModel

log = logging.getLogger("fluxplain.worker")

REST_S = 0.005
"""Seconds of work on the messages of a delivery after which other tasks may run."""

HAND_OVER_S = 3.0
"""Longest time that the others of a group wait for this worker's checkpoints, in seconds. Worst
case: the next owner repeats the work since the checkpoints before."""

SHARED_S = 0.005
"""Longest wait of a finished partition's records for those of deliveries behind it, in seconds.
They do not wait if the last message took longer."""


@dataclass(slots=True)
class Turn:
    """The next message of a partition: let the stage step, publish what it returns, be done."""

    partition: AssignedPartition
    message: Message
    context: Context
    after: Callable[[AssignedPartition], Awaitable[None]]
    took_s: float = 0.0

    def step(self) -> Sequence[Record]:
        """Pass the message to the stage; a bad one gives a dead letter."""
        began_at = time.perf_counter()
        records = process(self.partition.stage, self.message)
        self.took_s = time.perf_counter() - began_at
        self.context.metrics.step.observe(self.took_s)
        return records

    def publish(self, records: Sequence[Record]) -> None:
        """Publish the stage's records, and a control record if its time budget requires one."""
        self.context.outbox.publish(self.partition, records, self.message)
        stage, budget = self.partition.stage, self.partition.budget
        if budget is None or not isinstance(stage, HasActiveModel):
            return
        every = budget.see(stage.every, seconds=self.took_s, now=time.monotonic())
        if every is not None:
            log.info(
                "%s of partition %d: from now on one of %d observations is explained instead of "
                "one of %d, to keep explain.budget_ms",
                *(self.partition.slot.owner, self.message.partition, every, stage.every),
            )
            self.context.outbox.send(Control(every=every), None, self.message.partition)

    async def done(self) -> None:
        """Finish the message; it is committed with the next checkpoint."""
        self.partition.next_offset = self.message.offset + 1
        await self.after(self.partition)


class RoleWorker:
    """Routes the messages of the assigned partitions to their stages.

    The decoder reads a schema registry's wire format; None without a registry.
    """

    def __init__(
        self, context: Context, make_stage: StageFactory, decoder: Decoder | None = None
    ) -> None:
        self.context = context
        self.is_finished = False
        self._sending: asyncio.Task[None] | None = None
        self._due_since: float | None = None
        self._busy = asyncio.Lock()
        self._assignment, self._outbox = context.assignment, context.outbox
        config, replica = context.config, context.replica
        topics = [config.topic(name) for name in config.inputs(replica.role)]
        self._merge = Merge(topics, self._assignment, context.driver) if topics[1:] else None
        # join passes values on unchanged, and evaluations are always plain JSON
        decodes = replica.role in {"model", "drift"}
        self._decoder = WaitingDecoder(decoder if decodes else None, replica)
        self._outputs = OutputPartitions(config, replica, self._outbox.partitions)
        self._committer = Committer(context)
        self._gaps = Gaps(context, self._committer, self._merge)
        self._claims = Claims(context, make_stage, self._gaps)
        self._waits = ModelWaits(context, self._gaps)
        parts = self._claims, self._committer, self._decoder, self._waits, self._outputs
        self.status = WorkerStatus(context, *parts)

    @asynccontextmanager
    async def turns(self, delivery: Delivery) -> AsyncIterator[AsyncIterator[Turn]]:
        """Receive messages and yield the turns that are due; any error ends the process."""
        try:
            async with aclosing(self._delivered(delivery)) as turns:
                yield turns
        except Exception as error:
            fail(f"{self.context.replica}: cannot continue", error)

    async def _delivered(self, delivery: Delivery) -> AsyncGenerator[Turn, None]:
        tp, rested_at = TopicPartition(delivery.topic, delivery.partition), time.monotonic()
        for message in delivery.messages():
            began_at = time.monotonic()
            async with self._busy:
                if not self._holds(message):
                    return  # revoked: the next owner reads the rest again
                async for turn in self._turns(message):
                    yield turn
                if self._assignment.is_stopping:
                    return
                now = time.monotonic()
                is_last = message.offset + 1 == delivery.next_offset
                if is_last and delivery.next_offset >= (self.context.driver.log_end(tp) or 0):
                    self._due_since = self._due_since or now
                if self._must_send(now, now - began_at):
                    self._send()
                else:  # there is more to read
                    self._outbox.send_all_if_old(now)
            if now - rested_at >= REST_S:
                await asyncio.sleep(0)  # signals, ticks and the driver's own work come in between
                rested_at = time.monotonic()

    def _must_send(self, now: float, took_s: float) -> bool:
        """Return whether a partition was read to its end, and no other delivery waits.

        Messages of several partitions often come together: the records about them share requests
        to the broker. They do not wait if the last message took long, as the next one may.
        """
        if self._due_since is None:
            return False
        will_wait = max(now - self._due_since, took_s) >= SHARED_S
        return will_wait or not self.context.driver.has_more()

    def _send(self) -> None:
        """Send what is due, and the rest when it is."""
        self._due_since = None
        wait_s = self._outbox.send_due(time.monotonic())
        if wait_s > 0.0 and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_after(wait_s))

    async def _send_after(self, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        try:
            async with self._busy:
                if not self._assignment.is_stopping:
                    self._outbox.send_all()
        except Exception as error:
            fail(f"{self.context.replica}: cannot continue", error)

    async def tick(self) -> None:
        """Seek, merge, send, commit and look for models as time passes, without a new message."""
        try:
            async with self._busy:
                await self._read_again()
                async for turn in self._turns():
                    turn.publish(turn.step())
                    await turn.done()
                self._outbox.send_all_if_old(time.monotonic())
                await self._committer.commit_if_due()
            if not self._assignment.is_stopping:
                await self._waits.look(self._busy)
        except Exception as error:
            fail(f"{self.context.replica}: cannot write a checkpoint", error)

    async def shut_down(self) -> None:
        """Finish the current step, write a last checkpoint and commit."""
        self._assignment.is_stopping = True
        try:
            async with self._busy:
                self.is_finished = await self._committer.commit()
        except Exception as error:
            fail(f"{self.context.replica}: cannot write the last checkpoint", error)

    # Assignments: see fluxplain.kafka.driver.

    def next_offset(self, tp: TopicPartition) -> int | None:
        """Return the next offset of a partition; None if its state is not loaded."""
        partition = self._assignment.get(*tp)
        return None if partition is None else partition.next_offset

    def resume_commits(self, times: Sequence[float]) -> None:
        """Record when new partitions were last committed, by whichever worker had them."""
        self._committer.resume(times)

    async def confirm(self) -> None:
        """Drop the partitions that another worker has owned since their states were loaded."""
        try:
            has_dropped = await self._claims.drop_claimed()
        except Exception as error:
            fail(f"{self.context.replica}: cannot read the register", error)
        if has_dropped:
            self._forget_metrics()

    async def claim(self, tps: Collection[TopicPartition]) -> None:
        """Register as the owner of partitions; from then on readers ignore earlier owners."""
        await self._claims.claim(tps)

    async def load(self, tp: TopicPartition, log_range: range, committed: int | None) -> int | None:
        """Load a partition's state; return the offset to read on from, None if it was revoked.

        ``committed`` is the group's committed offset, None without one. It differs from the
        checkpoint's if a worker ended between a checkpoint and its commit: then the checkpoint's
        offset is committed, even without a new message.
        """
        partition = await self._claims.load(tp, log_range)
        if partition is None:
            return None
        self._waits.resume(partition)
        differs = committed != partition.next_offset
        partition.must_commit = differs and partition.saved_offset > 0
        if partition.saved_offset == 0 and (committed or 0) > partition.next_offset:
            log.warning(
                "%s: the group has committed offset %d, but there is no checkpoint in %s: the "
                "state is rebuilt from offset %d, and the same records are published again",
                partition.slot,
                committed,
                self.context.config.checkpoint.place,
                partition.next_offset,
            )
        return partition.next_offset

    async def on_revoked(self) -> None:
        """Write checkpoints: a rebalance is under way, and may move any of the partitions.

        Their work continues. What a former owner writes after its last checkpoint is ignored, as
        its successor repeats it.
        """
        self._assignment.size = None
        await asyncio.wait({asyncio.create_task(self._hand_over())}, timeout=HAND_OVER_S)

    async def _hand_over(self) -> None:
        try:
            async with self._busy:
                saving = await self._committer.commit_aside()
            await saving
        except Exception as error:
            fail(f"{self.context.replica}: cannot write a checkpoint", error)

    def on_assigned(self, tps: Collection[TopicPartition]) -> None:
        """Drop state and unfinished work of partitions that are not assigned any more.

        Messages of the others that were read, but not taken, are read again.
        """
        if self._assignment.renew(tps):
            self._forget_metrics()
        if self._merge is not None:
            self._merge.clear()
        self._outputs.forget()

    def _forget_metrics(self) -> None:
        self.context.metrics.published.forget()

    # Routing.

    async def _turns(self, message: Received | None = None) -> AsyncIterator[Turn]:
        """Yield the turns that are due after a message or, where topics merge, after some time."""
        if self._assignment.is_stopping:
            return  # the next owner reads it again
        for each in self._ready(message):
            await self._committer.commit_if_due()
            turn = await self._turn(each)
            if turn is not None:
                yield turn

    def _ready(self, message: Received | None) -> Iterable[Received]:
        if self._merge is None:
            return () if message is None else (message,)
        if message is not None:
            self._merge.put(message)
        return self._merge.ready(time.monotonic())

    async def _turn(self, message: Received) -> Turn | None:
        """Return the turn of a message; None if it is not the next one, or must be dropped."""
        partition = self._assignment.get(message.topic, message.partition)
        if partition is None or not self._holds(message):
            return None  # revoked: the next owner reads it again
        if not await self._is_next(partition, message.offset):
            return None
        incoming = await self._admitted(partition, message)
        if incoming is None:
            return None
        return Turn(partition, incoming, self.context, self._waits.begin)

    def _holds(self, message: Received) -> bool:
        """Return whether a message is of a partition that this worker has since it was read."""
        is_owned = self._assignment.get(message.topic, message.partition) is not None
        return is_owned and self.context.driver.is_current(message)

    async def _is_next(self, partition: AssignedPartition, offset: int) -> bool:
        """Return whether a message is to be taken now; one behind a gap is read again."""
        if not await self._outputs.has(partition.tp.partition) or not partition.is_held:
            return False
        if self._waits.holds_back(partition):
            return False
        if not partition.accepts(offset):
            if partition.must_seek(offset, time.monotonic()):
                await self._gaps.read_again(partition)
            return False
        if offset > partition.next_offset and not await self._gaps.passes(partition, offset):
            return False
        return offset >= partition.next_offset  # otherwise done before

    async def _admitted(self, partition: AssignedPartition, message: Received) -> Message | None:
        """Return the stage's message; None if it was revoked, or written by a former owner."""
        incoming = await self._decoder.opened(
            incoming_message(message, is_own=self._claims.is_own(message.topic)),
            holds=lambda: partition.is_held and not self._assignment.is_stopping,
            waits=self._outbox.send_all,  # finished records need not wait
        )
        if incoming is None:
            return None  # the next owner reads it again
        checked = await self._claims.checked(partition, incoming, waits=self._outbox.send_all)
        if not partition.is_held:
            return None
        if checked is None:
            self.context.metrics.outdated.inc()
            partition.next_offset = message.offset + 1
        return checked

    async def _read_again(self) -> None:
        """Repeat seeks without effect, and read streams again that lacked an output partition."""
        now = time.monotonic()
        await self._gaps.read_again(*[p for p in self._assignment if p.must_seek_again(now)])
        for number in await self._outputs.found():
            # in all topics: messages of each may have been dropped meanwhile
            held = [each for each in self._assignment if each.tp.partition == number]
            await self._gaps.read_dropped(*held)

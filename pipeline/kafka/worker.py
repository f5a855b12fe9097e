"""One role of the pipeline on Kafka: the partitions it was assigned, and the commit protocol.

Faust acknowledges a message when its agent moves on, even after an exception, and that loses
data. So messages are acknowledged here, by hand. For all partitions of a worker, every
``checkpoint.interval_s``:

1. Wait until every output produced so far is acknowledged by the broker.
2. Write the checkpoints: stage, next offset, versions, digest.
3. Acknowledge the messages below the next offset, in order, and commit.

The first is waited for, and the state taken as it is then. While it is written and committed, the
worker goes on.

A worker that fails at any of these ends at once: nothing is committed that is not in a
checkpoint, and nothing is in a checkpoint whose outputs may be lost. The next start repeats some
work, and publishes the same records again under the same identity.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import faust
from faust.types import TP, EventT

from pipeline.config import Config
from pipeline.exchange import ModelFolder
from pipeline.kafka.batches import Unreadable
from pipeline.kafka.budget import TimeBudget, budget_of, outdated
from pipeline.kafka.checkpoints import (
    SLOW_S,
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Slot,
    Snapshot,
    SnapshotError,
    StageFactory,
)
from pipeline.kafka.client import AccessError, BrokerError, Place
from pipeline.kafka.exits import fail, refuse
from pipeline.kafka.headers import usable_headers
from pipeline.kafka.letters import LetterLog
from pipeline.kafka.lives import FIRST, Life
from pipeline.kafka.merge import Merge
from pipeline.kafka.metrics.worker import WorkerMetrics
from pipeline.kafka.model_waits import ModelWait, ModelWaits, stay_in_group
from pipeline.kafka.outbox import Outbox
from pipeline.kafka.output_partitions import OutputPartitions
from pipeline.kafka.peek import first_offset
from pipeline.kafka.register import Register
from pipeline.kafka.registry.waiting import WaitingDecoder
from pipeline.kafka.timeouts import DELIVERY_DEADLINE_S, PEEK_S
from pipeline.kafka.writers import ANY, OWN_TOPICS, WRITER, Begin, Fence, Writer
from pipeline.parts import Part
from pipeline.stages import Message, Stage, process
from pipeline.stages.announced import Exchanges
from pipeline.stages.incarnations import FollowsLives
from pipeline.stages.metering import Metered
from pipeline.stages.shedding import Sheds
from pipeline.stages.trace import trace_of
from schemas import Change, Control, DeadLetter, Record, stream_name

if TYPE_CHECKING:
    from pipeline.kafka.registry.decoder import Decoder

Answer = TypeVar("Answer")

log = logging.getLogger("fluxplain.worker")

COMMIT_ATTEMPTS = 20
"""Commits to try while Faust's own commit is under way, 50 ms apart; then the next interval."""

MAX_PENDING = 50_000
"""Messages that may wait for their acknowledgement; then a checkpoint is written early."""


NOT_OURS = "it was not written by a worker of this pipeline"
"""Reason of the dead letter for a message in a topic that only workers write."""

REGISTER_AGAIN_S = 1.0
"""Seconds between two attempts to read the register, or to write into it."""

SEEK_AGAIN_S = 2.0
"""How long the messages that were asked for again may take to come."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint that was written.

    Attributes
    ----------
    at
        When, in seconds since 1970.
    size_bytes
        Of its state.
    """

    at: float
    size_bytes: int


@dataclass(slots=True)
class Partition:
    """State and unacknowledged messages of one assigned partition."""

    slot: Slot
    stage: Stage
    next_offset: int
    saved_offset: int
    committed_offset: int
    epoch: int = 1
    life: Life = FIRST
    fence: Fence = field(default_factory=Fence)
    pending: list[Any] = field(default_factory=list)
    in_step: bool = False
    jumped_to: int | None = None
    sought_at: float | None = None
    must_save: bool = False
    must_commit: bool = False
    is_large: bool = False
    saved: Saved | None = None

    @property
    def writer(self) -> Writer:
        """The writer of what its stage publishes."""
        return Writer(str(self.slot), self.epoch)

    def accepts(self, offset: int) -> bool:
        """Return whether a message is the next one, or was done before.

        After a rebalance messages from before it can still be on their way, beyond the state that
        was loaded. So the first one that is ahead is refused, with all behind it, until it comes
        again after a seek: then what lies between is not in the log.
        """
        if not self.in_step and offset > self.next_offset and offset != self.jumped_to:
            return False
        if offset >= self.next_offset:
            self.in_step, self.jumped_to, self.sought_at = True, None, None
        return True

    def must_seek(self, offset: int, now: float) -> bool:
        """Return whether a refused message must be asked for again, with what is before it."""
        if self.jumped_to is not None and offset > self.jumped_to:
            return False
        self.jumped_to, self.sought_at = offset, now
        return True

    def must_seek_again(self, now: float) -> bool:
        """Return whether what was asked for again does not come.

        Faust drops messages that it takes for older than the last it read, also after a seek.
        """
        if self.sought_at is None or now - self.sought_at < SEEK_AGAIN_S:
            return False
        self.jumped_to, self.sought_at = None, now
        return True

    def lost_step(self, now: float) -> None:
        """Know that messages were dropped on their way, and are asked for again."""
        self.in_step, self.jumped_to, self.sought_at = False, None, now


@dataclass(frozen=True, slots=True)
class Taken:
    """What a checkpoint is of.

    Attributes
    ----------
    tp, partition
        Of which partition.
    next_offset, pending
        Its next offset at that moment, and the messages below that are not acknowledged.
    snapshot
        Its state; None if it is saved already.
    """

    tp: TP
    partition: Partition
    next_offset: int
    pending: list[Any]
    snapshot: Snapshot | None


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a worker is with one of its partitions.

    Attributes
    ----------
    topic, partition
        Of its input.
    next_offset
        Offset of the next message to take.
    committed_offset
        All messages below it are done for good.
    saved
        The last checkpoint that this worker wrote.
    waits_for
        What it cannot go on without: an announced model, or a partition to write to; None if
        nothing is missing.
    """

    topic: str
    partition: int
    next_offset: int
    committed_offset: int
    saved: Saved | None = None
    waits_for: str | None = None

    @property
    def place(self) -> Place:
        """Of its input."""
        return self.topic, self.partition


class RoleWorker:
    """Passes the messages of the assigned partitions through their stages.

    Parameters
    ----------
    app
        The Faust app of the role.
    config, part
        Settings, and which role or shard.
    make_stage
        Makes the stage of a partition that has no checkpoint.
    store, outbox
        Where state and records go.
    register
        Where it claims its partitions.
    registered
        Number of the settings that it was started with.
    metrics
        Takes note of what is done.
    decoder
        Opens what comes in the wire format of a schema registry; None if nothing does.

    Attributes
    ----------
    is_finished
        Whether the last checkpoint is written and committed.
    is_saving
        Whether it waits for the broker to acknowledge outputs, or for the store.
    committed_at
        When it committed last, or was made, in seconds since 1970.
    """

    def __init__(
        self,
        app: faust.App,
        config: Config,
        part: Part,
        *,
        make_stage: StageFactory,
        store: CheckpointStore,
        outbox: Outbox,
        register: Register,
        registered: int,
        metrics: WorkerMetrics,
        decoder: "Decoder | None" = None,
    ) -> None:
        self.app = app
        self.config = config
        self.part = part
        self.metrics = metrics
        self._interval_s = config.checkpoint.interval_s
        self._out_of_range = config.checkpoint.out_of_range
        self._make_stage = make_stage
        self._store = store
        self._outbox = outbox
        self._register = register
        self._registered = registered
        self._epochs: dict[str, int] = {}
        self._begins: Mapping[str, Begin] = {}
        self._own_topics = {config.topic(name) for name in OWN_TOPICS}
        # join passes on what it gets as it is, and evaluations are nobody else's
        self._decoder = WaitingDecoder(decoder if part.role in {"model", "drift"} else None, part)
        self._partitions: dict[TP, Partition] = {}
        self._busy = asyncio.Lock()
        self._checkpointed_at = self._checkpoint_began_at = time.monotonic()
        self._assigned: int | None = None
        self._stopping = False
        self._assignments = 0
        self._finishing: asyncio.Task[None] | None = None
        topics = [config.topic(name) for name in config.inputs(part.role)]
        self._merge = self._merged(topics) if len(topics) > 1 else None
        self._budgets: dict[int, TimeBudget | None] = {}
        self._letters = LetterLog(str(part))
        self._outputs = OutputPartitions(config, part, outbox.partitions)
        self._waits = ModelWaits(config, part, register, registered)
        self._looking = asyncio.Lock()
        self.is_finished = False
        self.is_saving = False
        self.committed_at = time.time()

    def source(self) -> Any:
        """Return the role's topics for its agent; raw bytes, so that stages see bad records too."""
        topics = map(self.config.topic, self.config.inputs(self.part.role))
        return self.app.topic(*topics, key_serializer="raw", value_serializer="raw")

    async def handle(self, event: EventT) -> None:
        """Take one message."""
        if self._stopping:
            return  # whoever goes on reads it again
        message = event.message
        try:
            async with self._busy:
                if self._merge is None:
                    await self._take_one(message)
                else:
                    self._merge.put(message)
                    await self._take_merged(self._merge)
                if self._more_waits(message):
                    self._outbox.send_all_if_old(time.monotonic())
                else:
                    self._outbox.send_all()
        except Exception as error:
            fail(f"{self.part}: cannot go on", error)

    async def tick(self) -> None:
        """Write a checkpoint if one is due; for the times when no message comes."""
        try:
            async with self._busy:
                await self._seek_again()
                await self._resume_streams()
                if self._merge is not None:
                    await self._take_merged(self._merge)
                self._outbox.send_all_if_old(time.monotonic())
                await self._checkpoint_if_due()
            await self._look_for_models()
        except Exception as error:
            fail(f"{self.part}: cannot write a checkpoint", error)

    async def shut_down(self) -> None:
        """Finish the current step, write a last checkpoint and commit."""
        self._stopping = True
        try:
            async with self._busy:
                self.is_finished = await self.checkpoint()
        except Exception as error:
            fail(f"{self.part}: cannot write the last checkpoint", error)

    def owns(self, tp: TP) -> bool:
        """Return whether the state of the partition is loaded."""
        return tp in self._partitions

    async def claim(self, tps: Collection[TP]) -> None:
        """Become the owner of partitions: what an owner before writes from now on is ignored.

        Ends the process if other settings were registered since it started.
        """
        slots = [str(Slot.of(self.part, tp.topic, tp.partition)) for tp in tps]
        for slot in slots:
            self._epochs.pop(slot, None)  # others may have owned it since
        try:
            self._epochs |= await self._registered_by(partial(self._register.claim, slots)) or {}
            registered = await self._registered_by(self._register.read)
        except Exception as error:
            fail(f"{self.part}: cannot claim {', '.join(slots)}", error)
        if registered is None:
            return  # there was another rebalance
        if registered.number != self._registered:
            refuse(replaced_settings(self.part))
        self._begins = registered.begins

    async def _registered_by(self, call: Callable[[], Answer]) -> Answer | None:
        """Return what the register answers, as soon as it does; None after another rebalance.

        An end would be a rebalance too, and with it more claims of others.
        """
        assignment, deadline = self._assignments, time.monotonic() + DELIVERY_DEADLINE_S
        while assignment == self._assignments:
            try:
                # in a thread: the loop must go on to hear of rebalances and signals
                answer = await asyncio.get_running_loop().run_in_executor(None, call)
            except BrokerError as error:
                if isinstance(error, AccessError) or time.monotonic() > deadline:
                    raise
                log.warning("%s: waits for its register: %s", self.part, error)
                await asyncio.sleep(REGISTER_AGAIN_S)
            else:
                # an epoch that came after the next rebalance would replace that of a later claim
                return answer if assignment == self._assignments else None
        return None

    async def start(self, tp: TP, earliest: int, end: int) -> int | None:
        """Load the newest checkpoint of a partition and return the offset to read on from.

        None if the partition was taken away, or was started by another call, meanwhile.
        """
        slot = Slot.of(self.part, tp.topic, tp.partition)
        assignment, epoch = self._assignments, self._epochs.get(str(slot))
        if epoch is None:
            return None  # a rebalance came before it was claimed
        try:
            checkpoint, cold_start = await self._load(slot, earliest)
            begin = Begin(epoch, -1 if checkpoint is None else checkpoint.next_offset)
            if assignment == self._assignments:
                await self._registered_by(partial(self._register.begin, str(slot), begin))
        except CheckpointError as error:
            refuse(str(error))
        except Exception as error:
            fail(f"{slot}: cannot load the checkpoint", error)
        if assignment != self._assignments or self.owns(tp):
            return None
        stage, offset, life, fence = self._state(tp, slot, checkpoint, cold_start, (earliest, end))
        if isinstance(stage, Metered):
            stage.meter = self.metrics.model
        if isinstance(stage, FollowsLives):
            stage.is_life = self._register.is_life
        if isinstance(stage, Exchanges):
            stage.models = ModelFolder(self.config.model.directory)
            if stage.awaited is not None:
                self._waits.begin(tp, stage, offset)
        saved = checkpoint.next_offset if checkpoint else 0
        self._partitions[tp] = Partition(
            slot,
            stage,
            next_offset=offset,
            saved_offset=saved,
            committed_offset=offset,
            epoch=epoch,
            life=life,
            fence=fence,
            # what is published from here on is right only if the next start knows of the jump
            must_save=offset != saved,
        )
        log.info("%s: goes on at offset %d", slot, offset)
        return offset

    def _state(
        self,
        tp: TP,
        slot: Slot,
        checkpoint: Checkpoint | None,
        cold_start: int | None,
        log_range: tuple[int, int],
    ) -> tuple[Stage, int, Life, Fence]:
        """Return the state to go on with, and where; say what is lost before it."""
        earliest, end = log_range
        if checkpoint is None:
            life = Life(self._registered, cold_start)
            if cold_start is not None:
                self._publish_cold_start(tp, earliest, life)
            return self._make_stage(tp.topic, tp.partition), earliest, life, Fence()
        offset = checkpoint.next_offset
        if offset > end:
            refuse(shorter_log(slot, offset, end))
        if offset < earliest:
            offset = self._pass_over(tp, offset, earliest, end, checkpoint.life)
        return checkpoint.stage, offset, checkpoint.life, checkpoint.fence

    async def _load(self, slot: Slot, earliest: int) -> tuple[Checkpoint | None, int | None]:
        """Return the newest checkpoint; without one, the number of the cold start, if it is one."""
        begin = self._begins.get(str(slot), ANY)
        run = asyncio.get_running_loop().run_in_executor
        checkpoint = await run(None, self._store.load, slot, begin)
        if checkpoint is not None or earliest == 0:
            return checkpoint, None
        # not the slot: all shards that begin here have the same state
        place = f"{self.part.role} {stream_name(slot.topic, slot.partition)}"
        number = partial(self._register.cold_start, place, earliest, self._registered)
        assignment, cold_start = self._assignments, await self._registered_by(number)
        if cold_start is None and assignment == self._assignments:
            refuse(replaced_settings(self.part))
        return None, cold_start

    def must_commit(self, tp: TP, committed: int | None) -> None:
        """Know that the group's committed offset, None for none, is not that of the state.

        So it is where a worker ended between the checkpoint and its first commit. If no message
        comes any more, nothing else would commit what the checkpoint holds.
        """
        partition = self._partitions[tp]
        partition.must_commit = partition.saved_offset > 0
        if not partition.must_commit and (committed or 0) > partition.next_offset:
            log.warning(
                "%s: the group has committed offset %d, but there is no checkpoint in %s: the "
                "state is rebuilt from offset %d on, and the same records are published again",
                partition.slot,
                committed,
                self.config.checkpoint.place,
                partition.next_offset,
            )

    def assigned(self, partitions: int) -> None:
        """Know that a rebalance has ended, and how many partitions it gave to this worker."""
        self._assigned = partitions

    def revoke(self) -> None:
        """Throw away state and pending work of all partitions.

        A rebalance takes all partitions away, and gives some of them back.
        """
        self._assigned = None
        self._assignments += 1
        self._partitions.clear()
        self._waits.clear()
        if self._merge is not None:
            self._merge.clear()
        self._budgets.clear()
        self._outputs.forget()
        # else what waits to be sent would leave, and be told of, beside what the next owner sends
        self._outbox.discard()
        self.metrics.published.forget()

    @property
    def waits_for(self) -> str | None:
        """What it cannot go on without, and why that is not there; None if nothing is missing."""
        return (
            self._decoder.waits_for
            or self._waits.waits_for
            or self._outputs.waits_for
            or self._outbox.obstacle
        )

    @property
    def waiting(self) -> dict[str, int]:
        """What may be missing → how many partitions wait for it; from any thread."""
        registry = len(self._partitions) if self.is_held_up else 0
        return {
            "model": len(self._waits.reasons),
            "partition": len(self._outputs.missing),
            "registry": registry,
        }

    @property
    def is_held_up(self) -> bool:
        """Whether no partition can go on, since the schema registry does not answer."""
        return self._decoder.waits_for is not None

    @property
    def is_ready(self) -> bool:
        """Whether it has its share of the group's partitions, with their state, and goes on."""
        is_given = self._assigned == len(self._partitions)
        return is_given and not self._stopping and self.waits_for is None

    def is_replaced(self) -> bool:
        """Return whether other settings were registered since the worker started; from any thread.

        Raises
        ------
        BrokerError
            If the broker does not answer.
        """
        return self._register.read().number != self._registered

    def standings(self) -> list[Standing]:
        """Return how far each partition is; may be called from any thread."""
        reasons, missing = self._waits.reasons, self._outputs.reasons
        return [
            Standing(
                *(tp.topic, tp.partition, held.next_offset, held.committed_offset, held.saved),
                waits_for=reasons.get(tp) or missing.get(tp.partition),
            )
            for tp, held in list(self._partitions.items())
        ]

    @property
    def outputs_waiting(self) -> int:
        """How many messages the broker has not acknowledged yet; from any thread."""
        return self._outbox.waiting

    async def checkpoint(self) -> bool:
        """Run the three steps of the commit protocol; return whether all is committed."""
        await self._finished()
        # who waits for all of it gains nothing by a copy of the process, which may fail
        return await self._finish(await self._begin(aside=False))

    async def _begin(self, *, aside: bool) -> list[Taken]:
        """Wait for the outputs, and take the states; large ones aside, if wanted."""
        partitions = list(self._partitions.items())
        self.is_saving = True
        self._checkpoint_began_at = time.monotonic()
        # 1. every output has arrived
        await self._outbox.delivered()
        # a rebalance while waiting takes partitions away: they are the next owner's
        return [self._take(tp, p, aside=aside) for tp, p in partitions if self._holds(tp, p)]

    async def _finish(self, taken: list[Taken]) -> bool:
        """Write what was taken, and commit; return whether all is committed."""
        # 2. the state is safe
        saved = [each for each in taken if await self._save(each)]
        self.is_saving = False
        # 3. the messages are done
        committed = [await self._commit(each) for each in saved]
        self._checkpointed_at = time.monotonic()
        if any(each.snapshot for each in saved):
            self.metrics.checkpoint.observe(self._checkpointed_at - self._checkpoint_began_at)
        return len(saved) == len(taken) and all(committed)

    async def _finish_aside(self, taken: list[Taken]) -> None:
        try:
            await self._finish(taken)
        except Exception as error:
            fail(f"{self.part}: cannot write a checkpoint", error)

    async def _finished(self) -> None:
        """Wait for the checkpoint that is being written, if there is one."""
        if self._finishing is not None:
            await self._finishing
            self._finishing = None

    def _take(self, tp: TP, partition: Partition, *, aside: bool) -> Taken:
        snapshot = None
        if partition.next_offset > partition.saved_offset or partition.must_save:
            checkpoint = Checkpoint(
                partition.next_offset,
                partition.stage,
                partition.life,
                partition.fence,
                partition.epoch,
            )
            snapshot = Snapshot(checkpoint, aside=aside and partition.is_large)
            partition.is_large = partition.is_large or snapshot.seconds > SLOW_S
        pending, partition.pending = partition.pending, []
        return Taken(tp, partition, partition.next_offset, pending, snapshot)

    def _holds(self, tp: TP, partition: Partition) -> bool:
        return self._partitions.get(tp) is partition

    def _merged(self, topics: list[str]) -> Merge:
        def waiting(place: Place) -> tuple[int, int] | None:
            held, end = self._partitions.get(TP(*place)), self._log_end(TP(*place))
            if held is None:
                return None
            return held.next_offset, held.next_offset + 1 if end is None else end

        return Merge(
            topics,
            waiting=waiting,
            pause=lambda place: self.app.consumer.pause_partitions({TP(*place)}),
            resume=lambda place: self.app.consumer.resume_partitions({TP(*place)}),
        )

    async def _take_merged(self, merge: Merge) -> None:
        for message in merge.ready(time.monotonic()):
            await self._take_one(message)

    async def _take_one(self, message: Any) -> None:
        await self._checkpoint_if_due()
        await self._step(message)

    def _more_waits(self, message: Any) -> bool:
        """Return whether the broker has more of the message's partition."""
        return bool(message.offset + 1 < (self._log_end(message.tp) or 0))

    def _log_end(self, tp: TP) -> int | None:
        """Return the offset of the next message to come, as of the last fetch; None before it."""
        try:
            end: int | None = self.app.consumer.highwater(tp)
        except AssertionError:
            return None  # aiokafka's way to say that the partition was just taken away
        return end

    async def _step(self, message: Any) -> None:
        partition = self._partitions.get(message.tp)
        if partition is None or message.generation_id != self.app.consumer_generation_id:
            return  # of an assignment that is over: its next owner reads it again
        if await self._is_held_back(message) or not self._holds(message.tp, partition):
            return
        if not partition.accepts(message.offset):
            if partition.must_seek(message.offset, time.monotonic()):
                await self._read_again({message.tp: partition.next_offset})
            return
        ahead = message.offset > partition.next_offset
        if ahead and not await self._passes_hole(message.tp, partition, message.offset):
            return
        if message.offset >= partition.next_offset:
            incoming = await self._decoder.opened(
                incoming_message(message, is_own=message.topic in self._own_topics),
                holds=lambda: self._holds(message.tp, partition) and not self._stopping,
                waits=self._outbox.send_all,  # what is done needs not wait
            )
            if incoming is None:
                return  # whoever goes on reads it again
            checked = await self._of_its_owner(partition, incoming)
            if not self._holds(message.tp, partition):
                return
            if checked is not None:
                self._process(partition, checked)
            partition.next_offset = message.offset + 1
        # it waits for its acknowledgement only
        message.key = message.value = message.headers = None
        partition.pending.append(message)
        await self._await_model(message.tp, partition)

    async def _is_held_back(self, message: Any) -> bool:
        """Return whether a partition waits; then its messages are read again afterwards."""
        if not await self._outputs.has(message.partition):
            return True
        wait = self._waits.get(message.tp)
        if wait is None:
            return False
        # again with each: Faust forgets it when it has buffered too much
        self.app.consumer.pause_partitions({message.tp})
        wait.has_dropped = True
        return True

    def _publish(self, partition: Partition, records: Sequence[Record], incoming: Message) -> None:
        """Send what a stage publishes for a message."""
        for record in records:
            if isinstance(record, DeadLetter):
                self._letters.see(record, time.monotonic())
            trace = trace_of(record, incoming)
            place = incoming.key, incoming.partition
            own = partition.life.of(record, self.part.role)
            self._outbox.send(own, *place, trace, writer=partition.writer)

    async def _await_model(self, tp: TP, partition: Partition) -> None:
        """Let a partition wait if its stage awaits a model that is not there."""
        stage = partition.stage
        # in this order: to look whether it is an exchange takes longer
        if getattr(stage, "awaited", None) is None or not isinstance(stage, Exchanges):
            return
        wait = self._waits.begin(tp, stage, partition.next_offset)
        await self._look([wait], ahead=False)
        await self._conclude(wait)

    async def _look_for_models(self) -> None:
        """Look for awaited models, and their withdrawals, while the other partitions go on."""
        waits = self._waits.due(time.monotonic())
        if not waits or self._stopping:
            return
        await stay_in_group(self.app.consumer)
        await self._look(waits, ahead=True)
        async with self._busy:
            for wait in waits:
                await self._conclude(wait)

    async def _look(self, waits: list[ModelWait], *, ahead: bool) -> None:
        async with self._looking:
            current = [wait for wait in waits if self._waits.is_current(wait)]
            # in a thread: the loop must go on to hear of rebalances and signals
            look = partial(self._waits.look, current, ahead=ahead)
            await asyncio.get_running_loop().run_in_executor(None, look)

    async def _conclude(self, wait: ModelWait) -> None:
        """Let a partition go on if it is decided what becomes of the model that it waits for."""
        if self._stopping or not self._waits.is_current(wait):
            return
        outcome = wait.outcome
        if outcome is None:
            self._waits.log_once(wait)
            self._outbox.send_all()  # what is done needs not wait
            return
        partition, stage = self._partitions[wait.tp], wait.stage
        announcement = stage.announcement
        records = stage.withdraw() if outcome == "withdrawn" else stage.take_over(outcome)
        if announcement is not None:
            self._publish(partition, records, announcement)
        partition.must_save = True  # else the newest checkpoint would hold the model before
        self._waits.end(wait)
        if wait.has_dropped:
            partition.lost_step(time.monotonic())
            self.app.consumer.resume_partitions({wait.tp})
            await self._read_again({wait.tp: partition.next_offset})

    def _process(self, partition: Partition, incoming: Message) -> None:
        """Let the stage take a message, and send what it publishes."""
        began_at = time.perf_counter()
        records = process(partition.stage, incoming)
        took_s = time.perf_counter() - began_at
        self.metrics.step.observe(took_s)
        self._publish(partition, records, incoming)
        if isinstance(partition.stage, Sheds):
            self._keep_budget(incoming.partition, partition.stage, took_s)

    async def _of_its_owner(self, partition: Partition, incoming: Message) -> Message | None:
        """Return a message to take; None if its writer no longer owns the slot.

        What no worker of this pipeline wrote into its own topics has a flaw: it is a dead letter.
        """
        if incoming.topic not in self._own_topics or incoming.flaw is not None:
            return incoming
        writer = Writer.read(incoming.headers.get(WRITER, b""))
        # the broker is asked about new ones only
        if writer is not None and partition.fence.is_new(writer):
            read = partial(self._register.read, writer.epoch)
            registered = await self._registered_by(read)
            if registered is None:
                return None  # there was a rebalance: this partition is read again
            if registered.number != self._registered:
                refuse(replaced_settings(self.part))  # else it would take what others now make
            writer = writer if registered.knows(writer) else None
        if writer is None:
            # where it says that it is from is not believed either
            return replace(incoming, flaw=NOT_OURS, headers={})
        if partition.fence.admits(writer, least=self._registered):
            return incoming
        self.metrics.outdated.inc()
        return None

    def _keep_budget(self, partition: int, stage: Sheds, took_s: float) -> None:
        if partition not in self._budgets:
            self._budgets[partition] = budget_of(self.config, self.part, partition)
            every = outdated(self.config, self.part, partition, stage.every)
            if every is not None:
                self._outbox.send(Control(every=every), None, partition)
        budget = self._budgets[partition]
        if budget is None:
            return
        every = budget.see(partition, stage.every, seconds=took_s, now=time.monotonic())
        if every is not None:
            log.info(
                "%s of partition %d: one of %d observations is explained from here on, one of %d "
                "until now: explain.budget_ms",
                self.part,
                partition,
                every,
                stage.every,
            )
            self._outbox.send(Control(every=every), None, partition)

    async def _checkpoint_if_due(self) -> None:
        waiting = sum(len(partition.pending) for partition in self._partitions.values())
        # what is published from here on may need the checkpoint, or room
        urgent = any(p.must_save or p.must_commit for p in self._partitions.values())
        if urgent or self._outbox.is_full or waiting >= MAX_PENDING:
            await self.checkpoint()
            return
        late = time.monotonic() - self._checkpointed_at >= self._interval_s
        if waiting and late and (self._finishing is None or self._finishing.done()):
            await self._finished()
            self._finishing = asyncio.create_task(self._finish_aside(await self._begin(aside=True)))

    async def _save(self, taken: Taken) -> bool:
        """Write a state; return whether it is safe, and still this worker's."""
        partition, snapshot = taken.partition, taken.snapshot
        if not self._holds(taken.tp, partition):
            if snapshot:
                snapshot.discard()
            return False
        if snapshot:
            # in a thread, as loading
            loop = asyncio.get_running_loop()
            try:
                await loop.run_in_executor(None, self._store.save, partition.slot, snapshot)
            except SnapshotError as error:
                log.warning("%s: %s; the worker pickles its state itself", partition.slot, error)
                partition.is_large = False
                partition.pending[:0] = taken.pending
                return False
            partition.saved_offset = taken.next_offset
            partition.saved = Saved(time.time(), snapshot.size_bytes)
            partition.must_save = False
        return True

    async def _commit(self, taken: Taken) -> bool:
        """Commit what was taken, if anything was; return whether nothing is left to commit."""
        tp, partition, consumer = taken.tp, taken.partition, self.app.consumer
        if not self._holds(tp, partition):
            return False
        if not taken.pending:
            if partition.must_commit:
                committed = await consumer._commit({tp: partition.saved_offset})
                partition.must_commit = not committed
            return not partition.must_commit
        for message in taken.pending:
            message.ack(consumer)
        for _ in range(COMMIT_ATTEMPTS):
            committed = await consumer.commit({tp})
            if not self._holds(tp, partition):
                return False
            if committed:
                partition.committed_offset = taken.next_offset
                partition.must_commit = False
                self.committed_at = time.time()
                return True
            await asyncio.sleep(0.05)
        return False

    async def _seek_again(self) -> None:
        now = time.monotonic()
        late = {tp: p.next_offset for tp, p in self._partitions.items() if p.must_seek_again(now)}
        if late:
            await self._read_again(late)

    async def _resume_streams(self) -> None:
        """Read the streams again whose records could not be sent for want of a partition."""
        for number in self._outputs.missing:
            await self._outputs.has(number)
        # whoever saw it first: what was dropped meanwhile is not only of the topic that came first
        for number in self._outputs.take_found():
            held = {tp: p for tp, p in self._partitions.items() if tp.partition == number}
            for partition in held.values():
                partition.lost_step(time.monotonic())
            await self._read_again({tp: p.next_offset for tp, p in held.items()})

    async def _read_again(self, offsets: dict[TP, int]) -> None:
        if self._merge is not None:
            for tp in offsets:  # else what comes would stand behind what is refused
                self._merge.forget((tp.topic, tp.partition))
        await self.app.consumer.seek_wait(offsets)

    async def _passes_hole(self, tp: TP, partition: Partition, offset: int) -> bool:
        """Return whether there is nothing to take before the message at an offset.

        Messages may have been deleted before they were read. Compaction and transactions leave
        holes in which nothing is lost. But Faust may also have dropped messages on their way:
        these are asked for again.
        """
        await self._pass_deleted(tp, partition)
        if not self._holds(tp, partition):
            return False
        if offset <= partition.next_offset:
            return True
        peek = asyncio.get_running_loop().run_in_executor(
            None, self._peek, tp, partition.next_offset
        )
        first = await peek
        if not self._holds(tp, partition):
            return False
        if first == offset:
            return True
        log.warning("%s: offset %s came before %s: reading again", partition.slot, offset, first)
        partition.lost_step(time.monotonic())
        await self._read_again({tp: partition.next_offset})
        return False

    def _peek(self, tp: TP, offset: int) -> int | None:
        return first_offset(self.config, tp.topic, tp.partition, offset, PEEK_S)

    async def _pass_deleted(self, tp: TP, partition: Partition) -> None:
        """Go on behind messages that were deleted before they were read, if there are any."""
        consumer = self.app.consumer
        earliest = (await consumer.earliest_offsets(tp))[tp]
        if earliest <= partition.next_offset or not self._holds(tp, partition):
            return
        end = (await consumer.highwaters(tp))[tp]
        if not self._holds(tp, partition):
            return
        partition.next_offset = self._pass_over(
            tp, partition.next_offset, earliest, end, partition.life
        )
        partition.must_save = True
        if partition.next_offset != earliest:
            await consumer.seek_wait({tp: partition.next_offset})
        await self.checkpoint()

    def _pass_over(self, tp: TP, offset: int, earliest: int, end: int, life: Life) -> int:
        """Return where to go on when messages from an offset on were deleted unread."""
        stream = stream_name(tp.topic, tp.partition)
        lost = f"offsets {offset} to {earliest - 1} of {stream} were deleted before they were read"
        if self._out_of_range == "fail":
            refuse(
                f"{self.part}: {lost}. Set checkpoint.out_of_range to 'earliest' or 'latest' to "
                "go on without them, or remove the checkpoint (`fluxplain checkpoints remove`) to "
                "start anew from what is there"
            )
        target = earliest if self._out_of_range == "earliest" else end
        log.warning("%s: %s; it goes on at offset %d", self.part, lost, target)
        begin: int | None = offset - 1
        detail = f"{lost}; the role goes on at offset {target}"
        if self.part.shards > 1:
            # under one identity each shard must publish the same, wherever it was
            begin, up_to = None, f"offsets up to {earliest - 1} of {stream}"
            detail = f"{up_to} were deleted before each shard had read them"
        notice = Change.notice(
            kind="gap",
            stream=stream,
            seq=target - 1,
            previous_seq=begin,
            detail=detail,
        )
        self._outbox.send(life.of(notice, self.part.role), None, tp.partition)
        return target

    def _publish_cold_start(self, tp: TP, earliest: int, life: Life) -> None:
        stream = stream_name(tp.topic, tp.partition)
        detail = (
            f"the role {self.part.role} starts cold at offset {earliest} of {stream}: there is no "
            "checkpoint, and the log no longer holds what came before"
        )
        log.warning(detail)
        notice = Change.notice(kind="cold-start", stream=stream, seq=earliest, detail=detail)
        self._outbox.send(life.of(notice, self.part.role), None, tp.partition)


def incoming_message(message: Any, *, is_own: bool) -> Message:
    """Return a message of Faust's as the stages take it.

    Parameters
    ----------
    message
        Faust's.
    is_own
        Whether only workers write its topic; else headers with names of ours are forged.
    """
    flaw = message.headers.reason if isinstance(message.headers, Unreadable) else None
    return Message(
        message.topic,
        message.partition,
        message.offset,
        message.key,
        message.value,
        # Faust has made seconds of it; without one it is None, or Kafka's -1
        round(message.timestamp * 1000) if (message.timestamp or -1.0) >= 0.0 else None,
        usable_headers(message.headers or (), is_own=is_own),
        flaw=flaw,
    )


def replaced_settings(part: Part) -> str:
    """Return why a worker whose settings were replaced must end."""
    return (
        f"{part}: other settings were registered for this pipeline since this worker was started "
        "(`fluxplain settings replace`): start it with those; `fluxplain settings show` names the "
        "keys that differ"
    )


def shorter_log(slot: Slot, offset: int, end: int) -> str:
    """Return why nothing can go on at an offset beyond the end of the log."""
    return (
        f"{slot} goes on at offset {offset}, but the topic ends at {end}: messages were lost, or "
        "the topic was made anew. New messages would have the offsets, and so the identity, of "
        "others that were published before. Use another topics.prefix, or make all topics anew "
        "and remove the checkpoints (`fluxplain checkpoints remove`)"
    )

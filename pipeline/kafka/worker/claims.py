"""The partitions of this worker: claims them, loads their states, and checks who wrote to them."""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial

from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointError, Slot, StageFactory
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.exits import fail, refuse, replaced_settings, shorter_log
from fluxplain.kafka.headers import foreign
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.registered import Registered, place_of
from fluxplain.kafka.ownership.writers import ANY, OWN_TOPICS, WRITER, Begin, Writer
from fluxplain.kafka.worker.budget import StreamBudget
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.gaps import Gaps
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.kafka.worker.register_answers import RegisterAnswers, is_claimed
from fluxplain.models.model_store import ModelFolder
from fluxplain.stages import Message
from fluxplain.stages.active_model import HasActiveModel
from fluxplain.stages.streams import ChecksIncarnations

log = logging.getLogger("fluxplain.worker")


@dataclass(eq=False)
class Claims:
    """Claims partitions in the register, and loads the newest allowed checkpoint or a new stage.

    Afterwards it checks the writers of messages against the register. After a rebalance, earlier
    requests return None.
    """

    context: Context
    make_stage: StageFactory
    gaps: Gaps
    _epochs: dict[str, int] = field(default_factory=dict)
    _registered: Registered = field(default_factory=Registered)

    def __post_init__(self) -> None:
        self._answers = RegisterAnswers(self.context)
        self._own_topics = {self.context.config.topic(name) for name in OWN_TOPICS}

    async def claim(self, tps: Collection[TopicPartition]) -> None:
        """Become the owner of partitions; end the process if other settings were registered."""
        replica, register = self.context.replica, self.context.register
        names = [str(Slot.of(replica, *tp)) for tp in tps]
        for name in names:
            self._epochs.pop(name, None)  # another worker may have owned it since
        holds = self._same_assignment()
        try:
            self._epochs |= await self._answers.of(partial(register.claim, names), holds) or {}
            registered = await self._answers.read(holds)
        except Exception as error:
            fail(f"{replica}: cannot claim {', '.join(names)}", error)
        if registered is not None:  # else there was another rebalance
            self._registered = registered

    async def drop_claimed(self) -> bool:
        """Drop partitions that another worker has claimed; return whether any.

        A member that was expelled from its group, and comes back, may get partitions again that
        others have owned meanwhile. Claims after this one's assignment are by workers that the
        broker does not confirm, or in a later rebalance.
        """
        if not self.context.assignment:
            return False
        registered = await self._answers.read(self._same_assignment())
        if registered is None:
            return False  # there was another rebalance
        lost = [each for each in self.context.assignment if is_claimed(registered, each)]
        return self.context.assignment.drop(lost)

    async def load(self, tp: TopicPartition, log_range: range) -> AssignedPartition | None:
        """Load a partition; None if it was meanwhile revoked or loaded by another call."""
        slot, assignment = Slot.of(self.context.replica, *tp), self.context.assignment
        number, epoch = assignment.number, self._epochs.get(str(slot))
        if epoch is None:
            return None  # a rebalance came before it was claimed
        try:
            checkpoint, cold_start = await self._checkpoint(slot, log_range)
            begin = Begin(epoch, -1 if checkpoint is None else checkpoint.next_offset)
            # before it publishes anything
            record = partial(self.context.register.begin, str(slot), begin)
            await self._answers.of(record, self._same_assignment())
        except CheckpointError as error:
            refuse(str(error))
        except Exception as error:
            fail(f"{slot}: cannot load the checkpoint", error)
        if number != assignment.number or assignment.get(*tp) is not None:
            return None
        state, offset = self._state(slot, log_range, checkpoint, cold_start)
        partition = AssignedPartition(
            *(slot, state.stage, offset, state.next_offset, offset, epoch, state.life, state.fence),
            # records published from here on are right only if the next start knows of the jump
            must_save=offset != state.next_offset or state.is_upgraded,
        )
        self._inject(partition)
        assignment.add(partition)
        log.info("%s: resumes at offset %d", slot, offset)
        return partition

    def is_own(self, topic: str) -> bool:
        """Return whether only workers write a topic; elsewhere fluxplain's headers are forged."""
        return topic in self._own_topics

    async def checked(
        self, partition: AssignedPartition, incoming: Message, *, waits: Callable[[], None]
    ) -> Message | None:
        """Return a message to take; None if its writer no longer owns its slot.

        A message in the pipeline's own topics without a known writer gets a flaw, and becomes a
        dead letter. ``waits`` is called before the broker is asked.
        """
        if not self.is_own(incoming.topic) or incoming.flaw is not None:
            return incoming
        writer = Writer.read(incoming.headers.get(WRITER, b""))
        # ask the broker about new ones only
        if writer is not None and partition.fence.is_new(writer):
            waits()
            read = partial(self.context.register.read, writer.epoch)
            registered = await self._answers.of(read, lambda: partition.is_held)
            if registered is None:
                return None  # revoked: its next owner reads it again
            self._answers.check(registered)  # else its input now has other settings
            writer = writer if registered.knows(writer) else None
        if writer is None:
            return foreign(incoming)
        return incoming if partition.fence.admits(writer, least=self.context.registered) else None

    def is_replaced(self) -> bool:
        """Return whether other settings or versions were registered since.

        May raise ``BrokerError``.
        """
        return self._answers.is_replaced(self.context.register.read())

    async def _checkpoint(
        self, slot: Slot, log_range: range
    ) -> tuple[Checkpoint | None, int | None]:
        """Return the newest checkpoint; without one, the number of the cold start, if any."""
        allowed = self._registered.begins.get(str(slot), ANY)
        checkpoint = await asyncio.to_thread(self.context.store.load, slot, allowed)
        # former versions have read the log from its beginning, and published other bits
        is_repeated = self._registered.has_former_bits(place_of(str(slot)))
        if checkpoint is not None or (log_range.start == 0 and not is_repeated):
            return checkpoint, None
        return None, await self._cold_start(slot, log_range.start)

    async def _cold_start(self, slot: Slot, offset: int) -> int | None:
        """Return the number of the cold start at an offset; None after another rebalance."""
        # not the slot: all shards that begin here have the same state, and share the number
        place = place_of(str(slot))
        context, number = self.context, self.context.assignment.number
        numbers = context.registered, context.versions
        register = partial(context.register.cold_start, place, offset, *numbers)
        cold_start = await self._answers.of(register, self._same_assignment())
        if cold_start is None and number == context.assignment.number:
            refuse(replaced_settings(context.replica))
        return cold_start

    def _state(
        self, slot: Slot, log_range: range, checkpoint: Checkpoint | None, cold_start: int | None
    ) -> tuple[Checkpoint, int]:
        """Return the checkpoint, or that of a new state, and the offset to resume at."""
        if checkpoint is None:
            life, offset = Life(self.context.registered, cold_start), log_range.start
            if cold_start is not None:
                self.gaps.publish_cold_start(slot.tp, offset, life)
            return Checkpoint(0, self.make_stage(slot.topic, slot.partition), life), offset
        offset = checkpoint.next_offset
        if checkpoint.is_upgraded and slot.is_replayed:
            changed = self._registered.changes_at(checkpoint.life.cold_start or 0)
            self.gaps.publish_upgrade(slot.tp, offset, checkpoint.life, changed)
        if offset > log_range.stop:
            refuse(shorter_log(slot, offset, log_range.stop))
        if offset < log_range.start:
            offset = self.gaps.pass_over(slot.tp, offset, log_range, checkpoint.life)
        return checkpoint, offset

    def _inject(self, partition: AssignedPartition) -> None:
        """Inject a stage's collaborators, which are not part of its state."""
        stage, context = partition.stage, self.context
        if isinstance(stage, ChecksIncarnations):
            stage.lives = context.register
        if isinstance(stage, HasActiveModel):
            stage.meter = context.metrics.model
            stage.active.models = ModelFolder(context.config.model.directory)
            number = partition.tp.partition
            partition.budget = StreamBudget.of(context.config, context.replica, number)

    def _same_assignment(self) -> Callable[[], bool]:
        """Return a function that says whether there was no rebalance since."""
        number = self.context.assignment.number
        return lambda: number == self.context.assignment.number

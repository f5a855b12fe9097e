"""Loads the state of a claimed partition: the newest allowed checkpoint, or a new stage."""

import asyncio
import logging
from dataclasses import dataclass

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Slot,
    StageFactory,
)
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.exits import fail, refuse, shorter_log
from fluxplain.kafka.metrics.model_time import ModelCollector
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.writers import Begin
from fluxplain.kafka.worker.budget import StreamBudget
from fluxplain.kafka.worker.claims import Claims
from fluxplain.kafka.worker.gaps import GapNotices
from fluxplain.kafka.worker.partition import AssignedPartition, Assignment
from fluxplain.models.model_store import ModelFolder
from fluxplain.stages.active_model import HasActiveModel
from fluxplain.stages.intake.subsampling import SubsamplingStage
from fluxplain.stages.metering import Metered
from fluxplain.stages.streams import ChecksIncarnations

log = logging.getLogger("fluxplain.worker")


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads partitions into an assignment."""

    config: Config
    replica: Replica
    assignment: Assignment
    make_stage: StageFactory
    store: CheckpointStore
    claims: Claims
    notices: GapNotices
    meter: ModelCollector

    async def load(self, tp: TopicPartition, log_range: range) -> AssignedPartition | None:
        """Load a partition; None if it was meanwhile revoked or loaded by another call."""
        slot = Slot.of(self.replica, *tp)
        number, epoch = self.assignment.number, self.claims.epoch(slot)
        if epoch is None:
            return None  # a rebalance came before it was claimed
        try:
            checkpoint, cold_start = await self._checkpoint(slot, log_range.start)
            begin = Begin(epoch, -1 if checkpoint is None else checkpoint.next_offset)
            await self.claims.begin(slot, begin)
        except CheckpointError as error:
            refuse(str(error))
        except Exception as error:
            fail(f"{slot}: cannot load the checkpoint", error)
        if number != self.assignment.number or self.assignment.get(*tp) is not None:
            return None
        if checkpoint is None:
            partition = self._begun(slot, log_range, cold_start)
        else:
            partition = self._resumed(slot, log_range, checkpoint)
        partition.epoch = epoch
        # records published from here on are right only if the next start knows of the jump
        partition.must_save = partition.next_offset != partition.saved_offset
        self._inject(partition)
        self.assignment.add(partition)
        log.info("%s: resumes at offset %d", slot, partition.next_offset)
        return partition

    async def _checkpoint(self, slot: Slot, earliest: int) -> tuple[Checkpoint | None, int | None]:
        """Return the newest checkpoint; without one, the number of the cold start, if any."""
        run = asyncio.get_running_loop().run_in_executor
        checkpoint = await run(None, self.store.load, slot, self.claims.allowed(slot))
        if checkpoint is not None or earliest == 0:
            return checkpoint, None
        return None, await self.claims.cold_start(slot, earliest)

    def _begun(self, slot: Slot, log_range: range, cold_start: int | None) -> AssignedPartition:
        life, offset = Life(self.claims.registered, cold_start), log_range.start
        if cold_start is not None:
            self.notices.publish_cold_start(slot.tp, offset, life)
        stage = self.make_stage(slot.topic, slot.partition)
        return AssignedPartition(slot, stage, offset, 0, offset, life=life)

    def _resumed(self, slot: Slot, log_range: range, found: Checkpoint) -> AssignedPartition:
        offset = found.next_offset
        if offset > log_range.stop:
            refuse(shorter_log(slot, offset, log_range.stop))
        if offset < log_range.start:
            offset = self.notices.pass_over(slot.tp, offset, log_range, found.life)
        return AssignedPartition(
            slot, found.stage, offset, found.next_offset, offset, life=found.life, fence=found.fence
        )

    def _inject(self, partition: AssignedPartition) -> None:
        """Inject a stage's collaborators, which are not part of its state."""
        stage, stream = partition.stage, partition.slot.partition
        if isinstance(stage, Metered):
            stage.meter = self.meter
        if isinstance(stage, ChecksIncarnations):
            stage.is_life = self.claims.register.is_life
        if isinstance(stage, HasActiveModel):
            stage.active.models = ModelFolder(self.config.model.directory)
        if isinstance(stage, SubsamplingStage):
            partition.budget = StreamBudget.of(self.config, self.replica, stream)

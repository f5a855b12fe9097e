"""The status of a worker, for its health checks, watchdog and metrics."""

from dataclasses import dataclass

from fluxplain.kafka.registry.registry_wait import WaitingDecoder
from fluxplain.kafka.worker.claims import Claims
from fluxplain.kafka.worker.commit import Committer
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.model_waits import ModelWaits
from fluxplain.kafka.worker.output_partitions import OutputPartitions
from fluxplain.kafka.worker.partition import PartitionProgress


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Collects the status of a worker's parts; safe to use from any thread."""

    context: Context
    claims: Claims
    committer: Committer
    decoder: WaitingDecoder
    waits: ModelWaits
    outputs: OutputPartitions

    @property
    def waits_for(self) -> str | None:
        """A message about what blocks the worker; None if nothing does."""
        waiting = [each for each in self.partitions() if each.waits_for]
        if self.decoder.waits_for or not waiting:
            return self.decoder.waits_for or self.context.outbox.obstacle
        first, *others = waiting
        also = f"; also waiting: {', '.join(str(each.tp) for each in others)}" if others else ""
        return f"{first.tp}: {first.waits_for}{also}"

    @property
    def waiting(self) -> dict[str, int]:
        """Kind of wait → number of waiting partitions."""
        return {
            "model": len(self.waits.reasons),
            "partition": len(self.outputs.reasons),
            "registry": len(self.context.assignment) if self.is_held_up else 0,
        }

    @property
    def is_held_up(self) -> bool:
        """Whether a missing schema registry blocks all partitions."""
        return self.decoder.waits_for is not None

    @property
    def is_ready(self) -> bool:
        """Whether all its assigned partitions are loaded, and nothing stops or blocks it."""
        assignment = self.context.assignment
        is_given = assignment.size == len(assignment)
        return is_given and not assignment.is_stopping and self.waits_for is None

    def partitions(self) -> list[PartitionProgress]:
        """Return the progress of each partition."""
        reasons, missing = self.waits.reasons, self.outputs.reasons
        return [
            PartitionProgress(
                *(each.tp, each.next_offset, each.committed_offset, each.saved),
                waits_for=reasons.get(each.tp) or missing.get(each.tp.partition),
            )
            for each in self.context.assignment
        ]

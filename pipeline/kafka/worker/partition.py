"""The assigned partitions: the state and the next offset of each."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from fluxplain.kafka.checkpoints.checkpoint import Slot
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.ownership.writers import WRITER, Fence, Writer
from fluxplain.kafka.worker.budget import StreamBudget
from fluxplain.stages import Stage
from fluxplain.stages.active_model import FoundModel, HasActiveModel

SEEK_AGAIN_S = 2.0
"""Seconds without a message after a seek before it is repeated."""


class SavedCheckpoint(NamedTuple):
    """Time (seconds since 1970) and size of the last checkpoint that this worker wrote."""

    at: float
    size_bytes: int


class PartitionProgress(NamedTuple):
    """A worker's progress in one partition, and the reason why it waits, if it does."""

    tp: TopicPartition
    next_offset: int
    committed_offset: int
    saved: SavedCheckpoint | None = None
    waits_for: str | None = None


Outcome = FoundModel | Literal["withdrawn"]
"""The result of waiting for an announced model: the model, or its withdrawal."""


@dataclass(slots=True, eq=False)
class ModelWait:
    """A wait for an announced model, or for its withdrawal.

    ``ahead`` is the next offset to search for a withdrawal, ``looked_at`` a monotonic time.
    ``outcome`` is None while the wait is open, or while the file of a taken model is missing.
    ``has_dropped`` says whether dropped messages must be read again.
    """

    stage: HasActiveModel
    ahead: int
    looked_at: float = 0.0
    reason: str = "an announced model"
    outcome: Outcome | None = None
    has_dropped: bool = False
    is_logged: bool = False


@dataclass(slots=True, eq=False)
class AssignedPartition:
    """State of one partition, from its assignment to its revocation.

    ``signed`` has the header by which its outputs name their writer.
    """

    slot: Slot
    stage: Stage
    next_offset: int
    saved_offset: int
    committed_offset: int
    epoch: int = 1
    life: Life = FIRST
    fence: Fence = field(default_factory=Fence)
    tp: TopicPartition = field(init=False)
    signed: Mapping[str, bytes] = field(init=False)
    is_held: bool = True
    in_step: bool = False
    jumped_to: int | None = None
    sought_at: float | None = None
    must_save: bool = False
    must_commit: bool = False
    is_large: bool = False
    saved: SavedCheckpoint | None = None
    wait: ModelWait | None = None
    budget: StreamBudget | None = None

    def __post_init__(self) -> None:
        self.tp = self.slot.tp
        self.signed = {WRITER: Writer(str(self.slot), self.epoch).header}

    def accepts(self, offset: int) -> bool:
        """Return whether a message is the next one, or was done before.

        After a rebalance, messages fetched earlier may be beyond the loaded state. So the first
        message ahead is refused, and all after it, until it comes again after a seek: then the log
        holds nothing in between.
        """
        if not self.in_step and offset > self.next_offset and offset != self.jumped_to:
            return False
        if offset >= self.next_offset:
            self.in_step, self.jumped_to, self.sought_at = True, None, None
        return True

    def must_seek(self, offset: int, now: float) -> bool:
        """Return whether a refused message requires a seek; False while one is under way."""
        if self.jumped_to is not None and offset > self.jumped_to:
            return False
        self.jumped_to, self.sought_at = offset, now
        return True

    def must_seek_again(self, now: float) -> bool:
        """Return whether a seek had no effect, as when the driver has overwritten it."""
        if self.sought_at is None or now - self.sought_at < SEEK_AGAIN_S:
            return False
        self.jumped_to, self.sought_at = None, now
        return True

    def lost_step(self, now: float) -> None:
        """Expect dropped messages again."""
        self.in_step, self.jumped_to, self.sought_at = False, None, now


class Assignment:
    """The assigned partitions of this worker whose states are loaded.

    ``number`` counts assignments, to recognise answers from before a rebalance. ``size`` is the
    number of assigned partitions, None during a rebalance. With ``is_stopping`` no more messages
    are taken.

    Partitions that stay assigned keep their states, and continue during a rebalance.
    """

    def __init__(self) -> None:
        self.number = 0
        self.size: int | None = None
        self.is_stopping = False
        self._partitions: dict[tuple[str, int], AssignedPartition] = {}

    def get(self, topic: str, partition: int) -> AssignedPartition | None:
        """Return a partition; None if its state is not loaded."""
        return self._partitions.get((topic, partition))

    def add(self, partition: AssignedPartition) -> None:
        """Add a partition whose state was loaded."""
        self._partitions[partition.tp] = partition

    def renew(self, assigned: Collection[TopicPartition]) -> bool:
        """Begin another assignment; drop the partitions that are not in it; return whether any."""
        self.number += 1
        self.size = len(assigned)
        return self.drop([each for each in self if each.tp not in assigned])

    def drop(self, partitions: Collection[AssignedPartition]) -> bool:
        """Drop partitions, which belong to other workers; return whether there are any."""
        for each in partitions:
            each.is_held = False
            del self._partitions[each.tp]
        return bool(partitions)

    def __iter__(self) -> Iterator[AssignedPartition]:
        # a copy: other threads read it
        return iter(list(self._partitions.values()))

    def __len__(self) -> int:
        return len(self._partitions)

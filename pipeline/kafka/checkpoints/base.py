"""What a checkpoint is, and what every store of them does."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from fluxplain.config.replica import Replica, Role
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.ownership.lives import FIRST, Life
from fluxplain.kafka.ownership.writers import ANY, Begin, Fence
from fluxplain.stages import Stage

KEPT = 2
"""Checkpoints kept for a partition: the newest, and one before in case it is damaged."""

StageFactory = Callable[[str, int], Stage]
"""Makes a new stage for (topic, partition)."""

State = bytes | bytearray
"""A pickled stage; one that came from another process is taken as it was read."""


class CheckpointError(RuntimeError):
    """There are checkpoints, but none that may be used. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Whose state it is: one role, or a shard of it, and one partition of its input."""

    role: Role
    topic: str
    partition: int
    shard: str = ""

    @classmethod
    def of(cls, replica: Replica, topic: str, partition: int) -> Self:
        """Return the slot of a role, or of a shard."""
        return cls(replica.role, topic, partition, str(replica).removeprefix(replica.role))

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def owner(self) -> str:
        """The role's name, with the shard's if there are several."""
        return self.role + self.shard

    def __str__(self) -> str:
        return f"{self.owner} {self.tp}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State after all messages below ``next_offset``, and the epoch of the owner that wrote it."""

    next_offset: int
    stage: Stage
    life: Life = FIRST
    fence: Fence = field(default_factory=Fence)
    epoch: int = 1

    def pickled(self) -> bytes:
        """Return the state as bytes."""
        state = self.stage, self.life, self.fence
        return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)

    @classmethod
    def unpickled(cls, next_offset: int, epoch: int, state: State) -> Self:
        """Return the checkpoint with this state.

        Unpickling runs code: the state must be signed, or come from a directory of this user's own.
        """
        stage, life, fence = pickle.loads(state)  # noqa: S301
        return cls(next_offset, stage, life, fence, epoch)


class Savable(Protocol):
    """A checkpoint, or a snapshot of one, as a store needs it."""

    @property
    def next_offset(self) -> int:
        """Offset of the next message to take."""

    @property
    def epoch(self) -> int:
        """Epoch of the owner."""

    def pickled(self) -> State:
        """Return the state as bytes; raise ``SnapshotError`` if it could not be taken."""


class CheckpointStore(Protocol):
    """Keeps the newest checkpoints of every slot."""

    def save(self, slot: Slot, checkpoint: Savable) -> None:
        """Keep a checkpoint; when this returns, it survives a crash of its owner.

        Raises ``OSError``, ``DeliveryError`` or ``SnapshotError`` if it cannot be kept.
        """

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint; None if there is none.

        What is damaged, or of something else, or not allowed by where the newest owner began, is
        passed over, and logged. Raises ``CheckpointError`` if whole checkpoints are there, but all
        belong to another configuration, cluster, log or version, or have no valid signature.
        """

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot, also damaged ones; return whether there were any.

        A worker that has the slot meanwhile would write its next one.
        """

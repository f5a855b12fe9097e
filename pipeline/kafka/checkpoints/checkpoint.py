"""The interfaces of checkpoints and their stores."""

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
"""Number of checkpoints kept for a partition: the newest, and the one before in case of damage."""

StageFactory = Callable[[str, int], Stage]
"""Makes a new stage for (topic, partition)."""

State = bytes | bytearray
"""A pickled stage; a bytearray if another process pickled it."""


class CheckpointError(RuntimeError):
    """Checkpoints exist, but none may be used. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The owner of a state: a role or shard, and a partition of its input."""

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
        """Name of the role, with its shard if there are several."""
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

        Unpickling runs code: the state must be signed, or come from a private directory.
        """
        stage, life, fence = pickle.loads(state)  # noqa: S301
        return cls(next_offset, stage, life, fence, epoch)


class Savable(Protocol):
    """A checkpoint, or a snapshot of one."""

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
        """Store a checkpoint durably.

        Raises ``OSError``, ``DeliveryError`` or ``SnapshotError`` if this fails.
        """

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint; None if there is none.

        Checkpoints that are damaged, or that ``begin`` excludes, are logged and skipped. Raises
        ``CheckpointError`` if intact checkpoints exist, but all belong to another configuration,
        cluster, log or version, or lack a valid signature.
        """

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot, damaged ones too; return whether there were any.

        A running worker would write the next one.
        """

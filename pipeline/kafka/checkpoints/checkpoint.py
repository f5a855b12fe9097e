"""Checkpoints, their snapshots, and the interface of their stores."""

import gc
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn, Protocol, Self

from fluxplain.config.replica import Replica, Role
from fluxplain.errors import UserError
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


CAN_FORK = sys.platform == "linux"
"""Whether forking is safe: on other systems, libraries do not survive a fork."""

SLOW_S = 0.02
"""States that pickle faster are pickled in-process: a fork would take as long."""

TIMEOUT_S = 120.0
"""Seconds that the fork may take."""

POLL_S = 0.005


class CheckpointError(UserError):
    """Checkpoints exist, but none may be used. The message has the reason and the remedy."""


class SnapshotError(RuntimeError):
    """The forked process failed."""


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
    def is_replayed(self) -> bool:
        """Whether replays start from its checkpoints: the model's, or those of its first shard."""
        return self.role == "model" and (not self.shard or self.shard.startswith("-0of"))

    @property
    def owner(self) -> str:
        """Name of the role, with its shard if there are several."""
        return self.role + self.shard

    def __str__(self) -> str:
        return f"{self.owner} {self.tp}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """State after all messages below ``next_offset``, and the epoch of the owner that wrote it.

    ``is_upgraded`` says that the state resumes with other versions, in a life that began after it
    was written.
    """

    next_offset: int
    stage: Stage
    life: Life = FIRST
    fence: Fence = field(default_factory=Fence)
    epoch: int = 1
    is_upgraded: bool = False

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


class Candidate(NamedTuple):
    """A stored checkpoint: its name for messages, and its offset if known before it is opened.

    ``open`` raises DamagedError or RefusedError.
    """

    name: str
    open: Callable[[], Checkpoint]
    next_offset: int | None = None


class Snapshot:
    """A checkpoint at the moment of creation, which blocked the worker for ``seconds``.

    Pickling a large model would block it for tenths of a second. With ``aside`` a fork, which takes
    milliseconds, does it instead: it pickles into shared memory and ends, without touching threads
    or connections.
    """

    def __init__(self, checkpoint: Checkpoint, *, aside: bool) -> None:
        begin = time.perf_counter()
        self.next_offset, self.epoch = checkpoint.next_offset, checkpoint.epoch
        self._state: State = b""
        self._child = self._memory = -1
        if aside and CAN_FORK:
            self._fork(checkpoint)
        else:
            self._state = checkpoint.pickled()
        self.seconds = time.perf_counter() - begin

    def pickled(self) -> State:
        """Wait for the pickled state and return it; may raise ``SnapshotError``."""
        if self._child >= 0:
            self._wait()
            with os.fdopen(self._memory, "rb") as memory:
                memory.seek(0)
                self._state = memory.read()
        return self._state

    @property
    def size_bytes(self) -> int:
        """Length of the pickled state, once it is complete."""
        return len(self._state)

    def discard(self) -> None:
        """Kill the forked process, if it still runs."""
        if self._child >= 0:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = -1
            os.close(self._memory)

    def _fork(self, checkpoint: Checkpoint) -> None:
        self._memory = os.memfd_create("checkpoint")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: see above
            self._child = os.fork()
        if not self._child:
            _pickle_and_end(checkpoint, self._memory)

    def _wait(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not (ended := os.waitpid(self._child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                self.discard()
                raise SnapshotError(f"the forked process took more than {TIMEOUT_S:.0f} s")
            time.sleep(POLL_S)
        self._child = -1
        if status := os.waitstatus_to_exitcode(ended[1]):
            os.close(self._memory)
            raise SnapshotError(f"the forked process ended with status {status}")


def _pickle_and_end(checkpoint: Checkpoint, memory: int) -> NoReturn:
    status = 1
    try:
        gc.disable()  # finalizers belong to the parent process
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        left = memoryview(checkpoint.pickled())
        while left:
            left = left[os.write(memory, left) :]
        status = 0
    finally:
        os._exit(status)


class CheckpointStore(Protocol):
    """Keeps the newest checkpoints of every slot."""

    def save(self, slot: Slot, checkpoint: Checkpoint | Snapshot) -> None:
        """Store a checkpoint durably.

        Raises ``OSError``, ``DeliveryError`` or ``SnapshotError`` if this fails.
        """

    def load(self, slot: Slot, begin: Begin = ANY) -> Checkpoint | None:
        """Return the newest usable checkpoint; None if there is none.

        Checkpoints that are damaged, or that ``begin`` excludes, are logged and skipped. Raises
        ``CheckpointError`` if intact checkpoints exist, but all belong to another configuration,
        cluster, log or version, or lack a valid signature.
        """

    def candidates(self, slot: Slot) -> Iterable[Candidate]:
        """Yield the slot's checkpoints, newest first, also those kept for replays."""

    def remove(self, slot: Slot) -> bool:
        """Remove all checkpoints of the slot, damaged ones too; return whether there were any.

        A running worker would write the next one.
        """

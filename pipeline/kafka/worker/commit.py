"""The commit protocol.

Faust acknowledges a message when its agent moves on, even after an exception, and that loses data.
So messages are acknowledged here, by hand. For all partitions of a worker, every
``checkpoint.interval_s``:

1. Wait until every output produced so far is acknowledged by the broker.
2. Write the checkpoints: stage, next offset, versions, digest.
3. Acknowledge the messages below the next offset, in order, and commit.

The worker waits for the first step, and takes the states as they are then. It goes on while they
are written and committed.

A worker that fails at any step ends at once: nothing is committed that is not in a checkpoint, and
nothing is in a checkpoint whose outputs may be lost. The next start repeats some work, and
publishes the same records again under the same identity.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from prometheus_client import Histogram

from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints import SLOW_S, Checkpoint, CheckpointStore, Snapshot, SnapshotError
from fluxplain.kafka.driver import Driver, Received
from fluxplain.kafka.exits import fail
from fluxplain.kafka.worker.outbox import Outbox
from fluxplain.kafka.worker.partition import AssignedPartition, Assignment, SavedCheckpoint

log = logging.getLogger("fluxplain.worker")

COMMIT_ATTEMPTS = 20
"""Attempts to commit while another commit is under way, 50 ms apart; then the next interval."""

MAX_PENDING = 50_000
"""Unacknowledged messages that a worker holds at most; then it commits early."""


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A partition as of a moment: what to save (None: it is saved already) and to acknowledge."""

    partition: AssignedPartition
    next_offset: int
    messages: Sequence[Received]
    snapshot: Snapshot | None


@dataclass(eq=False)
class Committer:
    """Runs the commit protocol for the partitions of an assignment.

    ``is_saving`` is true while outputs or the store are waited for; ``committed_at`` is when it
    committed last, or was made, in seconds since 1970.
    """

    replica: Replica
    interval_s: float
    assignment: Assignment
    driver: Driver
    store: CheckpointStore
    outbox: Outbox
    duration: Histogram
    is_saving: bool = False
    committed_at: float = field(default_factory=time.time)
    _began_at: float = field(default_factory=time.monotonic)
    _ended_at: float = field(default_factory=time.monotonic)
    _finishing: asyncio.Task[None] | None = None

    async def commit_if_due(self) -> None:
        """Commit if an interval is over; at once if outputs or too many messages wait for it."""
        waiting = sum(len(partition.pending) for partition in self.assignment)
        # what is published from here on may need the checkpoint, or room
        urgent = any(p.must_save or p.must_commit for p in self.assignment)
        if urgent or self.outbox.is_full or waiting >= MAX_PENDING:
            await self.commit()
            return
        late = time.monotonic() - self._ended_at >= self.interval_s
        if waiting and late and (self._finishing is None or self._finishing.done()):
            await self._finished()
            self._finishing = asyncio.create_task(self._finish_aside(await self._begin(aside=True)))

    async def commit(self) -> bool:
        """Run all three steps; return whether everything is committed."""
        await self._finished()
        # who waits for all of it gains nothing by a copy of the process, which may fail
        return await self._finish(await self._begin(aside=False))

    async def _begin(self, *, aside: bool) -> list[PendingCommit]:
        """Wait for the outputs, then take the states; pickle large ones in a fork if ``aside``."""
        partitions = list(self.assignment)
        self.is_saving = True
        self._began_at = time.monotonic()
        # 1. every output has arrived
        await self.outbox.delivered()
        # a rebalance while waiting takes partitions away: they are the next owner's
        return [self._take(each, aside=aside) for each in partitions if each.is_held]

    async def _finish(self, taken: list[PendingCommit]) -> bool:
        """Save and commit what was taken; return whether all of it is committed."""
        # 2. the state is safe
        saved = [each for each in taken if await self._save(each)]
        self.is_saving = False
        # 3. the messages are done
        committed = [await self._commit(each) for each in saved]
        self._ended_at = time.monotonic()
        if any(each.snapshot for each in saved):
            self.duration.observe(self._ended_at - self._began_at)
        return len(saved) == len(taken) and all(committed)

    async def _finish_aside(self, taken: list[PendingCommit]) -> None:
        try:
            await self._finish(taken)
        except Exception as error:
            fail(f"{self.replica}: cannot write a checkpoint", error)

    async def _finished(self) -> None:
        """Wait for the commit in the background, if there is one."""
        if self._finishing is not None:
            await self._finishing
            self._finishing = None

    def _take(self, p: AssignedPartition, *, aside: bool) -> PendingCommit:
        snapshot = None
        if p.next_offset > p.saved_offset or p.must_save:
            checkpoint = Checkpoint(p.next_offset, p.stage, p.life, p.fence, p.epoch)
            snapshot = Snapshot(checkpoint, aside=aside and p.is_large)
            p.is_large = p.is_large or snapshot.seconds > SLOW_S
        messages, p.pending = p.pending, []
        return PendingCommit(p, p.next_offset, messages, snapshot)

    async def _save(self, taken: PendingCommit) -> bool:
        """Write a state; return whether it is safe, and still this worker's."""
        partition, snapshot = taken.partition, taken.snapshot
        if not partition.is_held:
            if snapshot:
                snapshot.discard()
            return False
        if snapshot is None:
            return True
        # in a thread, as loading
        run = asyncio.get_running_loop().run_in_executor
        try:
            await run(None, self.store.save, partition.slot, snapshot)
        except SnapshotError as error:
            log.warning("%s: %s; the worker pickles its state itself", partition.slot, error)
            partition.is_large = False
            partition.pending[:0] = taken.messages
            return False
        partition.saved_offset = taken.next_offset
        partition.saved = SavedCheckpoint(time.time(), snapshot.size_bytes)
        partition.must_save = False
        return True

    async def _commit(self, taken: PendingCommit) -> bool:
        """Commit what was taken, if anything was; return whether nothing is left to commit."""
        partition, driver = taken.partition, self.driver
        if not partition.is_held:
            return False
        if not taken.messages:
            if partition.must_commit:
                committed = await driver.commit(partition.tp, partition.saved_offset, ())
                partition.must_commit = not committed
            return not partition.must_commit
        for _ in range(COMMIT_ATTEMPTS):
            committed = await driver.commit(partition.tp, taken.next_offset, taken.messages)
            if not partition.is_held:
                return False
            if committed:
                partition.committed_offset = taken.next_offset
                partition.must_commit = False
                self.committed_at = time.time()
                return True
            await asyncio.sleep(0.05)
        return False

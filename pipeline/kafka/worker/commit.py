"""The commit protocol.

Faust commits a message when its agent continues, even after an exception, which loses data. So it
commits nothing, and offsets are committed here. For all partitions of a worker, every
``checkpoint.interval_s``:

1. Wait until every output produced so far is acknowledged by the broker.
2. Write the checkpoints: stage, next offset, versions, digest.
3. Commit the next offsets.

The worker waits for the first step, then takes snapshots of the states. It continues while these
are written and committed.

A worker that fails at any step ends at once: nothing is committed that is not in a checkpoint, and
nothing is in a checkpoint whose outputs may be lost. The next start repeats some work, and
publishes the same records again under the same identity.

Checkpoints that take long become rarer, see :func:`interval_after`.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fluxplain.config.checkpoint_settings import MOST_LONGER
from fluxplain.kafka.checkpoints.checkpoint import SLOW_S, Checkpoint, Snapshot, SnapshotError
from fluxplain.kafka.exits import fail
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.partition import AssignedPartition, SavedCheckpoint
from fluxplain.kafka.worker.register_answers import RegisterAnswers, is_claimed

log = logging.getLogger("fluxplain.worker")

MOST_SHARE = 0.05
"""Share of the time that taking and writing checkpoints may take, before they become rarer."""


@dataclass(frozen=True, slots=True)
class PendingCommit:
    """A partition's offset to commit, and its snapshot (None: already saved)."""

    partition: AssignedPartition
    next_offset: int
    snapshot: Snapshot | None


@dataclass(eq=False)
class Committer:
    """Runs the commit protocol for the partitions of an assignment.

    ``is_saving`` is true while it waits for outputs or the store; ``committed_at`` is the time of
    the last commit, also by an earlier worker, or of the start if none is known, in seconds since
    1970. ``interval_s`` is the time between two commits, which follows the cost of the last one.
    """

    context: Context
    is_saving: bool = False
    committed_at: float = field(default_factory=time.time)
    interval_s: float = 0.0
    _has_committed: bool = False
    _began_at: float = field(default_factory=time.monotonic)
    _ended_at: float = field(default_factory=time.monotonic)
    _finishing: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.interval_s = self.context.config.checkpoint.interval_s

    def resume(self, times: Sequence[float]) -> None:
        """Take over the times at which new partitions were last committed."""
        for each in times:
            self.committed_at = max(each, self.committed_at) if self._has_committed else each
            self._has_committed = True

    async def commit_if_due(self) -> None:
        """Commit if the interval is over, or at once if something depends on it."""
        assignment = self.context.assignment
        # later records may depend on the checkpoint, or need room; the broker takes no commits
        # during a rebalance
        is_settled = assignment.size is not None
        urgent = any(p.must_save or (p.must_commit and is_settled) for p in assignment)
        if urgent or self.context.outbox.is_full:
            await self.commit()
            return
        # runs before each message, so the time comes first
        if time.monotonic() - self._ended_at < self.interval_s:
            return
        waits = any(p.next_offset > p.committed_offset for p in assignment)
        if waits and (self._finishing is None or self._finishing.done()):
            await self.commit_aside()

    async def commit_aside(self) -> asyncio.Task[None]:
        """Take the states now; return the task that saves and commits them."""
        await self._finished()
        self._finishing = asyncio.create_task(self._finish_aside(await self._begin(aside=True)))
        return self._finishing

    async def commit(self) -> bool:
        """Run all three steps; return whether every state is saved."""
        await self._finished()
        # the caller waits for all of it, so a fork, which may fail, would gain nothing
        return await self._finish(await self._begin(aside=False))

    async def _begin(self, *, aside: bool) -> list[PendingCommit]:
        """Wait for the outputs, then take the states; pickle large ones in a fork if ``aside``."""
        partitions = list(self.context.assignment)
        self.is_saving = True
        self._began_at = time.monotonic()
        # 1. every output has arrived
        await self.context.outbox.delivered()
        # a rebalance meanwhile may have revoked partitions
        return [self._prepare(each, aside=aside) for each in partitions if each.is_held]

    async def _finish(self, prepared: list[PendingCommit]) -> bool:
        """Save and commit; return whether every state is saved.

        The offsets can wait for the next commit, or the next owner's: workers resume from the
        checkpoints.
        """
        owned = await self._owned(prepared)
        # 2. the state is safe
        begin = time.monotonic()
        saved = [each for each in owned if await self._save(each)]
        self.is_saving = False
        taken = sum(each.snapshot.seconds for each in saved if each.snapshot)
        self.interval_s = interval_after(
            taken + time.monotonic() - begin, self.context.config.checkpoint.interval_s
        )
        # 3. the messages are done
        await self._commit(saved)
        self._ended_at = time.monotonic()
        if any(each.snapshot for each in saved):
            self.context.metrics.checkpoint.observe(self._ended_at - self._began_at)
        return len(saved) == len(prepared)

    async def _finish_aside(self, prepared: list[PendingCommit]) -> None:
        try:
            await self._finish(prepared)
        except Exception as error:
            fail(f"{self.context.replica}: cannot write a checkpoint", error)

    async def _finished(self) -> None:
        """Wait for the commit in the background, if there is one."""
        if self._finishing is not None:
            await self._finishing
            self._finishing = None

    def _prepare(self, p: AssignedPartition, *, aside: bool) -> PendingCommit:
        snapshot = None
        if p.next_offset > p.saved_offset or p.must_save:
            checkpoint = Checkpoint(p.next_offset, p.stage, p.life, p.fence, p.epoch)
            snapshot = Snapshot(checkpoint, aside=aside and p.is_large)
            p.must_save = False  # unless the state is changed without a message meanwhile
            p.is_large = p.is_large or snapshot.seconds > SLOW_S
        return PendingCommit(p, p.next_offset, snapshot)

    async def _owned(self, prepared: list[PendingCommit]) -> list[PendingCommit]:
        """Return what is not to be saved, or is still owned: a frozen worker may have lost it.

        A former owner's checkpoints are of no use, and a topic has room for few of them. A claim by
        another worker counts only if the broker does not confirm this one's membership: it may have
        come too late.
        """
        if not any(each.snapshot for each in prepared):
            return prepared
        answers, driver = RegisterAnswers(self.context), self.context.driver
        registered = await answers.read(lambda: any(each.partition.is_held for each in prepared))
        owned = []
        for each in prepared:
            p = each.partition
            is_lost = registered is None or (each.snapshot and is_claimed(registered, p))
            if not is_lost or await driver.commit({p.tp: p.committed_offset}):
                owned.append(each)
            elif each.snapshot:
                each.snapshot.discard()
        return owned

    async def _save(self, prepared: PendingCommit) -> bool:
        """Write a snapshot; return whether it is safe, and the partition still held."""
        partition, snapshot = prepared.partition, prepared.snapshot
        if not partition.is_held:
            if snapshot:
                snapshot.discard()
            return False
        if snapshot is None:
            return True
        try:
            # in a thread: writing blocks
            await asyncio.to_thread(self.context.store.save, partition.slot, snapshot)
        except SnapshotError as error:
            log.warning("%s: %s; the state is pickled in-process instead", partition.slot, error)
            partition.is_large, partition.must_save = False, True
            return False
        partition.saved_offset = prepared.next_offset
        partition.saved = SavedCheckpoint(time.time(), snapshot.size_bytes)
        return True

    async def _commit(self, saved: Sequence[PendingCommit]) -> None:
        """Commit what is new, unless a rebalance is under way."""
        new = [
            each
            for each in saved
            if (p := each.partition).is_held
            and (p.must_commit or each.next_offset > p.committed_offset)
        ]
        offsets = {each.partition.tp: each.next_offset for each in new}
        if new:
            with self.context.metrics.commit.time():
                is_committed = await self.context.driver.commit(offsets)
            if not is_committed:
                return
        for each in new:
            each.partition.committed_offset = each.next_offset
            each.partition.must_commit = False
            self.committed_at, self._has_committed = time.time(), True


def interval_after(cost_s: float, least_s: float) -> float:
    """Return the seconds between a checkpoint that took ``cost_s`` and the next one.

    Examples
    --------
    >>> interval_after(0.1, least_s=5.0), interval_after(1.0, 5.0), interval_after(9.0, 5.0)
    (5.0, 20.0, 60.0)
    """
    return min(max(least_s, cost_s / MOST_SHARE), MOST_LONGER * least_s)

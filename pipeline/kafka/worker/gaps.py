"""Handles missing messages: deleted before they were read, holes in the log, or dropped."""

import asyncio
import logging
import time
from dataclasses import dataclass

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.exits import refuse
from fluxplain.kafka.faust.peek import first_offset
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.timeouts import PEEK_S
from fluxplain.kafka.worker.commit import Committer
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.merge import Merge
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.schemas import Change
from fluxplain.schemas.change import NoticeKind

log = logging.getLogger("fluxplain.worker")


@dataclass(frozen=True, slots=True)
class Gaps:
    """Checks the log between the next offset and a received message, and seeks if necessary."""

    context: Context
    committer: Committer
    merge: Merge | None

    async def passes(self, partition: AssignedPartition, offset: int) -> bool:
        """Return whether no message is to be taken before the one at an offset.

        Messages may have been deleted before they were read. Compaction and transactions leave
        harmless holes. If the driver has dropped messages, they are read again.
        """
        await self._pass_deleted(partition)
        if not partition.is_held:
            return False
        if offset <= partition.next_offset:
            return True
        place = (*partition.tp, partition.next_offset)
        first = await asyncio.to_thread(first_offset, self.context.config, *place, PEEK_S)
        if not partition.is_held:
            return False
        if first == offset:
            return True
        log.warning("%s: offset %s came before %s: reading again", partition.slot, offset, first)
        await self.read_dropped(partition)
        return False

    async def read_dropped(self, *partitions: AssignedPartition) -> None:
        """Read partitions again whose messages were dropped."""
        for each in partitions:
            each.lost_step(time.monotonic())
        await self.read_again(*partitions)

    async def read_again(self, *partitions: AssignedPartition) -> None:
        """Seek to the next offset of partitions."""
        if self.merge is not None:
            for each in partitions:  # otherwise their messages would come after refused ones
                self.merge.forget(each.tp)
        if partitions:
            await self.context.driver.seek({each.tp: each.next_offset for each in partitions})

    def pass_over(self, tp: TopicPartition, offset: int, log_range: range, life: Life) -> int:
        """Return the offset to resume from when messages from an offset on were deleted unread.

        The loss is published as a change notice, or ends the process if losses are forbidden.
        """
        replica, policy = self.context.replica, self.context.config.checkpoint.out_of_range
        earliest, end = log_range.start, log_range.stop
        lost = f"offsets {offset} to {earliest - 1} of {tp} were deleted before they were read"
        if policy == "fail":
            refuse(
                f"{replica}: {lost}. Set checkpoint.out_of_range to 'earliest' or 'latest' to "
                "continue without them, or remove the checkpoint (`fluxplain checkpoints remove`) "
                "to start from scratch with the rest of the log"
            )
        target = earliest if policy == "earliest" else end
        log.warning("%s: %s; resuming at offset %d", replica, lost, target)
        begin: int | None = offset - 1
        detail = f"{lost}; the role resumes at offset {target}"
        if replica.shards > 1:
            # shards share the identity, so each must publish the same, whatever its own offset
            begin, up_to = None, f"offsets up to {earliest - 1} of {tp}"
            detail = f"{up_to} were deleted before each shard had read them"
        notice = Change.notice(
            kind="gap", stream=str(tp), seq=target - 1, previous_seq=begin, detail=detail
        )
        self._publish(notice, tp, life)
        return target

    def publish_cold_start(self, tp: TopicPartition, earliest: int, life: Life) -> None:
        """Publish that a state starts after the beginning of its log."""
        lost = "the log no longer holds what came before"
        if earliest == 0:
            lost = "what was published before came from versions with other results"
        detail = (
            f"the role {self.context.replica.role} starts cold at offset {earliest} of {tp}: there "
            f"is no checkpoint, and {lost}"
        )
        self._warn("cold-start", tp, earliest, life, detail)

    def publish_upgrade(self, tp: TopicPartition, offset: int, life: Life, changed: str) -> None:
        """Publish that a model resumes with versions that do not give the same bits."""
        detail = (
            f"versions changed: {changed}. The model keeps what it learned and resumes at offset "
            f"{offset} of {tp}; its results may differ slightly from those of the former versions"
        )
        self._warn("upgrade", tp, offset, life, detail)

    def _warn(
        self, kind: NoticeKind, tp: TopicPartition, seq: int, life: Life, detail: str
    ) -> None:
        log.warning(detail)
        self._publish(Change.notice(kind=kind, stream=str(tp), seq=seq, detail=detail), tp, life)

    def _publish(self, notice: Change, tp: TopicPartition, life: Life) -> None:
        record = life.of(notice, self.context.replica.role)
        self.context.outbox.send(record, None, tp.partition)

    async def _pass_deleted(self, partition: AssignedPartition) -> None:
        """Skip messages that were deleted before they were read, if any."""
        log_range = await self.context.driver.log_range(partition.tp)
        before = partition.next_offset
        if log_range.start <= before or not partition.is_held:
            return
        after = self.pass_over(partition.tp, before, log_range, partition.life)
        partition.next_offset, partition.must_save = after, True
        if after != log_range.start:
            await self.context.driver.seek({partition.tp: after})
        await self.committer.commit()

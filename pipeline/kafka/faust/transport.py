"""Faust's transport, made to start where the checkpoints say.

Faust resumes a partition at its committed offset, whatever else is known, and overwrites any seek
made earlier. State and committed offset can differ: a checkpoint may be older (the newest was
damaged) or missing (the directory is gone). So the seek is made here, right after Faust's own.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from faust.transport.drivers import aiokafka as driver
from faust.types import TP, AppT

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.faust import fetch
from fluxplain.kafka.faust.fast_wait import FastWaitService
from fluxplain.kafka.worker.worker import RoleWorker

FETCH_MAX_WAIT_MS = 20
"""Longest time that a broker holds a fetch of idle partitions. Faust's 1,500 ms make a busy
partition wait behind the idle ones."""

PAUSED_S = 0.01
"""Seconds between two looks whether a worker that has read ahead enough may read on. Faust sleeps
for a second then, or waits as long for other partitions: longer than what it has read lasts."""

MAX_AHEAD_BYTES = 16 * 1024 * 1024
"""Bytes of messages to read ahead; then all of them must be taken before more is read. The number
of messages is bounded elsewhere, but each may have 1 MiB."""


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_MAX_WAIT_MS
        # what a producer took back was never observed
        consumer._isolation_level = "read_committed"
        return consumer

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        fetch.DRAIN.begin()
        return await super()._fetch_records(*args, **kwargs)


class _Consumer(FastWaitService, driver.Consumer):
    owner: ClassVar[RoleWorker]
    _ahead_bytes = 0

    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    async def _wait_next_records(self, timeout: float) -> Any:
        while (
            self.flow_active
            and not self.should_stop
            and self.assignment()
            and not self._get_active_partitions()
        ):
            await asyncio.sleep(PAUSED_S)
        if self._ahead_bytes > MAX_AHEAD_BYTES:
            while self.flow_active and not self.should_stop and self._holds_messages():
                await asyncio.sleep(PAUSED_S)
            self._ahead_bytes = 0
        if self._buffered_partitions:
            timeout = min(timeout, PAUSED_S)
        records, _ = await super()._wait_next_records(timeout)
        self._ahead_bytes += fetch.DRAIN.bytes
        # all that was fetched: Faust would drop the rest of a partition that is paused meanwhile
        return records, None

    def _holds_messages(self) -> bool:
        """Return whether messages wait for the role's agent."""
        return not all(channel.queue.empty() for channel in self.app.topics)

    async def perform_seek(self) -> None:
        """Seek to the committed offsets, then to where state and committed offset agree.

        Messages that come while the state is loaded are not taken, so there is always a seek
        after it.
        """
        await super().perform_seek()
        new = [tp for tp in self.assignment() if not self.owner.owns(TopicPartition(*tp))]
        if not new:
            return
        earliest: Mapping[TP, int] = await self.earliest_offsets(*new)
        ends: Mapping[TP, int] = await self.highwaters(*new)
        await self.owner.claim([TopicPartition(*tp) for tp in new])
        if not await self._is_member(new, earliest):
            return  # claimed too late: another worker owns them, and this one must not write
        positions: dict[TP, int] = {}
        for tp in new:
            if tp not in self.assignment():
                continue  # a rebalance took it away while the others were loaded
            log_range = range(earliest[tp], ends[tp])
            position = await self.owner.load(TopicPartition(*tp), log_range)
            if position is None:
                continue
            committed = self._committed_offset[tp]
            if committed is None or not earliest[tp] <= committed <= position:
                self.owner.on_offset_mismatch(TopicPartition(*tp), committed)
                committed = position
                self._committed_offset[tp] = position or None
            # else what the state holds already is read again, to be acknowledged
            positions[tp] = committed
        if positions:
            await self.seek_wait(positions)

    async def _is_member(self, tps: Collection[TP], earliest: Mapping[TP, int]) -> bool:
        """Let the broker confirm, by a commit of what is committed, that the group still has us."""
        offsets = {tp: self._committed_offset[tp] or earliest[tp] for tp in tps}
        return set(tps) <= self.assignment() and bool(await self._commit(offsets))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Drop state first: what is not committed by now belongs to the next owner."""
        self.owner.on_revoked()
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Drop state again: a member that was thrown out does not hear what it lost.

        Another worker may have gone on with the same partition meanwhile.
        """
        self.owner.on_revoked()
        await super().on_partitions_assigned(assigned, generation_id)
        self.owner.on_assigned(len(assigned))


def install(app: AppT, owner: RoleWorker) -> None:
    """Make a Faust app read its partitions from where their owner says."""
    fetch.install()
    consumer = type("CheckpointConsumer", (_Consumer,), {"owner": owner})
    transport = type("CheckpointTransport", (driver.Transport,), {"Consumer": consumer})
    app.transport = transport(app.conf.broker_consumer, app)

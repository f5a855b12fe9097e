"""Faust's consumer as the driver of a worker; it starts at the checkpoints' offsets.

Faust resumes a partition at its committed offset, and overwrites any earlier seek. State and
committed offset can differ: a checkpoint may be older (the newest was damaged) or missing (the
directory is gone). So the seek happens here, right after Faust's own.
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import faust
from faust.assignor import partition_assignor
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, AppT

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.faust import fetch
from fluxplain.kafka.faust.assignor import FewestMoves
from fluxplain.kafka.faust.commit_times import CommitTimes
from fluxplain.kafka.faust.connections import CLIENT_RACK
from fluxplain.kafka.faust.delivery import Delivery
from fluxplain.kafka.faust.fast_wait import FastWaitService
from fluxplain.kafka.worker.worker import RoleWorker

FETCH_MAX_WAIT_MS = 20
"""Milliseconds that a broker may hold a fetch without the busy partitions. With Faust's 1,500 ms
they would wait for idle ones."""

PAUSED_S = 0.01
"""Seconds between two checks whether a worker that has fetched far enough ahead may continue. Faust
sleeps for a second instead, longer than the fetched messages last."""

MAX_AHEAD_BYTES = 16 * 1024 * 1024
"""Bytes of messages fetched ahead after which all of them must be taken first. Their number is
bounded elsewhere, but each may have 1 MiB."""


class _ConsumerThread(driver.AIOKafkaConsumerThread):
    commit_times: CommitTimes
    is_joining = False

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_MAX_WAIT_MS
        kafka = self.consumer.owner.context.config.kafka
        consumer._client_rack = kafka.passed_through().get(CLIENT_RACK)
        # messages of aborted transactions were never observed
        consumer._isolation_level = "read_committed"
        self.commit_times = CommitTimes(consumer)
        return consumer

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit the assigned ones of these offsets; return whether the broker took them.

        False if none is assigned, since Faust would crash; and while the worker joins: the broker
        would answer only when all members have joined, and no messages could be fetched meanwhile.
        """
        if self.is_joining:
            return False
        held = {tp: offset for tp, offset in offsets.items() if tp in self.assignment()}
        return bool(held) and bool(await super()._commit(held))

    async def _fetch_records(self, *args: Any, **kwargs: Any) -> Any:
        fetch.DRAIN.begin()
        return await super()._fetch_records(*args, **kwargs)


class _Consumer(FastWaitService, driver.Consumer):
    owner: ClassVar[RoleWorker]
    _thread: _ConsumerThread
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
            while self.flow_active and not self.should_stop and _waiting(self.app):
                await asyncio.sleep(PAUSED_S)
            self._ahead_bytes = 0
        if self._buffered_partitions:
            timeout = min(timeout, PAUSED_S)
        records, _ = await super()._wait_next_records(timeout)
        self._ahead_bytes += fetch.DRAIN.bytes
        # all fetched messages: Faust would drop the rest of a partition that is paused meanwhile
        return records, None

    def _to_message(self, tp: TP, record: Any) -> Delivery:
        return Delivery.of(tp, record, self.app.consumer_generation_id)

    async def commit(self, *_args: Any, **_kwargs: Any) -> bool:
        """Commit nothing: only the worker knows which messages are done."""
        return False

    async def _add_gap(self, tp: TP, offset_from: int, offset_to: int) -> None:
        """Keep no gaps: Faust commits nothing. They would grow with each transaction."""

    async def perform_seek(self) -> None:
        """Load new partitions, and seek each to its state's offset.

        Those that stay assigned are first, and continue meanwhile. Messages that arrive while a
        state is loaded are dropped, so a seek always follows.
        """
        await super().perform_seek()
        await self._seek_kept()
        await self.owner.confirm()
        new = [tp for tp in self.assignment() if self._next_offset(tp) is None]
        if not new:
            return
        earliest: Mapping[TP, int] = await self.earliest_offsets(*new)
        ends: Mapping[TP, int] = await self.highwaters(*new)
        # before the membership is confirmed by a commit
        times = await self._thread.call_thread(self._thread.commit_times.read, new)
        self.owner.resume_commits(times)
        await self.owner.claim([TopicPartition(*tp) for tp in new])
        if not await self._is_member(new, earliest):
            return  # claimed too late: another worker owns them
        positions: dict[TP, int] = {}
        for tp in new:
            if tp not in self.assignment():
                continue  # revoked while the others were loaded
            log_range, committed = range(earliest[tp], ends[tp]), self._committed_offset[tp]
            position = await self.owner.load(TopicPartition(*tp), log_range, committed)
            if position is not None:
                positions[tp] = position
        if positions:
            await self.seek_wait(positions)

    async def _seek_kept(self) -> None:
        offsets = {tp: self._next_offset(tp) for tp in self.assignment()}
        if kept := {tp: offset for tp, offset in offsets.items() if offset is not None}:
            await self.seek_wait(kept)

    def _next_offset(self, tp: TP) -> int | None:
        return self.owner.next_offset(TopicPartition(*tp))

    async def _is_member(self, tps: Collection[TP], earliest: Mapping[TP, int]) -> bool:
        """Confirm the group membership by committing the committed offsets again."""
        offsets = {tp: self._committed_offset[tp] or earliest[tp] for tp in tps}
        return set(tps) <= self.assignment() and bool(await self._commit(offsets))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Continue with all partitions: most are assigned again.

        Faust would stop all of them until the slowest member has joined again.
        """
        await self.owner.on_revoked()
        self._thread.is_joining = True
        if self.app.should_stop:
            await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Drop the partitions that moved to other workers."""
        self._thread.is_joining = False
        self.owner.on_assigned([TopicPartition(*tp) for tp in assigned])
        await super().on_partitions_assigned(assigned, generation_id)

    def highwater(self, tp: TP) -> int | None:
        """Return the end of the log as of the last fetch; None before it."""
        try:
            end: int | None = self._thread.highwater(tp)
        except AssertionError:
            return None  # aiokafka raises it for a partition that was just revoked
        return end


def install(app: AppT, owner: RoleWorker) -> None:
    """Make a Faust app read its partitions from its worker's offsets."""
    fetch.install()
    partition_assignor.CopartitionedAssignor = FewestMoves
    consumer = type("CheckpointConsumer", (_Consumer,), {"owner": owner})
    transport = type("CheckpointTransport", (driver.Transport,), {"Consumer": consumer})
    app.transport = transport(app.conf.broker_consumer, app)


def _waiting(app: AppT) -> bool:
    """Return whether deliveries wait for the role's agent."""
    return not all(channel.queue.empty() for channel in app.topics)


class FaustDriver:
    """The :class:`~fluxplain.kafka.driver.Driver` of a Faust app."""

    def __init__(self, app: faust.App) -> None:
        self._app = app

    @property
    def _consumer(self) -> Any:
        return self._app.consumer

    def is_current(self, message: Any) -> bool:
        """Return whether a message belongs to the current generation of the group."""
        return bool(message.generation_id == self._app.consumer_generation_id)

    def pause(self, tp: TopicPartition) -> None:
        """Stop fetching a partition."""
        self._consumer.pause_partitions({TP(*tp)})

    def resume(self, tp: TopicPartition) -> None:
        """Fetch a paused partition again."""
        self._consumer.resume_partitions({TP(*tp)})

    async def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read partitions again from these offsets."""
        await self._consumer.seek_wait({TP(*tp): offset for tp, offset in offsets.items()})

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets; False if a rebalance is under way."""
        return bool(await self._consumer._commit({TP(*tp): at for tp, at in offsets.items()}))

    def has_more(self) -> bool:
        """Return whether other deliveries wait."""
        return _waiting(self._app)

    def log_end(self, tp: TopicPartition) -> int | None:
        """Return the end of the log as of the last fetch; None before it."""
        end: int | None = self._consumer.highwater(TP(*tp))
        return end

    async def log_range(self, tp: TopicPartition) -> range:
        """Ask the broker for the offsets that a partition holds."""
        key = TP(*tp)
        earliest = (await self._consumer.earliest_offsets(key))[key]
        return range(earliest, (await self._consumer.highwaters(key))[key])

    async def stay_in_group(self) -> None:
        """Keep the membership although all partitions are paused.

        aiokafka leaves the group if a consumer does not poll for ``max_poll_interval_ms``, and
        Faust does not poll while every partition is paused.
        """
        thread = self._consumer._thread

        async def ask_for_nothing() -> None:
            with thread._ensure_consumer()._subscription.fetch_context():
                pass

        await thread.call_thread(ask_for_nothing)

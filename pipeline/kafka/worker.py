"""One role of the pipeline on Kafka: the partitions it was assigned, and the commit protocol.

Faust acknowledges a message when its agent moves on, even after an exception, and that loses
data. So messages are acknowledged here, by hand. For all partitions of a worker, every
``checkpoint.interval_s``:

1. Wait until every output produced so far is acknowledged by the broker.
2. Write the checkpoints: stage, next offset, versions, digest.
3. Acknowledge the messages below the next offset, in order, and commit.

A worker that fails at any of these ends at once: nothing is committed that is not in a
checkpoint, and nothing is in a checkpoint whose outputs may be lost. The next start repeats some
work, and publishes the same records again under the same identity.
"""

import asyncio
import logging
import os
import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

import faust
from faust.types import TP, EventT

from pipeline.config import Config, Role
from pipeline.kafka.checkpoints import (
    Checkpoint,
    CheckpointError,
    CheckpointStore,
    Slot,
    StageFactory,
)
from pipeline.kafka.outbox import Outbox
from pipeline.stages import Message, Stage, process
from schemas import Change, stream_name

log = logging.getLogger("fluxplain.worker")

EXIT_FAILED = 70
"""Exit status of a worker that failed and may be started again."""

EXIT_REFUSED = 78
"""Exit status of a worker that would fail again: somebody must look."""

COMMIT_ATTEMPTS = 20
"""Commits to try while Faust's own commit is under way, 50 ms apart; then the next interval."""


MAX_PENDING = 50_000
"""Messages that may wait for their acknowledgement; then a checkpoint is written early."""


@dataclass(slots=True)
class Partition:
    """State and unacknowledged messages of one assigned partition."""

    slot: Slot
    stage: Stage
    next_offset: int
    saved_offset: int
    pending: list[Any] = field(default_factory=list)
    in_step: bool = False
    jumped_to: int | None = None

    def accepts(self, offset: int) -> bool:
        """Return whether a message is the next one, or was done before.

        After a rebalance messages from before it can still be on their way, beyond the state that
        was loaded. So the first one that is ahead is refused, with all behind it, until it comes
        again after a seek: then what lies between is not in the log.
        """
        if not self.in_step and offset > self.next_offset and offset != self.jumped_to:
            return False
        self.in_step = self.in_step or offset >= self.next_offset
        return True

    def must_seek(self, offset: int) -> bool:
        """Return whether a refused message must be asked for again, with what is before it."""
        if self.jumped_to is not None and offset > self.jumped_to:
            return False
        self.jumped_to = offset
        return True


class RoleWorker:
    """Passes the messages of the assigned partitions through their stages.

    Parameters
    ----------
    app
        The Faust app of the role.
    config, role
        Settings, and which role.
    make_stage
        Makes the stage of a partition that has no checkpoint.
    store, outbox
        Where state and records go.
    """

    def __init__(
        self,
        app: faust.App,
        config: Config,
        role: Role,
        *,
        make_stage: StageFactory,
        store: CheckpointStore,
        outbox: Outbox,
    ) -> None:
        self.app = app
        self._config = config
        self._role = role
        self._interval_s = config.checkpoint.interval_s
        self._make_stage = make_stage
        self._store = store
        self._outbox = outbox
        self._partitions: dict[TP, Partition] = {}
        self._busy = asyncio.Lock()
        self._checkpointed_at = time.monotonic()

    def source(self, name: str) -> Any:
        """Return a topic for the role's agent; raw bytes, so that stages see bad records too."""
        return self.app.topic(
            self._config.topic(name), key_serializer="raw", value_serializer="raw"
        )

    async def handle(self, event: EventT) -> None:
        """Take one message."""
        message = event.message
        try:
            async with self._busy:
                await self._step(message)
                if message.offset + 1 < (self.app.consumer.highwater(message.tp) or 0):
                    self._outbox.send_runs_if_old(time.monotonic())
                else:
                    self._outbox.send_runs()
                await self._checkpoint_if_due()
        except Exception as error:
            fail(f"{self._role}: cannot go on", error)

    async def tick(self) -> None:
        """Write a checkpoint if one is due; for the times when no message comes."""
        try:
            async with self._busy:
                self._outbox.send_runs_if_old(time.monotonic())
                await self._checkpoint_if_due()
        except Exception as error:
            fail(f"{self._role}: cannot write a checkpoint", error)

    async def shut_down(self) -> None:
        """Write a last checkpoint and commit."""
        try:
            async with self._busy:
                await self.checkpoint()
        except Exception as error:
            fail(f"{self._role}: cannot write the last checkpoint", error)

    def owns(self, tp: TP) -> bool:
        """Return whether the state of the partition is loaded."""
        return tp in self._partitions

    def start(self, tp: TP, earliest: int, end: int) -> int:
        """Load the newest checkpoint of a partition and return the offset to read on from."""
        slot = Slot(self._role, tp.topic, tp.partition)
        try:
            checkpoint = self._store.load(slot)
        except CheckpointError as error:
            refuse(str(error))
        if checkpoint is None:
            checkpoint = Checkpoint(earliest, self._make_stage(tp.topic, tp.partition))
            if earliest > 0:
                self._tell_cold_start(tp, earliest)
        elif not earliest <= checkpoint.next_offset <= end:
            refuse(
                f"the checkpoint of {slot} goes on at offset {checkpoint.next_offset}, but the "
                f"topic holds offsets {earliest} to {end}: messages were deleted before they were "
                "read, or the topic was made anew. Remove the checkpoint to start from what is "
                "there"
            )
        offset = checkpoint.next_offset
        self._partitions[tp] = Partition(slot, checkpoint.stage, offset, saved_offset=offset)
        log.info("%s: goes on at offset %d", slot, offset)
        return offset

    def revoke(self) -> None:
        """Throw away state and pending work of all partitions.

        A rebalance takes all partitions away, and gives some of them back.
        """
        self._partitions.clear()

    async def checkpoint(self) -> None:
        """Run the three steps of the commit protocol."""
        partitions = list(self._partitions.items())
        # 1. every output has arrived
        await self._outbox.delivered()
        # a rebalance while waiting takes partitions away: they are the next owner's
        held = [(tp, p) for tp, p in partitions if self._partitions.get(tp) is p]
        # 2. the state is safe
        for _, partition in held:
            if partition.next_offset > partition.saved_offset:
                self._store.save(partition.slot, Checkpoint(partition.next_offset, partition.stage))
                partition.saved_offset = partition.next_offset
        # 3. the messages are done
        for tp, partition in held:
            if partition.pending:
                await self._commit(tp, partition)
        self._checkpointed_at = time.monotonic()

    async def _step(self, message: Any) -> None:
        partition = self._partitions.get(message.tp)
        if partition is None or message.generation_id != self.app.consumer_generation_id:
            return  # of an assignment that is over: its next owner reads it again
        if not partition.accepts(message.offset):
            if partition.must_seek(message.offset):
                await self.app.consumer.seek_wait({message.tp: partition.next_offset})
            return
        if message.offset >= partition.next_offset:
            incoming = Message(
                message.topic, message.partition, message.offset, message.key, message.value
            )
            for record in process(partition.stage, incoming):
                self._outbox.send(record, message.key, message.partition)
            partition.next_offset = message.offset + 1
        message.key = message.value = None  # it waits for its acknowledgement only
        partition.pending.append(message)

    async def _checkpoint_if_due(self) -> None:
        waiting = sum(len(partition.pending) for partition in self._partitions.values())
        late = time.monotonic() - self._checkpointed_at >= self._interval_s
        if waiting >= MAX_PENDING or (waiting and late):
            await self.checkpoint()

    async def _commit(self, tp: TP, partition: Partition) -> None:
        consumer = self.app.consumer
        for message in partition.pending:
            message.ack(consumer)
        partition.pending.clear()
        for _ in range(COMMIT_ATTEMPTS):
            if await consumer.commit({tp}) or self._partitions.get(tp) is not partition:
                return
            await asyncio.sleep(0.05)

    def _tell_cold_start(self, tp: TP, earliest: int) -> None:
        detail = (
            f"{self._role} starts cold at offset {earliest} of {tp.topic}-{tp.partition}: there is "
            "no checkpoint, and the log no longer holds what came before"
        )
        log.warning(detail)
        notice = Change.notice(
            kind="cold-start",
            stream=stream_name(tp.topic, tp.partition),
            seq=earliest,
            detail=detail,
        )
        self._outbox.send(notice, None, tp.partition)


def fail(what: str, error: Exception) -> NoReturn:
    """End the process at once: nothing may be acknowledged or committed after this."""
    log.critical("%s: %s: %s", what, type(error).__name__, error, exc_info=error)
    _end(EXIT_FAILED)


def refuse(reason: str) -> NoReturn:
    """End the process: somebody must decide."""
    log.critical(reason)
    _end(EXIT_REFUSED)


def _end(status: int) -> NoReturn:
    # not sys.exit: Faust would stop in good order, and commit
    logging.shutdown()
    os._exit(status)

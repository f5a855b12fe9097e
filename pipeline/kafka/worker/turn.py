"""The next message of a partition, with the stage that takes it."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fluxplain.kafka.driver import Received
from fluxplain.kafka.headers import Unreadable, usable_headers
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.partition import AssignedPartition
from fluxplain.schemas import Control, Record
from fluxplain.stages import Message, process
from fluxplain.stages.active_model import HasActiveModel

log = logging.getLogger("fluxplain.worker")


@dataclass(slots=True)
class Turn:
    """The next message of a partition: let the stage step, publish what it returns, be done."""

    partition: AssignedPartition
    message: Message
    context: Context
    after: Callable[[AssignedPartition], Awaitable[None]]
    took_s: float = 0.0

    def step(self) -> Sequence[Record]:
        """Pass the message to the stage; a bad one gives a dead letter."""
        began_at = time.perf_counter()
        records = process(self.partition.stage, self.message)
        self.took_s = time.perf_counter() - began_at
        self.context.metrics.step.observe(self.took_s)
        return records

    def publish(self, records: Sequence[Record]) -> None:
        """Publish the stage's records, and a control record if its time budget requires one."""
        self.context.outbox.publish(self.partition, records, self.message)
        stage, budget = self.partition.stage, self.partition.budget
        if budget is None or not isinstance(stage, HasActiveModel):
            return
        every = budget.see(stage.every, seconds=self.took_s, now=time.monotonic())
        if every is not None:
            log.info(
                "%s of partition %d: from now on one of %d observations is explained instead of "
                "one of %d, to keep explain.budget_ms",
                *(self.partition.slot.owner, self.message.partition, every, stage.every),
            )
            self.context.outbox.send(Control(every=every), None, self.message.partition)

    async def done(self) -> None:
        """Finish the message; it is committed with the next checkpoint."""
        self.partition.finish(self.message.offset)
        await self.after(self.partition)


def incoming_message(message: Received, *, is_own: bool) -> Message:
    """Return a received message as a stage's message.

    Unless only workers write its topic (``is_own``), headers with fluxplain's names are forged.
    """
    flaw = message.headers.reason if isinstance(message.headers, Unreadable) else None
    # in seconds (Faust); None or -1 without one
    time_s = message.timestamp or -1.0
    return Message(
        message.topic,
        message.partition,
        message.offset,
        message.key,
        message.value,
        round(time_s * 1000) if time_s >= 0.0 else None,
        usable_headers(message.headers or (), is_own=is_own),
        flaw=flaw,
    )

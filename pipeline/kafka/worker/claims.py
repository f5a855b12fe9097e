"""This worker's claims in the register, and its check of writers against their epochs."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints import Slot
from fluxplain.kafka.client import AccessError, BrokerError
from fluxplain.kafka.exits import fail, refuse, replaced_settings
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.writers import ANY, OWN_TOPICS, WRITER, Begin, Writer
from fluxplain.kafka.timeouts import DELIVERY_DEADLINE_S
from fluxplain.kafka.worker.partition import AssignedPartition, Assignment
from fluxplain.schemas import stream_name
from fluxplain.stages import Message

Answer = TypeVar("Answer")

log = logging.getLogger("fluxplain.worker")

NOT_OURS = "it was not written by a worker of this pipeline"
"""Reason of the dead letter for a message in a topic that only workers write."""

REGISTER_AGAIN_S = 1.0
"""Seconds between two attempts to access the register."""


@dataclass(eq=False)
class Claims:
    """Claims partitions in the register, and checks the writers of messages against it.

    ``registered`` is the number of the worker's settings. After a rebalance, earlier requests
    return None.
    """

    config: Config
    replica: Replica
    register: Register
    registered: int
    assignment: Assignment
    _epochs: dict[str, int] = field(default_factory=dict)
    _begins: Mapping[str, Begin] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._own_topics = {self.config.topic(name) for name in OWN_TOPICS}

    async def claim(self, slots: Collection[Slot]) -> None:
        """Become the owner of slots; end the process if other settings were registered since."""
        names = [str(slot) for slot in slots]
        for name in names:
            self._epochs.pop(name, None)  # another worker may have owned it since
        try:
            self._epochs |= await self._answer(partial(self.register.claim, names)) or {}
            registered = await self._answer(self.register.read)
        except Exception as error:
            fail(f"{self.replica}: cannot claim {', '.join(names)}", error)
        if registered is None:
            return  # there was another rebalance
        if registered.number != self.registered:
            refuse(replaced_settings(self.replica))
        self._begins = registered.begins

    def epoch(self, slot: Slot) -> int | None:
        """Return the epoch of a claimed slot; None if a rebalance came before the claim."""
        return self._epochs.get(str(slot))

    def allowed(self, slot: Slot) -> Begin:
        """Return which checkpoints of a slot may be used."""
        return self._begins.get(str(slot), ANY)

    async def begin(self, slot: Slot, begin: Begin) -> None:
        """Register the checkpoint that a slot resumes from, before it publishes anything."""
        await self._answer(partial(self.register.begin, str(slot), begin))

    async def cold_start(self, slot: Slot, offset: int) -> int | None:
        """Return the number of the cold start at an offset; None after another rebalance."""
        # not the slot: all shards that begin here have the same state, and share the number
        place = f"{slot.role} {stream_name(slot.topic, slot.partition)}"
        number = self.assignment.number
        register = partial(self.register.cold_start, place, offset, self.registered)
        cold_start = await self._answer(register)
        if cold_start is None and number == self.assignment.number:
            refuse(replaced_settings(self.replica))
        return cold_start

    def is_own(self, topic: str) -> bool:
        """Return whether only workers write a topic; elsewhere fluxplain's headers are forged."""
        return topic in self._own_topics

    async def checked(self, partition: AssignedPartition, incoming: Message) -> Message | None:
        """Return a message to take; None if its writer no longer owns its slot.

        A message in the pipeline's own topics without a known writer gets a flaw, and becomes a
        dead letter.
        """
        if not self.is_own(incoming.topic) or incoming.flaw is not None:
            return incoming
        writer = Writer.read(incoming.headers.get(WRITER, b""))
        # ask the broker about new ones only
        if writer is not None and partition.fence.is_new(writer):
            registered = await self._answer(partial(self.register.read, writer.epoch))
            if registered is None:
                return None  # after a rebalance: the partition is read again
            if registered.number != self.registered:
                refuse(replaced_settings(self.replica))  # its input now has other settings
            writer = writer if registered.knows(writer) else None
        if writer is None:
            # its origin headers are not trusted either
            return replace(incoming, flaw=NOT_OURS, headers={})
        return incoming if partition.fence.admits(writer, least=self.registered) else None

    def is_replaced(self) -> bool:
        """Return whether other settings were registered since; may raise ``BrokerError``."""
        return self.register.read().number != self.registered

    async def _answer(self, call: Callable[[], Answer]) -> Answer | None:
        """Return the register's answer, retrying until it comes; None after another rebalance.

        Ending the process instead would cause another rebalance, and with it more claims.
        """
        number, deadline = self.assignment.number, time.monotonic() + DELIVERY_DEADLINE_S
        while number == self.assignment.number:
            try:
                # in a thread: the event loop must handle rebalances and signals
                answer = await asyncio.get_running_loop().run_in_executor(None, call)
            except BrokerError as error:
                if isinstance(error, AccessError) or time.monotonic() > deadline:
                    raise
                log.warning("%s: waiting for the register: %s", self.replica, error)
                await asyncio.sleep(REGISTER_AGAIN_S)
            else:
                # an epoch received after another rebalance must not replace a later claim's
                return answer if number == self.assignment.number else None
        return None

"""What a worker asks the register, while the broker may be away."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fluxplain.kafka.client import AccessError, BrokerError
from fluxplain.kafka.exits import refuse, replaced_settings
from fluxplain.kafka.ownership.registered import Registered
from fluxplain.kafka.worker.context import Context
from fluxplain.kafka.worker.partition import AssignedPartition

Answer = TypeVar("Answer")

log = logging.getLogger("fluxplain.worker")

AGAIN_S = 1.0
"""Seconds between two attempts."""


def is_claimed(registered: Registered, partition: AssignedPartition) -> bool:
    """Return whether another worker has claimed a partition since its state was loaded."""
    return registered.epochs.get(str(partition.slot)) != partition.epoch


@dataclass(frozen=True, slots=True)
class RegisterAnswers:
    """Asks the register on behalf of a worker."""

    context: Context

    async def read(self, holds: Callable[[], bool]) -> Registered | None:
        """Return the register's content, or None once ``holds`` is false.

        Ends the process if other settings or versions were registered.
        """
        registered = await self.of(self.context.register.read, holds)
        if registered is not None:
            self.check(registered)
        return registered

    async def of(self, call: Callable[[], Answer], holds: Callable[[], bool]) -> Answer | None:
        """Return the register's answer, retrying until it comes; None once ``holds`` is false.

        Ending the process instead would cause a rebalance, and with it more claims.
        """
        deadline = time.monotonic() + self.context.config.kafka.delivery_timeout_s
        while holds():
            try:
                # in a thread: the event loop must handle rebalances and signals
                answer = await asyncio.to_thread(call)
            except BrokerError as error:
                if isinstance(error, AccessError) or time.monotonic() > deadline:
                    raise
                log.warning("%s: waiting for the register: %s", self.context.replica, error)
                await asyncio.sleep(AGAIN_S)
            else:
                # an epoch received after another rebalance must not replace a later claim's
                return answer if holds() else None
        return None

    def check(self, registered: Registered) -> None:
        """End the process if other settings or versions were registered since it started."""
        if self.is_replaced(registered):
            refuse(replaced_settings(self.context.replica))

    def is_replaced(self, registered: Registered) -> bool:
        """Return whether other settings or versions were registered since the worker started."""
        here = self.context.registered, self.context.versions
        return here != (registered.number, registered.versions_number)

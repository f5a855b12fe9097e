"""Holds a stream back while an output topic lacks its partition.

Equal partitions of joined topics form one stream. Partitions may be added to these topics in any
order while workers run.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.producer import DeliveryError
from fluxplain.schemas import Control
from fluxplain.stages.join_stage import PassedOn

log = logging.getLogger("fluxplain.worker")

ASK_AGAIN_S = 2.0
"""Seconds between two requests about a missing partition."""


class OutputPartitions:
    """The partitions of the topic in which a role's records must keep their partition, if any.

    ``count`` returns the number of a topic's partitions, and asks the broker again if the given one
    is unknown; it may block.
    """

    def __init__(self, config: Config, replica: Replica, count: Callable[[str, int], int]) -> None:
        self._count = count
        self._topic: str | None = None
        if replica.role == "join":
            self._topic = config.topic(PassedOn.TOPIC)
        elif replica.role == "model" and config.explain.budget_ms is not None:
            self._topic = config.topic(Control.TOPIC)
        self._present: set[int] = set()
        self._missing: set[int] = set()
        self._asked_at = 0.0

    async def has(self, partition: int) -> bool:
        """Return whether a stream's records can be sent; if not, :meth:`found` yields it later."""
        if self._topic is None or partition in self._present:
            return True
        if partition not in self._missing and not await self._ask(partition):
            self._missing.add(partition)
            log.warning(self._need(partition))
        return partition in self._present

    async def found(self) -> list[int]:
        """Return, once each, the partitions that have appeared after a wait; asks every 2 s."""
        if time.monotonic() - self._asked_at < ASK_AGAIN_S:
            return []
        found = [each for each in list(self._missing) if await self._ask(each)]
        for each in found:
            self._missing.discard(each)
            log.info("partition %d exists now: its stream continues", each)
        return found

    def forget(self) -> None:
        """Forget all waits: the partitions were revoked."""
        self._missing.clear()

    @property
    def reasons(self) -> dict[int, str]:
        """Missing partition → remedy; safe to read from any thread."""
        return {number: self._need(number) for number in sorted(self._missing)}

    async def _ask(self, partition: int) -> bool:
        self._asked_at = time.monotonic()
        # in a thread: the event loop must handle rebalances and signals
        exists = await asyncio.to_thread(self._exists, partition)
        if exists:
            self._present.add(partition)
        return exists

    def _exists(self, partition: int) -> bool:
        try:
            return self._count(str(self._topic), partition) > partition
        except DeliveryError:
            return False  # asked again later

    def _need(self, partition: int) -> str:
        return (
            f"{self._topic} has no partition {partition}, so that stream waits: add partitions to "
            f"{self._topic} until it has as many as the other joined topics"
        )

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
    """The partitions of topics in which a record must keep its partition.

    ``count`` returns the number of a topic's partitions, and asks the broker again if the given one
    is unknown; it may block.
    """

    def __init__(self, config: Config, replica: Replica, count: Callable[[str, int], int]) -> None:
        self._count = count
        self._topics: list[str] = []
        if replica.role == "join":
            self._topics = [config.topic(PassedOn.TOPIC)]
        elif replica.role == "model" and config.explain.budget_ms is not None:
            self._topics = [config.topic(Control.TOPIC)]
        self._present: set[int] = set()
        self._missing: dict[int, str] = {}
        self._found: list[int] = []
        self._asked_at: dict[int, float] = {}

    async def has(self, partition: int) -> bool:
        """Return whether a stream's records can be sent; if not, asks again every 2 s."""
        if not self._topics or partition in self._present:
            return True
        now = time.monotonic()
        if now - self._asked_at.get(partition, -ASK_AGAIN_S) < ASK_AGAIN_S:
            return False
        self._asked_at[partition] = now
        loop = asyncio.get_running_loop()
        topic = await loop.run_in_executor(None, self._first_without, partition)
        if topic is None:
            self._present.add(partition)
            if self._missing.pop(partition, None):
                self._found.append(partition)
                log.info("partition %d exists now: its stream continues", partition)
            return True
        if partition not in self._missing:
            log.warning(_need(topic, partition))
        self._missing[partition] = topic
        return False

    def forget(self) -> None:
        """Forget all waits: the partitions were revoked."""
        self._missing.clear()
        self._found.clear()
        self._asked_at.clear()

    def take_found(self) -> list[int]:
        """Return, once each, the partitions that have appeared after a wait."""
        found, self._found = self._found, []
        return found

    @property
    def missing(self) -> list[int]:
        """The partitions whose records wait."""
        return list(self._missing)

    @property
    def reasons(self) -> dict[int, str]:
        """Missing partition → remedy; safe to read from any thread."""
        return {number: _need(topic, number) for number, topic in list(self._missing.items())}

    @property
    def waits_for(self) -> str | None:
        """A missing partition and the remedy, or None; safe to read from any thread."""
        return next(iter(self.reasons.values()), None)

    def _first_without(self, partition: int) -> str | None:
        for topic in self._topics:
            try:
                if self._count(topic, partition) <= partition:
                    return topic
            except DeliveryError:
                return topic  # asked again later
        return None


def _need(topic: str, partition: int) -> str:
    return (
        f"{topic} has no partition {partition}, so that stream waits: add partitions to {topic} "
        "until it has as many as the other joined topics"
    )

"""Keeps the time of each commit in Kafka, as the metadata of the committed offset.

So a worker that starts, wherever it runs, knows when its partitions were last committed.
"""

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

from aiokafka.structs import OffsetAndMetadata, TopicPartition


class CommitTimes:
    """Adds its time to each commit of an aiokafka consumer; an unchanged offset keeps its own."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._commit = consumer.commit
        self._known: dict[TopicPartition, OffsetAndMetadata] = {}
        consumer.commit = self._commit_with_times

    async def read(self, tps: Collection[tuple[str, int]]) -> list[float]:
        """Return when the offsets of some partitions were committed, in seconds since 1970.

        Partitions are left out that have no offset, or one that was committed without a time.
        """
        asked = [TopicPartition(*tp) for tp in tps]
        found = await self._consumer._coordinator.fetch_committed_offsets(asked)
        self._known |= found
        times: list[float] = []
        for each in found.values():
            with suppress(ValueError):
                times.append(float(each.metadata))
        return times

    async def _commit_with_times(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        now = f"{time.time():.3f}"
        timed = {tp: OffsetAndMetadata(each.offset, now) for tp, each in offsets.items()}
        for tp, each in timed.items():
            known = self._known.get(tp)
            if known is not None and known.offset == each.offset:
                timed[tp] = known
        await self._commit(timed)
        self._known |= timed

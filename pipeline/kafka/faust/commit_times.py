"""Keeps the time of each commit in Kafka, as the metadata of the committed offset.

So a worker that starts, wherever it runs, knows when its partitions were last committed.
"""

import time
from collections.abc import Collection, Mapping
from typing import Any

from aiokafka.structs import OffsetAndMetadata, TopicPartition

MARK = "fluxplain:"
"""Prefix of a commit's time: other clients of the group may write metadata of their own."""


class CommitTimes:
    """Adds its time to each commit of an aiokafka consumer; an unchanged offset keeps its own."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._commit = consumer.commit
        self._known: dict[TopicPartition, OffsetAndMetadata] = {}
        consumer.commit = self._commit_with_times

    async def read(self, tps: Collection[tuple[str, int]]) -> list[float]:
        """Return when the offsets of some partitions were committed, in seconds since 1970.

        Partitions are left out that have no offset, or one that was committed without a time, or
        with one that is still to come.
        """
        asked = [TopicPartition(*tp) for tp in tps]
        found = await self._consumer._coordinator.fetch_committed_offsets(asked)
        now = time.time()
        times = {tp: _time_of(each.metadata, now) for tp, each in found.items()}
        self._known |= {tp: each for tp, each in found.items() if times[tp] is not None}
        return [at for at in times.values() if at is not None]

    async def _commit_with_times(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        now = f"{MARK}{time.time():.3f}"
        timed = {tp: OffsetAndMetadata(each.offset, now) for tp, each in offsets.items()}
        for tp, each in timed.items():
            known = self._known.get(tp)
            if known is not None and known.offset == each.offset:
                timed[tp] = known
        await self._commit(timed)
        self._known |= timed


def _time_of(metadata: str | None, now: float) -> float | None:
    """Return the time in a committed offset's metadata, in (0, now]; None without one."""
    if metadata is None or not metadata.startswith(MARK):
        return None
    try:
        at = float(metadata.removeprefix(MARK))
    except ValueError:
        return None
    return at if 0.0 < at <= now else None

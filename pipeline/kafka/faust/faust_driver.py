"""Faust's consumer as the driver of a worker."""

from collections.abc import Mapping
from typing import Any

import faust
from faust.types import TP

from fluxplain.kafka.client import TopicPartition


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
        consumer, sensors = self._consumer, self._app.sensors
        state = sensors.on_commit_initiated(consumer)
        is_committed = await consumer._commit({TP(*tp): at for tp, at in offsets.items()})
        sensors.on_commit_completed(consumer, state)
        return bool(is_committed)

    def log_end(self, tp: TopicPartition) -> int | None:
        """Return the end of the log as of the last fetch; None before it."""
        try:
            end: int | None = self._consumer.highwater(TP(*tp))
        except AssertionError:
            return None  # aiokafka raises it for a partition that was just revoked
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

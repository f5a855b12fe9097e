"""The contract between a role's worker and the Kafka consumer that drives it.

:mod:`fluxplain.kafka.faust` is the only implementation. Another driver would have to

- deliver the messages of each partition in order, and commit only what it is asked to;
- call :meth:`~fluxplain.kafka.worker.worker.RoleWorker.on_revoked` when a rebalance begins, and
  ``on_assigned`` with its result;
- read the partitions that stay assigned on from their ``next_offset``, then ``confirm`` them;
- call ``resume_commits`` with the times of the last commits of new partitions;
- ``claim`` them, then confirm its group membership with the broker, and only then ``load`` each one
  and read from the offset that this returns.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from fluxplain.kafka.client import TopicPartition


class Received(Protocol):
    """A message as delivered by the driver; a worker uses these attributes only."""

    topic: str
    partition: int
    offset: int
    timestamp: float | None
    key: Any
    value: Any
    headers: Any


class Delivery(Protocol):
    """Consecutive messages of a partition, at least one, that the driver delivers together."""

    topic: str
    partition: int

    @property
    def next_offset(self) -> int:
        """The offset after the last message."""

    def messages(self) -> Iterator[Received]:
        """Yield the messages."""


class Driver(Protocol):
    """The consumer operations that a worker needs."""

    def is_current(self, message: Received) -> bool:
        """Return whether a message belongs to the current generation of the group."""

    def pause(self, tp: TopicPartition) -> None:
        """Stop fetching a partition."""

    def resume(self, tp: TopicPartition) -> None:
        """Fetch a paused partition again."""

    async def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read partitions again from these offsets."""

    async def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit the next offset of each partition; False to try again."""

    def has_more(self) -> bool:
        """Return whether other deliveries wait."""

    def log_end(self, tp: TopicPartition) -> int | None:
        """Return the end of the log as of the last fetch; None before it."""

    async def log_range(self, tp: TopicPartition) -> range:
        """Ask the broker for the offsets that a partition holds."""

    async def stay_in_group(self) -> None:
        """Keep the membership although all partitions are paused."""

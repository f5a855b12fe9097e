"""Merges the messages of joined topics in the order of their timestamps.

Any order would be valid, since the order of passing on is kept. But after a backlog, a topic with
few messages is read long before one with many: labels would arrive before their observations, or
after these have been given up.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.driver import Driver, Received
from fluxplain.kafka.headers import size_of
from fluxplain.kafka.worker.partition import Assignment

MOST_HELD = 2_000
"""Largest number of a partition's messages that wait for other topics; then it is paused."""

MOST_HELD_BYTES = 8 * 1024 * 1024
"""Limit of these messages in bytes; messages fetched before the pause still arrive."""

PATIENCE_S = 1.0
"""Seconds to wait for a message that the log seems to hold: a transaction marker is none."""


@dataclass(slots=True)
class _Held:
    """Messages of a partition that were read and not taken yet."""

    messages: deque[Received] = field(default_factory=deque)
    bytes: int = 0
    is_paused: bool = False
    waited_at: tuple[int, int | None] | None = None
    waited_since: float = 0.0

    def put(self, message: Received) -> None:
        self.messages.append(message)
        self.bytes += size_of(message)

    def take(self) -> Received:
        message = self.messages.popleft()
        self.bytes -= size_of(message)
        return message

    def fills(self, share: float) -> bool:
        """Return whether at least this share of the capacity is used."""
        return len(self.messages) >= share * MOST_HELD or self.bytes >= share * MOST_HELD_BYTES


class Merge:
    """Holds a message back until older ones in the same partition of the other topics are taken.

    At equal timestamps, the first topic's messages come first.
    """

    def __init__(self, topics: Sequence[str], assignment: Assignment, driver: Driver) -> None:
        self._topics = topics
        self._assignment = assignment
        self._driver = driver
        self._held: dict[int, dict[str, _Held]] = {}

    def put(self, message: Received) -> None:
        """Add a message that was read."""
        partition = self._held.setdefault(
            message.partition, {topic: _Held() for topic in self._topics}
        )
        held = partition[message.topic]
        held.put(message)
        if held.fills(1.0):
            self._driver.pause(TopicPartition(message.topic, message.partition))
            held.is_paused = True

    def ready(self, now: float) -> Iterator[Received]:
        """Yield the messages that may be taken, in order, unless the partition is revoked.

        The caller must take each before it requests the next; ``now`` is a monotonic time.
        """
        for number, partition in list(self._held.items()):
            while self._held.get(number) is partition:
                message = self._next(number, partition, now)
                if message is None:
                    break
                yield message

    def forget(self, tp: TopicPartition) -> None:
        """Drop the held messages of a partition, which is read again."""
        if tp.partition not in self._held:
            return
        dropped = self._held[tp.partition][tp.topic]
        # it has waited as long as before
        self._held[tp.partition][tp.topic] = _Held(
            waited_at=dropped.waited_at, waited_since=dropped.waited_since
        )
        if dropped.is_paused:
            self._driver.resume(tp)

    def clear(self) -> None:
        """Drop all held messages: after a rebalance they are read again."""
        self._held.clear()

    def _next(self, number: int, partition: dict[str, _Held], now: float) -> Received | None:
        first = min(
            (topic for topic in self._topics if partition[topic].messages),
            key=lambda topic: partition[topic].messages[0].timestamp or 0.0,
            default=None,
        )
        if first is None:
            return None
        others = [topic for topic in self._topics if not partition[topic].messages]
        if any(self._is_awaited(topic, number, partition[topic], now) for topic in others):
            return None
        held = partition[first]
        message = held.take()
        if held.is_paused and not held.fills(0.5):
            held.is_paused = False
            self._driver.resume(TopicPartition(first, number))
        return message

    def _is_awaited(self, topic: str, number: int, held: _Held, now: float) -> bool:
        """Return whether a partition without held messages may still bring an older one."""
        partition = self._assignment.get(topic, number)
        end = self._driver.log_end(TopicPartition(topic, number))
        if partition is None or (end is not None and partition.next_offset >= end):
            held.waited_at = None  # another worker owns it, or all was read
            return False
        stood = partition.next_offset, end
        if held.waited_at != stood:
            held.waited_at, held.waited_since = stood, now
        return now - held.waited_since < PATIENCE_S

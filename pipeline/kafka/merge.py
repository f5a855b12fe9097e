"""Puts the messages of topics that are read together in the order of their time.

Any order would do, since the order in which they are passed on is kept. But behind a backlog a
topic with few messages is read long before another with many: labels would come before their
observations, or so long after them that these no longer wait.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pipeline.kafka.client import Place
from pipeline.kafka.fetch import size_of

MOST_HELD = 2_000
"""Messages of a partition that may wait for those of the other topics; then it is not read on."""

MOST_HELD_BYTES = 8 * 1024 * 1024
"""Of these messages, of which each may have 1 MB; what was fetched before the pause still comes."""

PATIENCE_S = 1.0
"""How long to wait for a message that the log says is there: of a transaction, none may come."""


@dataclass(slots=True)
class _Held:
    """What was read of a partition and not taken yet."""

    messages: deque[Any] = field(default_factory=deque)
    bytes: int = 0
    is_paused: bool = False
    waited_at: tuple[int, int] | None = None
    waited_since: float = 0.0

    def put(self, message: Any) -> None:
        self.messages.append(message)
        self.bytes += size_of(message)

    def take(self) -> Any:
        message = self.messages.popleft()
        self.bytes -= size_of(message)
        return message

    def clear(self) -> None:
        self.messages.clear()
        self.bytes = 0

    def fills(self, share: float) -> bool:
        """Return whether at least a share of what may be held is."""
        return len(self.messages) >= share * MOST_HELD or self.bytes >= share * MOST_HELD_BYTES


class Merge:
    """Holds a message back until what is older in the same partition of the other topics is taken.

    Parameters
    ----------
    topics
        Full names; of messages of the same time those of the first come first.
    waiting
        Return for a place the offset of the next message to take, and the end of the log, or the
        offset behind if that is not known yet; None if this worker does not have the place.
    pause, resume
        Make the consumer read no more of a place, and read on.
    """

    def __init__(
        self,
        topics: list[str],
        *,
        waiting: Callable[[Place], tuple[int, int] | None],
        pause: Callable[[Place], None],
        resume: Callable[[Place], None],
    ) -> None:
        self._topics = topics
        self._waiting = waiting
        self._pause = pause
        self._resume = resume
        self._held: dict[int, dict[str, _Held]] = {}

    def put(self, message: Any) -> None:
        """Take a message that was read."""
        partition = self._held.setdefault(
            message.partition, {topic: _Held() for topic in self._topics}
        )
        held = partition[message.topic]
        held.put(message)
        if held.fills(1.0):
            self._pause((message.topic, message.partition))
            held.is_paused = True

    def ready(self, now: float) -> Iterator[Any]:
        """Yield the messages that may be taken, until none may, or its partition is taken away.

        Each must be taken before the next is asked for.

        Parameters
        ----------
        now
            Seconds, of any clock that only goes forward.
        """
        for number, partition in list(self._held.items()):
            while self._held.get(number) is partition:
                message = self._next(number, partition, now)
                if message is None:
                    break
                yield message

    def forget(self, place: Place) -> None:
        """Forget what was read of a place: it is read again."""
        topic, number = place
        if number not in self._held:
            return
        held = self._held[number][topic]
        held.clear()
        if held.is_paused:
            held.is_paused = False
            self._resume(place)

    def clear(self) -> None:
        """Forget everything: the partitions are taken away."""
        self._held.clear()

    def _next(self, number: int, partition: dict[str, _Held], now: float) -> Any | None:
        first = min(
            (topic for topic in self._topics if partition[topic].messages),
            key=lambda topic: partition[topic].messages[0].timestamp or 0.0,
            default=None,
        )
        if first is None:
            return None
        others = [topic for topic in self._topics if not partition[topic].messages]
        if any(self._is_awaited((topic, number), partition[topic], now) for topic in others):
            return None
        held = partition[first]
        message = held.take()
        if held.is_paused and not held.fills(0.5):
            held.is_paused = False
            self._resume((first, number))
        return message

    def _is_awaited(self, place: Place, held: _Held, now: float) -> bool:
        """Return whether a message of a partition, of which none is here, may be older."""
        stood = self._waiting(place)
        if stood is None or stood[0] >= stood[1]:
            held.waited_at = None
            return False
        if held.waited_at != stood:
            held.waited_at, held.waited_since = stood, now
        return now - held.waited_since < PATIENCE_S

"""A history with logarithmic thinning: older items are kept at coarser spacing."""

from typing import Generic, TypeVar

T = TypeVar("T")

PER_LEVEL = 8
"""Items kept at each spacing: a lookup returns an item at most about an eighth too old."""


class ThinnedHistory(Generic[T]):
    """Items at increasing positions; about 8 log2(n) of n items are kept.

    Which ones depends only on how many were added.

    Examples
    --------
    >>> squares = ThinnedHistory()
    >>> for t in range(1000):
    ...     squares.add(t, t * t)
    >>> squares.at(990), squares.at(500), squares.at(-1), len(squares)
    (980100, 200704, None, 55)
    >>> squares.since(990), squares.since(500), squares.since(1000)
    (980100, 262144, None)
    """

    def __init__(self) -> None:
        self._levels: list[list[tuple[int, T]]] = [[]]

    def add(self, position: int, item: T) -> None:
        """Append an item; positions must increase."""
        self._levels[0].append((position, item))
        for level, items in enumerate(self._levels):
            if len(items) <= PER_LEVEL:
                return
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append(items[0])  # items[1] is dropped
            del items[:2]

    def at(self, position: int) -> T | None:
        """Return the newest kept item at or before a position; None if there is none."""
        for items in self._levels:
            for place, item in reversed(items):
                if place <= position:
                    return item
        return None

    def since(self, position: int) -> T | None:
        """Return the oldest kept item at or after a position; None if there is none."""
        for items in reversed(self._levels):
            for place, item in items:
                if place >= position:
                    return item
        return None

    def __len__(self) -> int:
        return sum(map(len, self._levels))

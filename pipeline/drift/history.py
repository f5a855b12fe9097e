"""What was at some time, remembered the more coarsely the longer ago it is."""

from typing import Generic, TypeVar

T = TypeVar("T")

PER_LEVEL = 8
"""Items of each spacing: what is found is at most about an eighth further back than asked for."""


class Thinned(Generic[T]):
    """Items at increasing positions, of which fewer and fewer are kept: of n about 8 log2(n).

    What is kept depends on nothing but how many were added.

    Examples
    --------
    >>> squares = Thinned()
    >>> for t in range(1000):
    ...     squares.add(t, t * t)
    >>> squares.at(990), squares.at(500), squares.at(-1), len(squares)
    (980100, 200704, None, 55)
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
            self._levels[level + 1].append(items[0])  # and the one behind it is forgotten
            del items[:2]

    def at(self, position: int) -> T | None:
        """Return the newest kept item that was there at a position; None if none was."""
        for items in self._levels:
            for place, item in reversed(items):
                if place <= position:
                    return item
        return None

    def __len__(self) -> int:
        return sum(map(len, self._levels))

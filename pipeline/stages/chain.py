"""Distinguishes repeated, late and lost messages of a numbered sequence.

Each message of a chain has a number and names its predecessor's. So a reader knows which messages
it has missed, although compaction, transactions and dead letters leave holes in the numbers.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

MAX_GAPS = 100
"""Largest number of gaps remembered in a chain. A worker that dies leaves at most one, and most are
filled; without a limit, forged numbers would fill the memory."""


class Sight(Enum):
    """Position of a number in a chain."""

    NEXT = "next"
    """Above all numbers taken."""
    LATE = "late"
    """In a gap: not taken, although higher ones were."""
    SEEN = "seen"
    """Taken."""
    UNKNOWN = "unknown"
    """At or below a forgotten gap: it may have been taken, or not."""


class Gap(NamedTuple):
    """Numbers that were not taken: ``begin`` to ``end`` - 1."""

    begin: int
    end: int


@dataclass(slots=True)
class Chain:
    """The numbers taken so far: all below ``next`` except those in ``gaps``, which ascend.

    Below ``forgotten`` there were other gaps, which were forgotten.

    Examples
    --------
    >>> chain = Chain()
    >>> chain.take(0, None), chain.take(7, previous=4)
    (None, Gap(begin=1, end=5))
    >>> [chain.see(number).value for number in (0, 4, 6, 7, 8)]
    ['seen', 'late', 'seen', 'seen', 'next']
    """

    next: int = 0
    gaps: list[Gap] = field(default_factory=list)
    forgotten: int = 0

    @property
    def newest(self) -> int:
        """The largest number taken; -1 at first."""
        return self.next - 1

    def see(self, number: int) -> Sight:
        """Return the position of a number, without taking it."""
        if number >= self.next:
            return Sight.NEXT
        if number < self.forgotten:
            return Sight.UNKNOWN
        i = self._gap_at(number)
        return Sight.SEEN if i is None else Sight.LATE

    def take(self, number: int, previous: int | None) -> Gap | None:
        """Take a number from 0 on, unless it was taken; return the gap that it leaves.

        ``previous`` is its predecessor's number: nothing lies between the two. None if it has none,
        or it is unknown.
        """
        begin = number if previous is None else previous + 1
        if number < self.next:
            self._fill(number, begin)
            return None
        gap = Gap(self.next, begin) if begin > self.next else None
        self.next = number + 1
        if gap is not None:
            self._remember([*self.gaps, gap])
        return gap

    def _gap_at(self, number: int) -> int | None:
        i = bisect_right(self.gaps, number, key=attrgetter("begin")) - 1
        return i if i >= 0 and number < self.gaps[i].end else None

    def _fill(self, number: int, begin: int) -> None:
        i = self._gap_at(number)
        if i is None:
            return
        gap = self.gaps[i]
        rest = (Gap(gap.begin, begin), Gap(number + 1, gap.end))
        left = [each for each in rest if each.begin < each.end]
        self._remember([*self.gaps[:i], *left, *self.gaps[i + 1 :]])

    def _remember(self, gaps: list[Gap]) -> None:
        while len(gaps) > MAX_GAPS:
            self.forgotten = gaps.pop(0).end
        self.gaps = gaps

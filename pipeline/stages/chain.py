"""Tells a message that was taken before from one that was lost, or comes late.

Each message of a chain has a number and names its predecessor's, so a reader knows what it has not
seen, whatever lies between them: compaction, transactions and dead letters leave holes in which
nothing is lost.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

MAX_GAPS = 100
"""Gaps to remember in each chain. A worker that dies leaves at most one, and most of these are
filled; without a bound, forged numbers would fill the memory."""


class Sight(Enum):
    """What a chain knows of a number.

    Attributes
    ----------
    NEXT
        It is behind all that was taken.
    LATE
        It lies in a gap: others behind it were taken, but it was not.
    SEEN
        It was taken.
    UNKNOWN
        It lies at or below a gap that had to be forgotten: it may have been taken, or not.
    """

    NEXT = "next"
    LATE = "late"
    SEEN = "seen"
    UNKNOWN = "unknown"


class Gap(NamedTuple):
    """Numbers that were not seen: from ``begin`` on, below ``end``."""

    begin: int
    end: int


@dataclass(slots=True)
class Chain:
    """The numbers that were taken: all below ``next``, except those in a few gaps.

    Attributes
    ----------
    next
        The number behind the largest that was taken; 0 if nothing was.
    gaps
        What was not seen below it, in ascending order.
    forgotten
        Below this number a gap was forgotten.

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
        """The largest number that was taken; -1 if none was."""
        return self.next - 1

    def see(self, number: int) -> Sight:
        """Return what is known of a number; nothing changes."""
        if number >= self.next:
            return Sight.NEXT
        if number < self.forgotten:
            return Sight.UNKNOWN
        i = self._gap_at(number)
        return Sight.SEEN if i is None else Sight.LATE

    def take(self, number: int, previous: int | None) -> Gap | None:
        """Take a number, unless it was seen, and return the gap that it leaves behind it.

        Parameters
        ----------
        number
            From 0 on.
        previous
            Its predecessor's: nothing lies between them. None if it has none, or none is known.
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
        i = bisect_right(self.gaps, number, key=_begin) - 1
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


def _begin(gap: Gap) -> int:
    return gap.begin

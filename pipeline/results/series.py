"""An explanation over time in bounded memory: older points are kept at coarser spacing."""

import math
from array import array
from bisect import bisect_left, bisect_right
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

MAX_POINTS = 2_000
"""Most points of a series: three times what a screen shows, for zooming in."""


class Thinning:
    """Keeps every ``stride``-th of a growing number of items."""

    def __init__(self) -> None:
        self.stride = 1
        self._n = 0

    def keeps_next(self) -> bool:
        """Count an item, and return whether to keep it."""
        keeps = self._n % self.stride == 0
        self._n += 1
        return keeps


class Points(NamedTuple):
    """Columns of some points of a series; NaN where the standard error is not known."""

    seq: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    std_error: npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """One point of a series."""

    seq: int
    value: float
    std_error: float | None


class Series:
    """Points in order of seq; if there are too many, every other one is dropped."""

    def __init__(self) -> None:
        # the largest certain importance so far: distance from 0 minus two standard errors
        self.peak = 0.0
        # seq, version, value and standard error: 8 bytes each
        self._columns: list[array[Any]] = [array(code) for code in "qqdd"]
        self._thinning = Thinning()
        self._last_is_extra = False

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def newest(self) -> Estimate:
        """The newest point."""
        return self._at(-1)

    @property
    def first_seq(self) -> int:
        """Seq of the first point."""
        return self._seqs[0]

    @property
    def seq(self) -> int:
        """Seq of the newest point; -1 before the first."""
        return self._seqs[-1] if self._seqs else -1

    @property
    def version(self) -> int:
        """The store's version at which the newest point was added; -1 before the first."""
        return self._versions[-1] if self._versions else -1

    def add(
        self,
        seq: int,
        value: float,
        std_error: float | None,
        *,
        version: int = 0,
        most: int = MAX_POINTS,
    ) -> None:
        """Append a point; drop every other one if there are more than ``most``."""
        if self._last_is_extra:
            for column in self._columns:
                del column[-1]
        self._append(seq, version, value, math.nan if std_error is None else std_error)
        self._last_is_extra = not self._thinning.keeps_next()
        if std_error is not None:
            self.peak = max(self.peak, abs(value) - 2.0 * std_error)
        self.trim(most)

    def trim(self, most: int) -> None:
        """Drop every other point while there are more than ``most``."""
        while len(self) > most:
            self._halve()

    @property
    def points(self) -> Points:
        """All kept points, always including the first and the newest."""
        return self._chosen(slice(None))

    def before(self, seq: int) -> Estimate | None:
        """Return the newest kept point before a seq."""
        at = bisect_left(self._seqs, seq)
        return self._at(at - 1) if at else None

    def between(self, first: int, last: int, *, most: int) -> Points:
        """Return at most about ``most`` points in a range of seqs, and one beyond each end."""
        begin = max(bisect_left(self._seqs, first) - 1, 0)
        end = min(bisect_right(self._seqs, last) + 1, len(self))
        return self._thinned(begin, end, most)

    def since(self, version: int, *, most: int) -> Points:
        """Return at most about ``most`` of the points added after a version."""
        return self._thinned(bisect_right(self._versions, version), len(self), most)

    @property
    def _seqs(self) -> "array[int]":
        return self._columns[0]

    @property
    def _versions(self) -> "array[int]":
        return self._columns[1]

    def _append(self, *point: float) -> None:
        for column, number in zip(self._columns, point, strict=True):
            column.append(number)

    def _halve(self) -> None:
        newest = [column[-1] for column in self._columns]
        kept = slice(0, len(self) - self._last_is_extra, 2)
        self._columns = [column[kept] for column in self._columns]
        self._thinning.stride *= 2
        self._last_is_extra = self.seq != newest[0]
        if self._last_is_extra:
            self._append(*newest)

    def _at(self, i: int) -> Estimate:
        seq, _, value, std_error = (column[i] for column in self._columns)
        return Estimate(seq, value, None if math.isnan(std_error) else std_error)

    def _thinned(self, begin: int, end: int, most: int) -> Points:
        """Return every n-th point, counted back from the newest, which is always included."""
        step = max(-(-(end - begin) // most), 1)
        return self._chosen(slice(begin + (end - begin - 1) % step, end, step))

    def _chosen(self, which: slice) -> Points:
        seq, _, value, std_error = (np.array(column[which]) for column in self._columns)
        return Points(seq, value, std_error)


class Bounded(Protocol):
    """What shares a budget."""

    def trim(self, most: int) -> None:
        """Keep at most so much."""


B = TypeVar("B", bound=Bounded)


class Budget(Generic[B]):
    """Divides a fixed budget among a growing number of members; each gets at most ``most``.

    Shares halve each time the members double. So all together never exceed the budget, and members
    must rarely give something back.
    """

    def __init__(self, total: int, most: int) -> None:
        self.each = min(total, most)
        self.members: list[B] = []
        self._total = total
        self._places = 1

    def admit(self, member: B) -> B:
        """Add a member and return it; trim all if their shares shrink."""
        self.members.append(member)
        if len(self.members) > self._places:
            self._places *= 2
            self.each = min(self.each, self._total // self._places)
            for each in self.members:
                each.trim(self.each)
        return member

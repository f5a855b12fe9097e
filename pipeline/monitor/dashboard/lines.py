"""The course of one explanation, in bounded memory."""

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Points(NamedTuple):
    """Some points of a line; all arrays are as long.

    Numbers of 4 bytes: seven digits, which is more than a screen shows.
    """

    seq: npt.NDArray[np.int64]
    value: npt.NDArray[np.float32]
    std_error: npt.NDArray[np.float32]


class Line:
    """Points in order, thinned evenly: whenever too many, every other one is dropped.

    Attributes
    ----------
    peak
        The largest distance from 0 that was beyond two standard errors of doubt: how important the
        feature has surely been at some time. 0 if it never was.
    version
        When the newest point was added.

    Examples
    --------
    >>> line = Line()
    >>> for seq in range(10):
    ...     line.add(seq, 0.5, 0.1, version=seq, most=4)
    >>> line.between(0, 9, most=10).seq.tolist(), line.since(7, most=10).seq.tolist()
    ([0, 4, 8, 9], [8, 9])
    """

    def __init__(self) -> None:
        self.peak = 0.0
        self._seqs = array("q")
        self._versions = array("q")
        self._values = array("f")
        self._std_errors = array("f")
        self._stride = 1
        self._n = 0
        self._last_is_extra = False

    def __len__(self) -> int:
        return len(self._seqs)

    @property
    def seq(self) -> int:
        """The newest seq; -1 before the first."""
        return self._seqs[-1] if self._seqs else -1

    @property
    def version(self) -> int:
        """When the newest point was added; -1 before the first."""
        return self._versions[-1] if self._versions else -1

    def add(self, seq: int, value: float, std_error: float, *, version: int, most: int) -> None:
        """Append a point; of more than ``most`` every other one is dropped."""
        if self._last_is_extra:
            for column in self._columns:
                del column[-1]
        self._append(seq, version, value, std_error)
        self._last_is_extra = self._n % self._stride != 0
        self._n += 1
        self.peak = max(self.peak, abs(value) - 2.0 * std_error)
        self.trim(most)

    def trim(self, most: int) -> None:
        """Drop every other point as often as there are more than ``most``."""
        while len(self) > most:
            self._halve()

    def between(self, first: int, last: int, *, most: int) -> Points:
        """Return at most about so many points within a range of seqs, and one beyond each end."""
        begin = max(bisect_left(self._seqs, first) - 1, 0)
        end = min(bisect_right(self._seqs, last) + 1, len(self))
        return self._thinned(begin, end, most)

    def since(self, version: int, *, most: int) -> Points:
        """Return at most about so many of the points added after a version."""
        return self._thinned(bisect_right(self._versions, version), len(self), most)

    @property
    def _columns(self) -> "tuple[array[int], array[int], array[float], array[float]]":
        return self._seqs, self._versions, self._values, self._std_errors

    def _append(self, seq: int, version: int, value: float, std_error: float) -> None:
        self._seqs.append(seq)
        self._versions.append(version)
        self._values.append(value)
        self._std_errors.append(std_error)

    def _halve(self) -> None:
        newest = self.seq, self.version, self._values[-1], self._std_errors[-1]
        kept = slice(0, len(self) - self._last_is_extra, 2)
        self._seqs, self._versions = self._seqs[kept], self._versions[kept]
        self._values, self._std_errors = self._values[kept], self._std_errors[kept]
        self._stride *= 2
        self._last_is_extra = self.seq != newest[0]
        if self._last_is_extra:
            self._append(*newest)

    def _thinned(self, begin: int, end: int, most: int) -> Points:
        """Return every n-th point, counted from the newest, which is always there."""
        step = max(-(-(end - begin) // most), 1)
        chosen = slice(begin + (end - begin - 1) % step, end, step)
        return Points(
            np.array(self._seqs[chosen], dtype=np.int64),
            np.array(self._values[chosen], dtype=np.float32),
            np.array(self._std_errors[chosen], dtype=np.float32),
        )

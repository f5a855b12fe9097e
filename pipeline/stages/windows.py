"""What the numbers that a detector compares are about: which observations, and which losses."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

SMALLEST = 8
"""Numbers in a bucket at least, but for the newest."""

PER_LEVEL = 9
"""Buckets of each size: where a window begins is known to about an eighth of it."""


class Bucket(NamedTuple):
    """Consecutive numbers.

    Attributes
    ----------
    numbers
        How many.
    seq
        Offset of the observation that the first is of.
    labelled, loss
        How many have a loss, and the sum of these.
    """

    numbers: int
    seq: int
    labelled: int
    loss: float

    def joined(self, newer: "Bucket") -> "Bucket":
        """Return one bucket of this and the one behind it."""
        return Bucket(
            self.numbers + newer.numbers,
            self.seq,
            self.labelled + newer.labelled,
            self.loss + newer.loss,
        )

    @property
    def mean_loss(self) -> float | None:
        """Mean of the losses; None without any."""
        return self.loss / self.labelled if self.labelled else None


class Windows:
    """Numbers since a detector began, in buckets that are the larger the older they are.

    Of n numbers there are about 9 log2(n) buckets, as in ADWIN.

    Examples
    --------
    >>> windows = Windows()
    >>> for seq in range(1000):
    ...     windows.add(seq, loss=0.1 if seq < 900 else 0.5)
    >>> before, after = windows.split(100)
    >>> before.seq, after.seq, round(before.mean_loss, 2), round(after.mean_loss, 2)
    (0, 896, 0.1, 0.48)
    """

    def __init__(self) -> None:
        self._levels: list[list[Bucket]] = [[]]
        # the newest bucket, as long as it is not full
        self._numbers, self._seq, self._labelled, self._loss = 0, 0, 0, 0.0

    def add(self, seq: int, loss: float | None) -> None:
        """Take what the next number is about."""
        if not self._numbers:
            self._seq = seq
        self._numbers += 1
        if loss is not None:
            self._labelled += 1
            self._loss += loss
        if self._numbers == SMALLEST:
            self._close()

    def _close(self) -> None:
        self._levels[0].append(self._newest())
        self._numbers, self._labelled, self._loss = 0, 0, 0.0
        for level, buckets in enumerate(self._levels):
            if len(buckets) <= PER_LEVEL:
                return
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append(buckets[0].joined(buckets[1]))
            del buckets[:2]

    def split(self, newest: int) -> tuple[Bucket | None, Bucket]:
        """Return what is before the newest numbers, and these: about so many, and at least some."""
        buckets = self._newest_first()
        kept = self._count(buckets, newest)
        older = reduce(_joined, buckets[kept:]) if buckets[kept:] else None
        return older, reduce(_joined, buckets[:kept])

    def forget(self, newest: int) -> None:
        """Forget what is before the newest numbers."""
        kept = self._count(self._newest_first(), newest) - bool(self._numbers)
        for buckets in self._levels:
            del buckets[: max(len(buckets) - kept, 0)]
            kept -= len(buckets)

    def _newest(self) -> Bucket:
        return Bucket(self._numbers, self._seq, self._labelled, self._loss)

    def _newest_first(self) -> list[Bucket]:
        newest = [self._newest()] if self._numbers else []
        return newest + [bucket for buckets in self._levels for bucket in reversed(buckets)]

    @staticmethod
    def _count(buckets: Sequence[Bucket], newest: int) -> int:
        """Return how many buckets hold the newest numbers; the first always does."""
        numbers = 0
        for place, bucket in enumerate(buckets):
            if place and numbers + bucket.numbers // 2 >= newest:
                return place
            numbers += bucket.numbers
        return len(buckets)


def _joined(newer: Bucket, older: Bucket) -> Bucket:
    return older.joined(newer)

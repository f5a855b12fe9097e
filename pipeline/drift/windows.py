"""The numbers in a detector's window, with their observations and losses, in bounded memory."""

import math
from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

SMALLEST = 8
"""Smallest number of values in a bucket, except for the newest one."""

PER_LEVEL = 9
"""Largest number of buckets of each size: the start of a window is exact to about an eighth."""


class Part(NamedTuple):
    """Count, mean, and sum of squared deviations (``squares``) of some numbers."""

    n: int
    mean: float
    squares: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Part":
        """Return the part of these numbers; at least one."""
        mean = sum(numbers) / len(numbers)
        squares = sum([(number - mean) * (number - mean) for number in numbers])  # the fastest
        return cls(len(numbers), mean, squares)

    @property
    def std_error(self) -> float | None:
        """Standard error of the mean, if the numbers are independent.

        None for a single number, or if the squares overflow.
        """
        if self.n < 2 or not math.isfinite(self.squares):
            return None
        return math.sqrt(self.squares / (self.n - 1) / self.n)

    def with_number(self, number: float) -> "Part":
        """Return this part, which may be empty, with one number more."""
        return self.joined(Part(1, number, 0.0))

    def joined(self, other: "Part") -> "Part":
        """Return both together (Chan, Golub, LeVeque 1979)."""
        n = self.n + other.n
        mean = self.mean + (other.mean - self.mean) * other.n / n
        return Part(n, mean, self.squares + other.squares + self.distance(other))

    def distance(self, other: "Part") -> float:
        """Return by how much separate means reduce the sum of squares."""
        difference = other.mean - self.mean
        return self.n * other.n / (self.n + other.n) * difference * difference


class Bucket(NamedTuple):
    """Consecutive numbers from ``seq`` on; ``labelled`` of them have a loss, ``loss`` in sum."""

    part: Part
    seq: int
    labelled: int
    loss: float

    def joined(self, newer: "Bucket") -> "Bucket":
        """Return one bucket of this and the next newer one."""
        return Bucket(
            self.part.joined(newer.part),
            self.seq,
            self.labelled + newer.labelled,
            self.loss + newer.loss,
        )

    @property
    def mean_loss(self) -> float | None:
        """Mean of the losses; None without any."""
        return self.loss / self.labelled if self.labelled else None


class Windows:
    """The numbers since a detector's start, in buckets that grow with age.

    There are about 9 log2(n) buckets for n numbers, as in ADWIN.

    Examples
    --------
    >>> windows = Windows()
    >>> for seq in range(1000):
    ...     windows.add(seq, number=float(seq >= 900), loss=0.1 if seq < 900 else 0.5)
    >>> before, after = windows.split(100)
    >>> before.seq, after.seq, round(before.mean_loss, 2), round(after.mean_loss, 2)
    (0, 896, 0.1, 0.48)
    >>> before, after = windows.split_by_mean()
    >>> before.seq, after.seq, round(before.part.mean, 2), round(after.part.mean, 2)
    (0, 896, 0.0, 0.96)
    """

    def __init__(self) -> None:
        self._levels: list[list[Bucket]] = [[]]
        # the newest bucket, until it is full
        self._numbers: list[float] = []
        self._seq, self._labelled, self._loss = 0, 0, 0.0
        self._count, self._total = 0, 0.0

    def add(self, seq: int, number: float, loss: float | None) -> None:
        """Append the number and the loss of observation ``seq``."""
        self.add_run((seq,), (number,), loss)

    def add_run(self, seqs: Sequence[int], numbers: Sequence[float], loss: float | None) -> None:
        """Append the numbers of several observations, which have this loss each."""
        for seq, number in zip(seqs, numbers, strict=True):
            if not self._numbers:
                self._seq = seq
            self._numbers.append(number)
            self._count, self._total = self._count + 1, self._total + number
            if loss is not None:
                self._labelled, self._loss = self._labelled + 1, self._loss + loss
            if len(self._numbers) == SMALLEST:
                self._close()

    def _close(self) -> None:
        self._levels[0].append(self._newest())
        self._numbers, self._labelled, self._loss = [], 0, 0.0
        for level, buckets in enumerate(self._levels):
            if len(buckets) <= PER_LEVEL:
                return
            if level + 1 == len(self._levels):
                self._levels.append([])
            self._levels[level + 1].append(buckets[0].joined(buckets[1]))
            del buckets[:2]

    @classmethod
    def of(cls, buckets: Sequence[Bucket]) -> "Windows":
        """Return windows of these buckets, the oldest first; nothing can be added."""
        windows = cls()
        windows._levels = [[*buckets]]
        return windows

    @property
    def mean(self) -> float:
        """Mean of the remembered numbers; 0 before the first."""
        return self._total / max(self._count, 1)

    @property
    def seq(self) -> int:
        """Observation of the oldest remembered number."""
        return self._newest_first()[-1].seq

    def split_by_mean(
        self, *, rises: bool | None = None, smallest: int = 1
    ) -> tuple[Bucket | None, Bucket]:
        """Return the numbers before and after the likeliest change of the mean.

        The split between two buckets with the smallest squared error around two means: the
        maximum-likelihood estimate for normal numbers (Hinkley 1970). A single bucket has nothing
        before it.

        Parameters
        ----------
        rises
            Whether the mean must rise, or fall, if there is such a split.
        smallest
            Numbers required on both sides, if there is such a split: with fewer, an outlier would
            look like a change.
        """
        buckets = self._newest_first()
        newer = [*accumulate(buckets, _joined)]
        older = [*accumulate(reversed(buckets), Bucket.joined)][::-1]
        if len(buckets) == 1:
            return None, newer[0]

        def gain(place: int) -> tuple[bool, bool, float]:
            before, after = older[place].part, newer[place - 1].part
            has_direction = rises is None or (after.mean > before.mean) == rises
            return has_direction, min(before.n, after.n) >= smallest, before.distance(after)

        place = max(range(1, len(buckets)), key=gain)
        return older[place], newer[place - 1]

    def split(self, newest: int, before: int | None = None) -> tuple[Bucket | None, Bucket]:
        """Return the older numbers, None without any, and about ``newest`` ones, at least one.

        With ``before``, about so many older ones.
        """
        buckets = self._newest_first()
        kept = _number(buckets, newest)
        older = buckets[kept:]
        if older and before is not None:
            older = older[: _number(older, before)]
        return reduce(_joined, older) if older else None, reduce(_joined, buckets[:kept])

    def count_since(self, seq: int) -> int:
        """Return how many numbers came since observation ``seq``, with all of its bucket."""
        buckets = self._newest_first()
        whole = [each.part.n for each in buckets if each.seq > seq]
        return sum(whole) + (buckets[len(whole)].part.n if len(whole) < len(buckets) else 0)

    def forget(self, newest: int) -> None:
        """Drop all but about ``newest`` numbers."""
        kept = _number(self._newest_first(), newest) - bool(self._numbers)
        for buckets in self._levels:
            del buckets[: max(len(buckets) - kept, 0)]
            kept -= len(buckets)
        part = reduce(_joined, self._newest_first()).part
        self._count, self._total = part.n, part.n * part.mean

    def _newest(self) -> Bucket:
        return Bucket(Part.of(self._numbers), self._seq, self._labelled, self._loss)

    def _newest_first(self) -> list[Bucket]:
        newest = [self._newest()] if self._numbers else []
        return newest + [bucket for buckets in self._levels for bucket in reversed(buckets)]


def _number(buckets: Sequence[Bucket], newest: int) -> int:
    """Return how many buckets hold the newest numbers; at least one."""
    numbers = 0
    for place, bucket in enumerate(buckets):
        if place and numbers + bucket.part.n // 2 >= newest:
            return place
        numbers += bucket.part.n
    return len(buckets)


def _joined(newer: Bucket, older: Bucket) -> Bucket:
    return older.joined(newer)

"""Loss and accuracy over time, in bounded memory."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

MAX_BUCKETS = 1_024
"""Buckets kept: more than a chart is wide."""

WINDOW = 500
"""Labelled records that a shown mean is about, or those of one bucket if they are more."""

FEWEST = 20
"""Labelled records from which on a mean is shown."""


@dataclass(slots=True)
class _Bucket:
    """Sums over neighbouring records."""

    losses: int = 0
    loss: float = 0.0
    hits: int = 0
    right: int = 0

    def add(self, other: "_Bucket") -> None:
        self.losses += other.losses
        self.loss += other.loss
        self.hits += other.hits
        self.right += other.right


class Course(TypedDict):
    """Means of the last ``window`` labelled records, at some seqs; None where there were none."""

    window: int
    seq: list[int]
    loss: list[float | None]
    accuracy: list[float | None]


class Performance:
    """Sums of losses and hits in buckets of seqs, which double when there are too many.

    Predictions may come in any order: a reader gets those of several partitions mixed.

    Examples
    --------
    >>> performance = Performance()
    >>> for seq in range(2000):
    ...     performance.add(seq, loss=1.0 if seq < 1000 else 2.0, hit=seq % 4 > 0)
    >>> course = performance.course(most=4)
    >>> course["seq"], course["loss"], course["accuracy"]
    ([499, 999, 1499, 1999], [1.0, 1.0, 2.0, 2.0], [0.75, 0.75, 0.75, 0.75])
    """

    def __init__(self) -> None:
        self._width = 1
        self._buckets: dict[int, _Bucket] = {}

    def add(self, seq: int, loss: float | None, hit: bool | None) -> None:
        """Count one labelled prediction; a hit is None in regression."""
        bucket = self._buckets.setdefault(seq // self._width, _Bucket())
        if loss is not None:
            bucket.losses += 1
            bucket.loss += loss
        if hit is not None:
            bucket.hits += 1
            bucket.right += hit
        while len(self._buckets) > MAX_BUCKETS:
            self._halve()

    def course(self, most: int) -> Course:
        """Return moving means at no more than so many places; the newest is always there."""
        if not self._buckets:
            return {"window": WINDOW, "seq": [], "loss": [], "accuracy": []}
        indices = sorted(self._buckets)
        rows = [self._buckets[index] for index in indices]
        step = -(-len(rows) // most)
        ends = np.arange((len(rows) - 1) % step, len(rows), step)
        counts = np.cumsum([0, *(row.losses for row in rows)])
        # each window is summed: differences of sums would lose a small loss after a large one
        starts = np.searchsorted(counts[:-1], counts[ends + 1] - WINDOW, side="right") - 1
        bounds = np.stack([np.maximum(starts, 0), ends + 1], axis=1).ravel()

        def means(totals: list[float], numbers: list[int]) -> list[float | None]:
            sums, ns = (np.add.reduceat([*each, 0], bounds)[::2] for each in (totals, numbers))
            return [float(t / n) if n >= FEWEST else None for t, n in zip(sums, ns, strict=True)]

        return {
            "window": WINDOW,
            "seq": [(indices[end] + 1) * self._width - 1 for end in ends],
            "loss": means([row.loss for row in rows], [row.losses for row in rows]),
            "accuracy": means([row.right for row in rows], [row.hits for row in rows]),
        }

    def _halve(self) -> None:
        self._width *= 2
        narrow, self._buckets = self._buckets, {}
        for index, bucket in narrow.items():
            self._buckets.setdefault(index // 2, _Bucket()).add(bucket)

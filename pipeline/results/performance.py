"""Loss, accuracy and throughput, in bounded memory."""

from collections import defaultdict, deque
from functools import partial
from typing import TypedDict

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_BUCKETS = 1_024
"""Most buckets to keep; more than a chart has pixels."""

WINDOW = 500
"""Labelled records in a moving mean; a bucket with more counts whole."""

MIN_LABELLED = 20
"""Fewest labelled records in a mean."""


class Trend(TypedDict):
    """Moving means at some seqs; None with too few labels.

    Each mean covers the last ``window`` labelled records; the newest mean covers ``labelled``.
    """

    window: int
    labelled: int
    seq: list[int]
    loss: list[float | None]
    accuracy: list[float | None]


class Performance:
    """Sums of losses and hits in buckets of seqs, whose width doubles when there are too many.

    Predictions may arrive in any order: a reader gets those of several partitions mixed.
    """

    def __init__(self) -> None:
        self._width = 1
        # number of losses, their sum, number of hits or misses, number of hits
        self._buckets: defaultdict[int, Floats] = defaultdict(partial(np.zeros, 4))

    def add(self, seq: int, loss: float, hit: bool | None) -> None:
        """Count one labelled prediction; a hit is None in regression."""
        self._buckets[seq // self._width] += (1, loss, hit is not None, bool(hit))
        while len(self._buckets) > MAX_BUCKETS:
            self._halve()

    def trend(self, most: int) -> Trend:
        """Return at most so many moving means, including the newest."""
        if not self._buckets:
            return Trend(window=WINDOW, labelled=0, seq=[], loss=[], accuracy=[])
        indices = sorted(self._buckets)
        losses, loss, hits, right = np.array([self._buckets[index] for index in indices]).T
        step = -(-len(losses) // most)
        ends = np.arange((len(losses) - 1) % step, len(losses), step)
        counts = np.cumsum([0, *losses])
        # sum each window: differences of running sums would lose a small loss after a large one
        starts = np.searchsorted(counts[:-1], counts[ends + 1] - WINDOW, side="right") - 1
        starts = np.maximum(starts, 0)
        bounds = np.stack([starts, ends + 1], axis=1).ravel()

        def means(totals: Floats, numbers: Floats) -> list[float | None]:
            sums, ns = (np.add.reduceat([*each, 0], bounds)[::2] for each in (totals, numbers))
            return [
                float(t / n) if n >= MIN_LABELLED else None for t, n in zip(sums, ns, strict=True)
            ]

        return Trend(
            window=WINDOW,
            labelled=int(counts[-1] - counts[starts[-1]]),
            seq=[(indices[end] + 1) * self._width - 1 for end in ends],
            loss=means(loss, losses),
            accuracy=means(right, hits),
        )

    @property
    def newest(self) -> tuple[float | None, float | None]:
        """Current loss and accuracy; None with too few labels."""
        trend = self.trend(most=1)
        return next(iter(trend["loss"]), None), next(iter(trend["accuracy"]), None)

    def _halve(self) -> None:
        self._width *= 2
        narrow = self._buckets.copy()
        self._buckets.clear()
        for index, sums in narrow.items():
            self._buckets[index // 2] += sums


class Throughput:
    """Records per second over the last seconds; the caller provides the time."""

    WINDOW_S = 5.0

    SLOT_S = 0.25
    """Seconds whose records are counted together, to bound memory."""

    def __init__(self) -> None:
        slots = int(self.WINDOW_S / self.SLOT_S) + 2
        self._slots: deque[tuple[float, int]] = deque(maxlen=slots)
        self._start: float | None = None

    def add(self, now: float) -> None:
        """Count one record at a time in seconds, of any monotonic clock."""
        if self._start is None:
            self._start = now
        if self._slots and now - self._slots[-1][0] < self.SLOT_S:
            start, n = self._slots.pop()
            self._slots.append((start, n + 1))
        else:
            self._slots.append((now, 1))

    def rate(self, now: float) -> float:
        """Return records per second; 0 in the first second."""
        if self._start is None or now - self._start < 1.0:
            return 0.0
        n = sum(n for start, n in self._slots if now - start <= self.WINDOW_S)
        return n / min(self.WINDOW_S, now - self._start)

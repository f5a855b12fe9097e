"""How long values of features resemble the ones before: the sums of their autocorrelations."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats

MEMORY = 2_000
"""Over how many observations the products are averaged."""

OUTLIER = 5.0
"""Standard deviations at which a value is clipped."""

MEAN, VARIANCE, SUM, PRODUCT = range(4)
"""Columns of what is kept: the mean, the variance, the decaying sum of deviations, and the mean
product of a deviation with the sum before."""


class Autocorrelations:
    """Sums of the autocorrelations of several features, over lags of about ``span`` observations.

    ``sums`` has one for each feature; ``largest`` and ``mean`` are those of them. A lag counts
    ``(1 - 1/span)^(lag - 1)`` times. A sum is 0 if it may be noise: those of n independent values
    are within ``3 √(span / 2n)`` of 0.

    Examples
    --------
    Neighbours have the correlation 0.9: the sum is 0.9 / (1 - 0.9 · 0.99) = 8.3.

    >>> rng, x, found = np.random.default_rng(1), 0.0, Autocorrelations(1, span=100)
    >>> for _ in range(20_000):
    ...     x = 0.9 * x + rng.normal()
    ...     found.update(np.array([x]))
    >>> found.sums.round(1).tolist()
    [7.5]
    """

    def __init__(self, features: int, span: int) -> None:
        self.span = span
        self.seen = 0
        self.sums = np.zeros(features)
        self.largest, self.mean = 0.0, 0.0
        self._kept = np.zeros((features, 4))

    def update(self, values: Floats) -> None:
        """Take the next values, one for each feature; those that are not finite are left out."""
        self.seen += 1
        found = follow_values(self._kept, values, self.span, self.seen, self.sums)
        self.largest, self.mean = found

    def take_over(self, place: int, other: "Autocorrelations", theirs: int) -> None:
        """Take over those of one feature."""
        self.seen = other.seen
        self.sums[place], self._kept[place] = other.sums[theirs], other._kept[theirs]


@compiled
def follow_values(
    kept: Floats, values: Floats, span: int, n: int, sums: Floats
) -> tuple[float, float]:
    """Take the n-th values into what is kept, shape (features, 4), and into the sums.

    Return the largest and the mean of these.
    """
    rate, stays, largest, total = 1.0 / min(n, MEMORY), 1.0 - 1.0 / span, 0.0, 0.0
    noise = 3.0 * math.sqrt(span / 2.0 / min(n, 2 * MEMORY))
    for i in range(len(values)):
        off, variance = values[i] - kept[i, MEAN], kept[i, VARIANCE]
        if math.isfinite(off):
            if variance > 0.0 and n > 20:
                limit = OUTLIER * math.sqrt(variance)
                off = min(max(off, -limit), limit)
            left = off * (1.0 - rate)
            kept[i, MEAN] += rate * off
            kept[i, VARIANCE] += rate * (left * off - variance)
            kept[i, SUM] *= stays
            kept[i, PRODUCT] += rate * (left * kept[i, SUM] - kept[i, PRODUCT])
            kept[i, SUM] += left
        if kept[i, VARIANCE] > 0.0:
            found = kept[i, PRODUCT] / kept[i, VARIANCE]
            sums[i] = found if found >= noise else 0.0
        largest = max(largest, sums[i])
        total += sums[i]
    return largest, total / max(len(values), 1)

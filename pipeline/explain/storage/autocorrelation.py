"""How long values of features resemble the ones before: the sums of their autocorrelations."""

import math

import numpy as np

from fluxplain.evaluate.compiled import Direct, compiled
from fluxplain.evaluate.encoding import Floats

LONGEST_SPAN = 200
"""Most lags whose autocorrelations count."""

SPANS = 5
"""Length of a block of observations, in spans."""

BLOCKS = 5
"""Blocks whose median is the estimate, so that a shift of the values, which spoils one block, does
not count."""

SKEWED = 1.1
"""The mean of the blocks' estimates is about so many times their median: they are skewed."""

LARGEST = 1e150
"""Larger values are left out, since their squares are no numbers."""

FIRST, SUM, SQUARES, DECAYING, PRODUCTS, DECAYING_SUM, WEIGHTED_SUM = range(7)
"""Columns of what is kept of a block: its first value; and, of the values' distances from it, the
sum, the sum of squares, the decaying sum, the sum of products with the decaying sum before, the sum
of these decaying sums, and the sum weighted by how many numbers they are worth."""


class Autocorrelations:
    """Sums of the autocorrelations of several features, over lags of about ``span`` observations.

    ``sums`` has one for each feature; ``largest`` is the largest sum, and ``mean`` the mean of the
    sums. The autocorrelation at a lag has the weight ``(1 - 1/span)^(lag - 1)``. A sum is 0 if it
    may be noise.

    Examples
    --------
    Neighbours have the correlation 0.9: the sum is about 0.9 / (1 - 0.9 · 0.99) = 8.3.

    >>> rng, x, found = np.random.default_rng(1), 0.0, Autocorrelations(1, span=100)
    >>> for _ in range(20_000):
    ...     x = 0.9 * x + rng.normal()
    ...     found.update(np.array([x]))
    >>> 0.5 * 8.3 < found.sums.item() < 1.5 * 8.3
    True
    """

    def __init__(self, features: int, span: int) -> None:
        self.span = min(span, LONGEST_SPAN)
        self.sums = np.zeros(features)
        self.largest, self.mean = 0.0, 0.0
        self._kept = np.zeros((features, 7))
        self._counts = np.zeros(4)
        self._found = np.zeros((features, BLOCKS))

    def update(self, values: Floats) -> None:
        """Take the next values, one for each feature; those that are not finite are left out."""
        values = np.ascontiguousarray(values, np.float64)
        if _FOLLOW.call(self._kept, self._counts, values, self.span, self._found, self.sums):
            sums = self.sums.tolist()
            self.largest, self.mean = max(sums), sum(sums) / len(sums)

    @property
    def blocks(self) -> int:
        """Number of whole blocks, of five spans each, that have been seen."""
        return int(self._counts[BLOCK])

    def take_over(self, place: int, other: "Autocorrelations", theirs: int) -> None:
        """Copy the state of one feature from another instance that has seen as many values."""
        self._counts = other._counts.copy()
        for name in ("sums", "_kept", "_found"):
            getattr(self, name)[place] = getattr(other, name)[theirs]


IN_BLOCK, WORTH, WORTHS, BLOCK = range(4)
"""Columns of the counts: the observations in the block; how many numbers a decaying sum is worth
now, and the sum of that; and the number of finished blocks."""


@compiled
def follow_values(  # noqa: PLR0917  compiled functions take arrays
    kept: Floats, counts: Floats, values: Floats, span: int, found: Floats, sums: Floats
) -> bool:
    """Take the next values into what is kept of the block, shape (features, 7).

    At its end, and during the first one after each span, estimate the sums; return whether. What
    was ``found`` in each of the last blocks has the shape (features, blocks).
    """
    is_first, stays = counts[IN_BLOCK] == 0, 1.0 - 1.0 / span
    for i in range(len(values)):
        if is_first:
            kept[i] = 0.0
            kept[i, FIRST] = values[i] if abs(values[i]) <= LARGEST else 0.0
        off = values[i] - kept[i, FIRST]
        if not abs(off) <= LARGEST:
            off = kept[i, SUM] / max(counts[IN_BLOCK], 1.0)
        kept[i, SUM] += off
        kept[i, SQUARES] += off * off
        kept[i, PRODUCTS] += off * kept[i, DECAYING]
        kept[i, DECAYING_SUM] += kept[i, DECAYING]
        kept[i, WEIGHTED_SUM] += off * counts[WORTH]
        kept[i, DECAYING] = (kept[i, DECAYING] + off) * stays
    counts[WORTHS] += counts[WORTH]
    counts[WORTH] = (counts[WORTH] + 1.0) * stays
    counts[IN_BLOCK] += 1
    n, is_whole = counts[IN_BLOCK], counts[IN_BLOCK] >= SPANS * span
    if not is_whole and (counts[BLOCK] > 0 or n % span != 0):
        return False
    block = int(counts[BLOCK])
    known = min(block + 1, BLOCKS)
    for i in range(len(values)):
        found[i, block % BLOCKS] = of_block(kept[i], counts)
        middle = SKEWED * np.sort(found[i, :known])[(known - 1) // 2]
        # of independent values; the median varies more than a mean
        noise = 4.0 * math.sqrt(span / 2.0 / (n * known)) / (1.0 - 2.0 * counts[WORTHS] / n / n)
        sums[i] = middle if middle > noise else 0.0
    if is_whole:
        counts[BLOCK] += 1
        counts[:BLOCK] = 0.0
    return True


@compiled
def of_block(kept: Floats, counts: Floats) -> float:
    """Return the sum of the autocorrelations of the values of a block; 0 if all are the same.

    The mean is that of the same values, which makes the deviations from it too small. So the
    variance lacks the variance of the mean, and the mean product lacks it as often as a decaying
    sum has numbers. Both are added.
    """
    n = counts[IN_BLOCK]
    mean, worth = kept[SUM] / n, counts[WORTHS] / n
    variance = kept[SQUARES] / n - mean * mean
    if not variance > 1e-12 * kept[SQUARES] / n:
        return 0.0
    products = kept[PRODUCTS] - mean * (kept[DECAYING_SUM] + kept[WEIGHTED_SUM])
    ratio, lost = products / n / variance + mean * mean * worth / variance, worth / n
    rest = 1.0 - 2.0 * lost + 2.0 * ratio / n
    found: float = (ratio * (1.0 - 1.0 / n) + lost) / rest if rest > 0.0 else worth
    return max(found, 0.0)


_FOLLOW = Direct(follow_values)

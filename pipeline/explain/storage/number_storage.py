"""Recent numbers of several features, and their quantiles."""

import random
from collections.abc import Sequence

import numpy as np

from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.explain import kernels
from fluxplain.explain.parameter_checks import check_probability, check_size


class NumberStorage:
    """Numbers of several features, each over about the last ``size / entrance_probability`` ones.

    A new value enters with the entrance probability. It replaces the oldest one, or with ``by_age``
    a random one with probability proportional to its age, in observations since it entered.

    Parameters
    ----------
    size
        Number of values of each feature, at least 1.
    rngs
        Source of random numbers for each feature.
    entrance_probability
        In (0, 1].
    by_age
        Whether to evict by age instead of the oldest value.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 3; line 8, "or sample it based on the age".

    Examples
    --------
    >>> storage = NumberStorage(101, [random.Random(1), random.Random(2)])
    >>> for v in range(1000):
    ...     storage.update(np.array([v, -v], dtype=float))
    >>> storage.quantiles(np.array([0.0, 0.5, 0.95])).tolist()
    [[899.0, 949.0, 994.0], [-999.0, -949.0, -904.0]]
    """

    def __init__(
        self,
        size: int,
        rngs: Sequence[random.Random],
        *,
        entrance_probability: float = 1.0,
        by_age: bool = False,
    ) -> None:
        self.size = check_size(size)
        self.entrance_probability = check_probability(entrance_probability)
        self.by_age = by_age
        self._rngs = list(rngs)
        count = len(self._rngs)
        self._seen = 0
        self._ordered = np.zeros((count, size))
        self._kept = np.zeros((count, size))
        self._entered = np.zeros((count, size), dtype=np.intp)
        self.counts = np.zeros(count, dtype=np.intp)
        self._oldest = np.zeros(count, dtype=np.intp)

    def update(self, values: Floats) -> None:
        """Offer a value of each feature, and take those that enter."""
        self._seen += 1
        slots = self._oldest.copy()
        p = self.entrance_probability
        if p < 1.0:
            slots[[rng.random() >= p for rng in self._rngs]] = -1
        if self.by_age:
            for i in np.flatnonzero((slots >= 0) & (self.counts == self.size)).tolist():
                ages = (self._seen - self._entered[i]).tolist()
                [slots[i]] = self._rngs[i].choices(range(self.size), ages)
        kernels.offer(values, slots, self._ordered, self._kept, self.counts)
        entered = slots >= 0
        self._entered[entered, slots[entered]] = self._seen
        self._oldest[entered] = (self._oldest[entered] + 1) % self.size

    def holding(self, n: int) -> Places:
        """Return the features with at least n stored values."""
        return np.flatnonzero(self.counts >= n)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantiles of levels in [0, 1], interpolated linearly.

        Returns
        -------
        Shape (features, levels); 0 for a feature without values.
        """
        points = np.zeros((len(self.counts), len(levels)))
        kernels.quantiles(self._ordered, self.counts, levels, points)
        return points

    def take_over(self, place: int, other: "NumberStorage", theirs: int) -> None:
        """Take over the values of one feature."""
        self._rngs[place] = other._rngs[theirs]
        for name in ("_ordered", "_kept", "_entered", "counts", "_oldest"):
            getattr(self, name)[place] = getattr(other, name)[theirs]
        self._seen = other._seen

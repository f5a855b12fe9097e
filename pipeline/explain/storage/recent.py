"""Recent values of features: numbers with their quantiles, categories, and ranges."""

import math
import random
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from fluxplain.evaluate import Value
from fluxplain.evaluate.compiled import Direct
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import in_order
from fluxplain.explain import kernels
from fluxplain.explain.parameter_checks import check_share, check_size
from fluxplain.explain.storage.autocorrelation import Autocorrelations

_OFFER, _RANGES = Direct(kernels.offer), Direct(kernels.quantile_ranges)


class NumberStorage:
    """Numbers of several features, each over about the last ``size / entrance_probability`` ones.

    A new value enters with the entrance probability. It replaces the oldest one, or with ``by_age``
    a random one with probability proportional to its age, in observations since it entered.
    ``rngs`` has a source of random numbers for each feature.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 3; line 8, "or sample it based on the age".

    Examples
    --------
    >>> storage = NumberStorage(101, [random.Random(1), random.Random(2)])
    >>> for v in range(1000):
    ...     storage.update(np.array([v, -v], dtype=float))
    >>> storage.quantiles(np.array([0.0, 0.5, 0.95])).round(1).tolist()
    [[899.0, 949.0, 994.6], [-999.0, -949.0, -903.4]]
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
        self.entrance_probability = check_share("entrance_probability", entrance_probability)
        self.by_age = by_age
        self._rngs = list(rngs)
        count = len(self._rngs)
        self._seen = 0
        self._ordered = np.zeros((count, size))
        self._kept = np.zeros((count, size))
        self._entered = np.zeros((count, size), dtype=np.intp)
        self.counts = np.zeros(count, dtype=np.intp)
        self._oldest = np.zeros(count, dtype=np.intp)
        self._extremes = np.repeat([[math.inf, -math.inf]], count, axis=0)
        self._window = round(size / entrance_probability)
        self._autocorrelations = Autocorrelations(count, self._window)

    def update(self, values: Floats) -> None:
        """Offer a value of each feature, and take those that enter."""
        self._seen += 1
        is_oldest = self.entrance_probability == 1.0 and not self.by_age
        slots = self._oldest if is_oldest else self._drawn_slots()
        _OFFER.call(
            np.ascontiguousarray(values, np.float64),
            slots,
            self._seen,
            self._ordered,
            self._kept,
            self._entered,
            self.counts,
            self._oldest,
            self._extremes,
        )
        self._autocorrelations.update(values)

    def _drawn_slots(self) -> Places:
        """Return where each feature's value goes, -1 for one that does not enter."""
        slots, p = self._oldest.copy(), self.entrance_probability
        if p < 1.0:
            slots[[rng.random() >= p for rng in self._rngs]] = -1
        if self.by_age:
            for i in np.flatnonzero((slots >= 0) & (self.counts == self.size)).tolist():
                ages = (self._seen - self._entered[i]).tolist()
                [slots[i]] = self._rngs[i].choices(range(self.size), ages)
        return slots

    def quantiles(self, levels: Floats) -> Floats:
        """Return the quantiles of levels in [0, 1], interpolated linearly.

        Their shape is (features, levels); they are 0 for a feature without values.
        """
        points = np.zeros((len(self.counts), len(levels)))
        kernels.quantiles(self._ordered, self.counts, levels, points)
        return points

    def quantile_ranges(self, low: float, high: float, size: int) -> Floats:
        """Return equidistant points from one quantile to another, shape (features, size).

        Where values resemble the ones before, those of a short time have a smaller range than those
        of a long one. The range is widened by the ratio of their standard deviations, at most 2,
        and not beyond any value seen.
        """
        points, known = np.zeros((len(self.counts), size)), self._autocorrelations
        _RANGES.call(
            self._ordered,
            self.counts,
            float(low),
            float(high),
            known.sums,
            known.span,
            self._window,
            self._extremes,
            points,
        )
        return points

    @property
    def extremes(self) -> Floats:
        """The smallest and the largest value of each feature, shape (features, 2), of all seen."""
        return self._extremes

    def take_over(self, place: int, other: "NumberStorage", theirs: int) -> None:
        """Take over the values of one feature."""
        self._rngs[place] = other._rngs[theirs]
        for name in ("_ordered", "_kept", "_entered", "counts", "_oldest", "_extremes"):
            getattr(self, name)[place] = getattr(other, name)[theirs]
        self._autocorrelations.take_over(place, other._autocorrelations, theirs)
        self._seen = other._seen


class CategoryStorage:
    """Categories of one feature over about the last ``size / entrance_probability`` observations.

    A new value enters with the entrance probability, and evicts another one as in
    :class:`NumberStorage`.

    Examples
    --------
    >>> storage = CategoryStorage(2, random.Random(1))
    >>> for v in ("b", "a", "c", "a"):
    ...     storage.update(v)
    >>> storage.categories()
    ['a', 'c']
    """

    def __init__(
        self,
        size: int,
        rng: random.Random,
        entrance_probability: float = 1.0,
        *,
        by_age: bool = False,
    ) -> None:
        self.size = check_size(size)
        self.entrance_probability = check_share("entrance_probability", entrance_probability)
        self.by_age = by_age
        self._rng = rng
        self._seen = 0
        self._kept: deque[tuple[int, Value]] = deque()  # (time of entrance, value)
        self._counts: Counter[Value] = Counter()
        self._sorted: list[Value] | None = []  # None after a change

    def __len__(self) -> int:
        return len(self._kept)

    def categories(self) -> list[Value]:
        """Return the distinct categories now stored, sorted the same in every process.

        It is the same list until there are others.
        """
        if self._sorted is None:
            self._sorted = in_order(self._counts)
        return self._sorted

    def update(self, value: Value) -> None:
        """Offer a value to the storage."""
        self._seen += 1
        if self.entrance_probability < 1.0 and self._rng.random() >= self.entrance_probability:
            return
        if len(self._kept) == self.size:
            self._evict()
        self._kept.append((self._seen, value))
        if value not in self._counts:
            self._sorted = None
        self._counts[value] += 1

    def _evict(self) -> None:
        place = 0
        if self.by_age:
            ages = [self._seen - entered for entered, _ in self._kept]
            [place] = self._rng.choices(range(len(ages)), ages)
        _, value = self._kept[place]
        del self._kept[place]
        self._counts[value] -= 1
        if not self._counts[value]:
            del self._counts[value]
            self._sorted = None


class RollingExtremes:
    """The smallest and the largest of the last ``size`` values of one feature.

    A value that is older and smaller than another can never be the largest again, so only a falling
    sequence is kept, and a rising one for the smallest: in the worst case ``size`` values each. An
    update takes constant time on average.

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 2.

    Examples
    --------
    >>> extremes = RollingExtremes(3)
    >>> for value in (9.0, 5.0, 1.0, 4.0, 2.0):
    ...     extremes.update(value)
    >>> extremes.low, extremes.high
    (1.0, 4.0)
    """

    def __init__(self, size: int) -> None:
        self.size = check_size(size)
        self._seen = 0
        self._falling: deque[tuple[int, float]] = deque()  # (time, value)
        self._rising: deque[tuple[int, float]] = deque()

    def __len__(self) -> int:
        """Return the number of values in the window, including those that are not kept."""
        return min(self._seen, self.size)

    @property
    def low(self) -> float:
        """The smallest value in the window; ``ValueError`` if there is none."""
        return self._first(self._rising)

    @property
    def high(self) -> float:
        """The largest value in the window; ``ValueError`` if there is none."""
        return self._first(self._falling)

    def update(self, value: float) -> None:
        """Take a value into the window."""
        while self._falling and self._falling[-1][1] <= value:
            self._falling.pop()
        while self._rising and self._rising[-1][1] >= value:
            self._rising.pop()
        for queue in (self._falling, self._rising):
            queue.append((self._seen, value))
            if queue[0][0] <= self._seen - self.size:
                queue.popleft()
        self._seen += 1

    def _first(self, queue: deque[tuple[int, float]]) -> float:
        if not queue:
            raise ValueError("no value is stored yet")
        return queue[0][1]

"""Recent values of single features, and their quantiles or categories."""

import bisect
import random
from collections import Counter, deque

import numpy as np

from pipeline.evaluate import Value
from pipeline.evaluate.compiled import plain
from pipeline.evaluate.inputs import Floats
from pipeline.explain import kernels
from pipeline.explain.checks import check_probability, check_size
from pipeline.explain.kernels import Flags, Places

_quantile = plain(kernels.quantile)


class _RecentValues:
    """Values of one feature; a new one enters by chance and then replaces the oldest."""

    def __init__(self, size: int, rng: random.Random, entrance_probability: float = 1.0) -> None:
        self.size = check_size(size)
        self.entrance_probability = check_probability(entrance_probability)
        self._rng = rng
        self._by_age: deque[Value] = deque()

    def __len__(self) -> int:
        return len(self._by_age)

    def update(self, value: Value) -> None:
        """Offer a value to the storage."""
        if self.entrance_probability < 1.0 and self._rng.random() >= self.entrance_probability:
            return
        if len(self._by_age) == self.size:
            self._dropped(self._leave())
        self._by_age.append(value)
        self._added(value)

    def _leave(self) -> Value:
        return self._by_age.popleft()

    def _added(self, value: Value) -> None:
        raise NotImplementedError

    def _dropped(self, value: Value) -> None:
        raise NotImplementedError


class FrequencyStorage(_RecentValues):
    """Numbers of one feature over about the last ``size / entrance_probability`` observations.

    A new value enters with the entrance probability and then replaces the oldest.

    Parameters
    ----------
    size
        How many values it holds, at least 1.
    rng
        Source of its random numbers.
    entrance_probability
        In (0, 1].

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 3.

    Examples
    --------
    >>> storage = FrequencyStorage(101, random.Random(1))
    >>> for v in range(1000):
    ...     storage.update(float(v))
    >>> storage.quantile(0.0), storage.quantile(0.5), storage.quantile(0.95)
    (899.0, 949.0, 994.0)
    """

    def __init__(self, size: int, rng: random.Random, entrance_probability: float = 1.0) -> None:
        super().__init__(size, rng, entrance_probability)
        self._sorted: list[float] = []

    def quantile(self, q: float) -> float:
        """Return the ``q``-quantile (0 to 1) of the values, interpolated linearly."""
        return _quantile(self._sorted, q)

    def _added(self, value: Value) -> None:
        bisect.insort(self._sorted, float(value))

    def _dropped(self, value: Value) -> None:
        del self._sorted[bisect.bisect_left(self._sorted, float(value))]


class _ByAge(_RecentValues):
    """Any value may go, with a chance in proportion to its age."""

    def __init__(self, size: int, rng: random.Random, entrance_probability: float = 1.0) -> None:
        super().__init__(size, rng, entrance_probability)
        self._seen = 0
        self._entered: deque[int] = deque()

    def update(self, value: Value) -> None:
        """Offer a value to the storage."""
        self._seen += 1
        super().update(value)

    def _leave(self) -> Value:
        ages = [self._seen - entered for entered in self._entered]
        [place] = self._rng.choices(range(len(ages)), ages)
        value = self._by_age[place]
        del self._by_age[place], self._entered[place]
        return value

    def _added(self, value: Value) -> None:
        super()._added(value)
        self._entered.append(self._seen)


class AgeWeightedStorage(_ByAge, FrequencyStorage):
    """The same, but any value may go: with a chance in proportion to its age.

    The age is the number of observations since it entered, so new values hardly go at once and very
    old ones hardly stay.

    References
    ----------
    iPDP, Algorithm 3, line 8: "or sample it based on the age".

    Examples
    --------
    >>> storage = AgeWeightedStorage(101, random.Random(1))
    >>> for v in range(1000):
    ...     storage.update(float(v))
    >>> storage.quantile(0.0) < 899.0, storage.quantile(1.0)
    (True, 999.0)
    """


class FrequencyStorages:
    """The :class:`FrequencyStorage` of several features, whose values come together.

    Parameters
    ----------
    count
        How many features there are.
    size
        How many values of each are held, at least 1.

    Examples
    --------
    >>> storages = FrequencyStorages(2, 101)
    >>> for v in range(1000):
    ...     storages.update(np.array([v, -v], dtype=float), np.array([True, v < 500]))
    >>> storages.grids(3).tolist()
    [[904.0, 949.0, 994.0], [-494.0, -449.0, -404.0]]
    """

    def __init__(self, count: int, size: int) -> None:
        check_size(size)
        self._ordered = np.zeros((count, size))
        self._by_age = np.zeros((count, size))
        self._counts = np.zeros(count, dtype=np.intp)
        self._oldest = np.zeros(count, dtype=np.intp)

    def update(self, values: Floats, enters: Flags) -> None:
        """Offer a value of each feature, and take those that enter."""
        kernels.offer(values, enters, self._ordered, self._by_age, self._counts, self._oldest)

    def holding(self, n: int) -> Places:
        """Return the features of which at least n values are stored."""
        return np.flatnonzero(self._counts >= n)

    def grids(self, size: int) -> Floats:
        """Return the points from the 5 % to the 95 % quantile, shape (features, size)."""
        points = np.zeros((len(self._counts), size))
        kernels.grids(self._ordered, self._counts, points)
        return points


class CategoryStorage(_RecentValues):
    """The categorical twin of :class:`FrequencyStorage`.

    Examples
    --------
    >>> storage = CategoryStorage(2, random.Random(1))
    >>> for v in ("b", "a", "c", "a"):
    ...     storage.update(v)
    >>> storage.categories()
    ['a', 'c']
    """

    def __init__(self, size: int, rng: random.Random, entrance_probability: float = 1.0) -> None:
        super().__init__(size, rng, entrance_probability)
        self._counts: Counter[Value] = Counter()

    def categories(self) -> list[Value]:
        """Return the distinct categories now stored, sorted."""
        return sorted(self._counts, key=category_order)

    def _added(self, value: Value) -> None:
        self._counts[value] += 1

    def _dropped(self, value: Value) -> None:
        self._counts[value] -= 1
        if not self._counts[value]:
            del self._counts[value]


class AgeWeightedCategories(_ByAge, CategoryStorage):
    """The categorical twin of :class:`AgeWeightedStorage`."""


def category_order(value: Value) -> tuple[str, Value]:
    """Return a sort key that orders categories of any kinds, the same in every process."""
    return (type(value).__name__, value)

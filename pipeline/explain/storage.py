"""What replacement values and grids are drawn from: bounded samples of the past.

Every storage takes its random numbers from the generator it was given, keeps at most ``size``
entries, and stores copies.
"""

import bisect
import math
import random
from collections import Counter, deque
from typing import Protocol

import numpy as np

from pipeline.evaluate import Observation, Value
from pipeline.evaluate.compiled import plain
from pipeline.evaluate.inputs import Floats
from pipeline.explain import kernels
from pipeline.explain.kernels import Flags, Places

_quantile = plain(kernels.quantile)


class Reservoir(Protocol):
    """A bounded sample of past observations.

    Attributes
    ----------
    rows
        The observations.
    numbers
        Those that were offered as numbers too, NaN for the others; shape (size, features).
    """

    rows: list[dict[str, Value]]
    numbers: Floats | None

    def update(self, x: Observation, numbers: Floats | None = None) -> None:
        """Offer the observation to the sample, and with it the values of some features."""
        ...


class _Observations:
    """What is in a sample, in both forms."""

    def __init__(self, size: int) -> None:
        self.size = check_size(size)
        self.rows: list[dict[str, Value]] = []
        self.numbers: Floats | None = None

    def _keep(self, slot: int, x: Observation, numbers: Floats | None) -> None:
        if slot < len(self.rows):
            self.rows[slot] = dict(x)
        else:
            self.rows.append(dict(x))
        if self.numbers is not None:
            self.numbers[slot] = math.nan if numbers is None else numbers
        elif numbers is not None:
            self.numbers = np.full((self.size, len(numbers)), math.nan)
            self.numbers[slot] = numbers


class UniformReservoir(_Observations):
    """Reservoir in which every past observation is equally likely.

    Parameters
    ----------
    size
        How many observations it holds, at least 1.
    rng
        Source of its random numbers.

    References
    ----------
    Vitter (1985), Random sampling with a reservoir, Algorithm R; iPFI, Section 3.2, uniform
    sampling.

    Examples
    --------
    >>> reservoir = UniformReservoir(2, random.Random(1))
    >>> for a in range(100):
    ...     reservoir.update({"a": a})
    >>> len(reservoir.rows)
    2
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        super().__init__(size)
        self.seen = 0
        self._rng = rng

    def update(self, x: Observation, numbers: Floats | None = None) -> None:
        """Keep the observation with probability size / seen."""
        self.seen += 1
        n = len(self.rows)
        slot = n if n < self.size else self._rng.randrange(self.seen)
        if slot < self.size:
            self._keep(slot, x, numbers)


class GeometricReservoir(_Observations):
    """Reservoir that favours recent observations: every new one replaces a random old one.

    With L = size the observation of age a (1 for the newest) is drawn with probability
    ``(1/L)(1 - 1/L)^(a-1)``, so the mean age is L.

    References
    ----------
    iPFI, Section 3.2, geometric sampling; iSAGE (Muschalik et al. 2023), Algorithm 2.

    Examples
    --------
    >>> reservoir = GeometricReservoir(2, random.Random(1))
    >>> for a in range(100):
    ...     reservoir.update({"a": a})
    >>> {"a": 99} in reservoir.rows
    True
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        super().__init__(size)
        self._rng = rng

    def update(self, x: Observation, numbers: Floats | None = None) -> None:
        """Keep the observation, in place of a uniformly chosen one once the reservoir is full."""
        n = len(self.rows)
        self._keep(n if n < self.size else self._rng.randrange(self.size), x, numbers)


RESERVOIRS: dict[str, type[UniformReservoir] | type[GeometricReservoir]] = {
    "uniform": UniformReservoir,
    "geometric": GeometricReservoir,
}


def make_reservoir(sampler: str, size: int, rng: random.Random) -> Reservoir:
    """Return an empty reservoir of that kind.

    Raises
    ------
    ValueError
        If ``sampler`` is not ``"uniform"`` or ``"geometric"``, or ``size`` is below 1.
    """
    try:
        kind = RESERVOIRS[sampler]
    except KeyError:
        raise ValueError(
            f"unknown sampler {sampler!r}: use one of {', '.join(RESERVOIRS)}"
        ) from None
    return kind(size, rng)


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
            self._dropped(self._by_age.popleft())
        self._by_age.append(value)
        self._added(value)

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


def category_order(value: Value) -> tuple[str, Value]:
    """Return a sort key that orders categories of any kinds, the same in every process."""
    return (type(value).__name__, value)


def check_probability(entrance_probability: float) -> float:
    """Return ``entrance_probability``, or raise ``ValueError`` if it is not in (0, 1]."""
    if not 0.0 < entrance_probability <= 1.0:
        raise ValueError(
            f"entrance_probability is {entrance_probability!r}, but must lie in (0, 1]"
        )
    return entrance_probability


def check_size(size: int) -> int:
    """Return ``size``, or raise ``ValueError`` if it is no integer of at least 1."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"size is {size!r}, but must be an integer of at least 1")
    return size

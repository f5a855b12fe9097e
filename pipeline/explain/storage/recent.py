"""Recent categories of single features."""

import random
from collections import Counter, deque

from fluxplain.evaluate import Value
from fluxplain.explain.parameter_checks import check_probability, check_size


class _RecentValues:
    """Values of one feature; a new one enters with some probability and replaces the oldest."""

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


class _ByAge(_RecentValues):
    """Evicts a random value, with probability proportional to its age."""

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


class CategoryStorage(_RecentValues):
    """Categories of one feature over about the last ``size / entrance_probability`` observations.

    A new value enters with the entrance probability and then replaces the oldest.

    Parameters
    ----------
    size
        Number of values, at least 1.
    rng
        Source of random numbers.
    entrance_probability
        In (0, 1].

    References
    ----------
    iPDP (Muschalik et al. 2023), Algorithm 3.

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
    """The same, but evicts a random value with probability proportional to its age."""


def category_order(value: Value) -> tuple[str, Value]:
    """Return a sort key that orders categories of any kinds, the same in every process."""
    return (type(value).__name__, value)

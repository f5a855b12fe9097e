"""Reservoirs: random samples of past observations."""

import random
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from fluxplain.evaluate import Encoding, Observed, Value
from fluxplain.evaluate.encoding import Floats, columns_of
from fluxplain.explain.parameter_checks import check_size


class Reservoir(Protocol):
    """A bounded sample of past observations: at most ``size`` ``rows``."""

    size: int
    rows: list[dict[str, Value]]

    def update(self, observed: Observed) -> None:
        """Offer the observation to the sample."""
        ...

    def numbers(self, encoding: Encoding, features: tuple[str, ...]) -> Floats:
        """Return the observations in an encoding, shape (observations, features)."""
        ...


class _Observations:
    """The sampled observations, with their rows in the last used encoding."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self.size = check_size(size)
        self._rng = rng
        self.rows: list[dict[str, Value]] = []
        self._features: tuple[str, ...] = ()
        self._numbers: Floats = np.empty((0, 0))
        self._mark: object = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the observations, which are encoded again when needed."""
        return {**vars(self), "_numbers": np.empty((0, 0)), "_mark": None}

    def numbers(self, encoding: Encoding, features: tuple[str, ...]) -> Floats:
        """Return the observations in an encoding; see :class:`Reservoir`."""
        if encoding.mark is not self._mark or features != self._features:
            for row in self.rows:
                encoding.learn({feature: row[feature] for feature in features})
            self._features, self._numbers = features, np.empty((self.size, len(features)))
            for slot, row in enumerate(self.rows):
                self._numbers[slot] = [encoding.number(f, row[f]) for f in features]
            self._mark = encoding.mark
        return self._numbers[: len(self.rows)]

    def _keep(self, slot: int, observed: Observed) -> None:
        x = observed.x
        if slot < len(self.rows):
            self.rows[slot] = dict(x)
        else:
            self.rows.append(dict(x))
        if observed.encoding.mark is not self._mark:
            self._mark = None
        else:
            columns = columns_of(observed.features, self._features)
            self._numbers[slot] = observed.numbers[columns]


class UniformReservoir(_Observations):
    """Reservoir in which every past observation is equally likely.

    Parameters
    ----------
    size
        Number of observations, at least 1.
    rng
        Source of random numbers.

    References
    ----------
    Vitter (1985), Random sampling with a reservoir, Algorithm R; iPFI, Section 3.2, uniform
    sampling.

    Examples
    --------
    >>> reservoir = UniformReservoir(2, random.Random(1))
    >>> encoding = Encoding()
    >>> for a in range(100):
    ...     reservoir.update(encoding.observe({"a": a}))
    >>> len(reservoir.rows)
    2
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        super().__init__(size, rng)
        self.seen = 0

    def update(self, observed: Observed) -> None:
        """Keep the observation with probability size / seen."""
        self.seen += 1
        n = len(self.rows)
        slot = n if n < self.size else self._rng.randrange(self.seen)
        if slot < self.size:
            self._keep(slot, observed)


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
    >>> encoding = Encoding()
    >>> for a in range(100):
    ...     reservoir.update(encoding.observe({"a": a}))
    >>> {"a": 99} in reservoir.rows
    True
    """

    def update(self, observed: Observed) -> None:
        """Keep the observation; once the reservoir is full, it replaces a uniformly chosen one."""
        n = len(self.rows)
        self._keep(n if n < self.size else self._rng.randrange(self.size), observed)


class SlidingWindow(_Observations):
    """The last observations.

    References
    ----------
    iSAGE, Section 4.2: the window of the baseline sliding-window SAGE.

    Examples
    --------
    >>> window = SlidingWindow(2, random.Random(1))
    >>> encoding = Encoding()
    >>> for a in range(100):
    ...     window.update(encoding.observe({"a": a}))
    >>> sorted(row["a"] for row in window.rows)
    [98, 99]
    """

    def __init__(self, size: int, rng: random.Random) -> None:
        super().__init__(size, rng)
        self._next = 0

    def update(self, observed: Observed) -> None:
        """Keep the observation; once the window is full, it replaces the oldest one."""
        self._keep(self._next, observed)
        self._next = (self._next + 1) % self.size


RESERVOIRS: dict[str, Callable[[int, random.Random], Reservoir]] = {
    "uniform": UniformReservoir,
    "geometric": GeometricReservoir,
    "window": SlidingWindow,
}


def make_reservoir(sampler: str, size: int, rng: random.Random) -> Reservoir:
    """Return an empty reservoir of that kind.

    Raises
    ------
    ValueError
        If ``sampler`` is not in :data:`RESERVOIRS`, or ``size`` is below 1.
    """
    try:
        kind = RESERVOIRS[sampler]
    except KeyError:
        raise ValueError(
            f"unknown sampler {sampler!r}: use one of {', '.join(RESERVOIRS)}"
        ) from None
    return kind(size, rng)

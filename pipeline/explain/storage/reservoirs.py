"""Reservoirs: random samples of past observations."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from fluxplain.evaluate import Encoding, Observed, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.parameter_checks import check_size
from fluxplain.explain.randoms import below


class Reservoir:
    """A sample of at most ``size`` past observations, ``rows``, also in the last used encoding."""

    def __init__(self, size: int, rng: random.Random) -> None:
        self.size = check_size(size)
        self.seen = 0
        self.rows: list[dict[str, Value]] = []
        self._rng = rng
        self._features: tuple[str, ...] = ()
        self._numbers: Floats = np.empty((0, 0))
        self._mark: object = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the observations, which are encoded again when needed."""
        return {**vars(self), "_numbers": np.empty((0, 0)), "_mark": None}

    def update(self, observed: Observed) -> None:
        """Offer the observation to the sample."""
        self.seen += 1
        slot = self.seen - 1 if self.seen <= self.size else self._slot()
        if slot < self.size:
            self._keep(slot, observed)

    def _slot(self) -> int:
        """Return the slot of a new observation in a full reservoir; ``size`` or more for none."""
        raise NotImplementedError

    def numbers(self, encoding: Encoding, features: tuple[str, ...]) -> Floats:
        """Return the observations in an encoding, shape (observations, features)."""
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
            self._numbers[slot] = observed.numbers_of(self._features)


class UniformReservoir(Reservoir):
    """Every past observation is equally likely.

    References
    ----------
    Vitter (1985), Random sampling with a reservoir, Algorithm R; iPFI, Section 3.2, uniform
    sampling.
    """

    def _slot(self) -> int:
        return below(self.seen, self._rng)


class GeometricReservoir(Reservoir):
    """Favours recent observations: every new one replaces a random old one.

    With L = size the observation of age a (1 for the newest) is drawn with probability
    ``(1/L)(1 - 1/L)^(a-1)``, so the mean age is L.

    References
    ----------
    iPFI, Section 3.2, geometric sampling; iSAGE (Muschalik et al. 2023), Algorithm 2.
    """

    def _slot(self) -> int:
        return below(self.size, self._rng)


class SlidingWindow(Reservoir):
    """The last observations (iSAGE, Section 4.2: the window of sliding-window SAGE)."""

    def _slot(self) -> int:
        return (self.seen - 1) % self.size


RESERVOIRS: dict[str, Callable[[int, random.Random], Reservoir]] = {
    "uniform": UniformReservoir,
    "geometric": GeometricReservoir,
    "window": SlidingWindow,
}


def make_reservoir(sampler: str, size: int, rng: random.Random) -> Reservoir:
    """Return an empty reservoir; raise ``ValueError`` if its kind is not in :data:`RESERVOIRS`."""
    try:
        kind = RESERVOIRS[sampler]
    except KeyError:
        raise ValueError(
            f"unknown sampler {sampler!r}: use one of {', '.join(RESERVOIRS)}"
        ) from None
    return kind(size, rng)

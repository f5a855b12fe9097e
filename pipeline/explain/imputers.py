"""How iPFI and iSAGE remove features: the values that replace them, and their base."""

import random
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from fluxplain.evaluate import Encoding, Observation, Observed, Value
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.explain.method import Given, ImportanceMethod
from fluxplain.explain.parameter_checks import ALL, check_size, check_warm_up
from fluxplain.explain.players import Players
from fluxplain.explain.randoms import below
from fluxplain.explain.storage import (
    Delay,
    GeometricReservoir,
    Reservoir,
    entering,
    make_reservoir,
)

if TYPE_CHECKING:
    from fluxplain.explain.storage import TreeStorage

InnerSamples = int | Literal["all"]
"""Draws per observation; ``"all"`` takes each stored observation once."""

IMPUTERS = ("interventional", "product", "observational")
"""Sources of the removed features' values: one past observation for all; a separate one for each;
or draws conditional on the remaining features."""


class Replacement(ImportanceMethod):
    """A method that replaces the values of features by those of stored observations.

    ``asked`` names the players to ask about, by default all; the other parameters are those of
    :class:`~fluxplain.explain.importance.ImportanceExplainer`.
    """

    def __init__(
        self,
        players: Players,
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        warm_up: int | None,
        inner_samples: InnerSamples,
        rng: random.Random,
        asked: Collection[str] | None = None,
    ) -> None:
        self.players = players
        self.reservoir = reservoir
        self.delay = Delay(players.features, reservoir.size)
        self.imputer = _check_imputer(imputer, inner_samples)
        self.warm_up = check_warm_up(warm_up, reservoir.size)
        self.inner_samples = inner_samples
        self.rng = rng
        self.conditional: ObservationalImputer | None = None
        if imputer == "observational":
            if not isinstance(reservoir, GeometricReservoir):  # as the trees' leaves are
                raise ValueError("sampler must be 'geometric' for the imputer 'observational'")
            self.conditional = ObservationalImputer(
                players.features, size=reservoir.size, rng=rng, categorical=categorical
            )
        self.names = players.names if asked is None else players.chosen(asked)
        places = {name: place for place, name in enumerate(players.names)}
        self.asked: Places = np.array([places[name] for name in self.names], np.intp)

    @classmethod
    def configured(
        cls, given: Given, *, reservoir_size: int, sampler: str = "geometric", **settings: Any
    ) -> Self:
        """Return the method with the settings of its table."""
        rng = given.rng_of("")
        return cls(
            given.players,
            reservoir=make_reservoir(sampler, reservoir_size, rng),
            categorical=given.categorical,
            rng=rng,
            asked=given.asked,
            **settings,
        )

    @property
    def reach(self) -> int | None:
        """Twice the size of the reservoir, which is the mean age of its observations."""
        return 2 * self.reservoir.size

    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored observations."""
        self.reservoir.numbers(encoding, self.players.features)

    def stored(self, observed: Observed) -> Floats | None:
        """Return the stored observations, shape (observations, features); None while warming up."""
        stored = self.reservoir.numbers(observed.encoding, self.players.features)
        return None if len(stored) < self.warm_up else stored

    def store(self, observed: Observed) -> None:
        """Keep the observation as a source of replacements, once later ones do not resemble it."""
        for x in entering(self.delay, self.reservoir, observed):
            if self.conditional is not None:
                self.conditional.update(x)

    def take_over(self, before: Sequence[Self]) -> None:
        """Take over the samples of another method; all have drawn the same ones."""
        if before:
            names, asked = self.names, self.asked
            vars(self).update(vars(before[0]))
            self.names, self.asked = names, asked


def mixed(stored: Floats, n: int, rng: random.Random) -> Floats:
    """Return n observations whose features come from separate stored ones.

    ``stored`` has the shape (observations, features), and is not empty.

    References
    ----------
    iSAGE, Section 3.2: replacement as if the features were independent.
    """
    size, features = stored.shape
    places = [[below(size, rng) for _ in range(features)] for _ in range(n)]
    return stored[places, np.arange(features)]


def draws(n: int, inner_samples: InnerSamples, rng: random.Random) -> Places:
    """Return which of n stored observations supply values: drawn with replacement, or all of them.

    All of them give the exact expectation over the reservoir (iPFI, Section 3.1).
    """
    if inner_samples == ALL:
        return np.arange(n)
    m = int(inner_samples)
    return np.fromiter([below(n, rng) for _ in range(m)], np.intp, m)


def encoded(
    encoding: Encoding, features: Sequence[str], rows: Sequence[Mapping[str, Value]]
) -> Floats:
    """Return drawn values as numbers, shape (rows, features)."""
    return np.array([[encoding.number(f, row[f]) for f in features] for row in rows])


class ObservationalImputer:
    """Draws the values of removed features conditionally on the remaining ones.

    Each feature has a tree that predicts it from all others; a leaf holds ``size`` values. Several
    removed features are drawn independently of each other, given the remaining ones. By default,
    features whose first value is text or a boolean are categorical.

    References
    ----------
    iSAGE, Section 3.2.2, Algorithms 3 and 4.
    """

    def __init__(
        self,
        features: Sequence[str],
        *,
        size: int,
        rng: random.Random,
        categorical: Collection[str] | None = None,
    ) -> None:
        self.features = tuple(features)
        self.size = check_size(size)
        self._rng = rng
        self._categorical = None if categorical is None else frozenset(categorical)
        self._trees: dict[str, TreeStorage] = {}

    def update(self, x: Observation) -> None:
        """Learn the observation."""
        if not self._trees:
            from fluxplain.explain.storage import Codes, TreeStorage  # noqa: PLC0415  loads River

            codes = Codes([feature for feature in x if self._is_categorical(feature, x[feature])])
            self._trees = {
                feature: TreeStorage(feature, self.size, self._rng, codes)
                for feature in self.features
            }
        for tree in self._trees.values():
            tree.update(x)

    def _is_categorical(self, feature: str, value: Value) -> bool:
        if self._categorical is None:
            return isinstance(value, bool | str)
        return feature in self._categorical

    def draws(self, x: Observation, hidden: Collection[str], n: int) -> list[dict[str, Value]]:
        """Return ``n`` draws of the hidden features' values, given the others."""
        columns = [self._trees[feature].draws(x, hidden, n) for feature in hidden]
        return [dict(zip(hidden, row, strict=True)) for row in zip(*columns, strict=True)]


def _check_imputer(imputer: str, inner_samples: InnerSamples) -> str:
    """Return ``imputer``, or raise ``ValueError`` if it is unknown or cannot draw ``"all"``."""
    if imputer not in IMPUTERS:
        raise ValueError(f"unknown imputer {imputer!r}: use one of {', '.join(IMPUTERS)}")
    if check_inner_samples(inner_samples) == ALL and imputer != "interventional":
        raise ValueError(
            f"inner_samples is {ALL!r}, but must be a number for the imputer {imputer!r}: only "
            f"'interventional' draws whole stored observations"
        )
    return imputer


def check_inner_samples(inner_samples: InnerSamples) -> InnerSamples:
    """Return ``inner_samples``, or raise ``ValueError`` if it is neither positive nor ``"all"``."""
    if inner_samples == ALL or (isinstance(inner_samples, int) and inner_samples >= 1):
        return inner_samples
    raise ValueError(f"inner_samples is {inner_samples!r}, but must be at least 1, or {ALL!r}")

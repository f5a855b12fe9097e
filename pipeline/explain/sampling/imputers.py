"""How features are removed from an observation: what stands in their place."""

import random
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np

from pipeline.evaluate import Observation, Value
from pipeline.evaluate.inputs import Floats
from pipeline.explain.checks import ALL, check_size
from pipeline.explain.importance import InnerSamples, check_inner_samples
from pipeline.explain.storage import Codes, GeometricReservoir, Reservoir, TreeStorage

IMPUTERS = ("interventional", "product", "observational")
"""Values of one past observation for all removed features; of a separate one for each; or such
that go with the features that remain."""


class Sample(Protocol):
    """Observations that supply replacement values; see :class:`Reservoir`."""

    @property
    def rows(self) -> Sequence[Observation]:
        """The observations."""
        ...

    @property
    def numbers(self) -> Floats | None:
        """Those that are numbers."""
        ...


class Mixture:
    """Observations put together from the features of separate ones: their product distribution.

    Parameters
    ----------
    features
        Those that are replaced.
    reservoir
        Where their values come from; not empty.
    n
        How many observations to put together.
    rng
        Source of the random numbers.

    References
    ----------
    iSAGE, Section 3.2: replacement as if the features were independent.

    Examples
    --------
    >>> from pipeline.explain.storage import GeometricReservoir
    >>> reservoir = GeometricReservoir(2, random.Random(1))
    >>> reservoir.update({"a": 1, "b": 1})
    >>> reservoir.update({"a": 2, "b": 2})
    >>> mixture = Mixture(("a", "b"), reservoir, 20, random.Random(1))
    >>> {"a": 1, "b": 2} in mixture.rows
    True
    """

    def __init__(
        self, features: tuple[str, ...], reservoir: Reservoir, n: int, rng: random.Random
    ) -> None:
        size = len(reservoir.rows)
        places = [[rng.randrange(size) for _ in features] for _ in range(n)]
        self.rows: list[dict[str, Value]] = [
            {f: reservoir.rows[place][f] for f, place in zip(features, each, strict=True)}
            for each in places
        ]
        self.numbers: Floats | None = None
        if reservoir.numbers is not None:
            self.numbers = reservoir.numbers[places, np.arange(len(features))]


class ObservationalImputer:
    """Draws the values of removed features so that they go with those that remain.

    Each feature has a tree that predicts it from all others. Several removed features are drawn
    independently of each other, given those that remain.

    Parameters
    ----------
    features
        The features that may be removed.
    size
        How many values a leaf of a tree holds, at least 1.
    rng
        Source of its random numbers.
    categorical
        Which features are categorical. By default those whose first value is text or a truth
        value.

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
        """Return ``n`` times the values of the hidden features, given the others.

        Parameters
        ----------
        x
            The observation.
        hidden
            Some of :attr:`features`.
        n
            How many draws.
        """
        columns = [self._trees[feature].draws(x, hidden, n) for feature in hidden]
        return [dict(zip(hidden, row, strict=True)) for row in zip(*columns, strict=True)]


def conditional(
    imputer: str,
    features: tuple[str, ...],
    reservoir: Reservoir,
    rng: random.Random,
    categorical: Collection[str] | None,
) -> ObservationalImputer | None:
    """Return what draws conditionally, with leaves as large as the reservoir, if anything does.

    Raises
    ------
    ValueError
        If it does, and the reservoir is of another kind than the leaves.
    """
    if imputer != "observational":
        return None
    if not isinstance(reservoir, GeometricReservoir):
        raise ValueError("sampler must be 'geometric' for the imputer 'observational'")
    return ObservationalImputer(features, size=reservoir.size, rng=rng, categorical=categorical)


def check_imputer(imputer: str, inner_samples: InnerSamples) -> str:
    """Return ``imputer``, or raise ``ValueError`` if it is unknown or cannot draw that many."""
    if imputer not in IMPUTERS:
        raise ValueError(f"unknown imputer {imputer!r}: use one of {', '.join(IMPUTERS)}")
    if check_inner_samples(inner_samples) == ALL and imputer != "interventional":
        raise ValueError(
            f"inner_samples is {ALL!r}, but must be a number for the imputer {imputer!r}: only "
            f"'interventional' draws whole stored observations"
        )
    return imputer

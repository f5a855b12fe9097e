"""What iPFI and iSAGE have in common: one smoothed number a feature."""

import random
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeline.evaluate.inputs import Floats
from pipeline.explain.players import Features, Players
from pipeline.explain.questions import Observed
from pipeline.explain.smoothing import ExponentialMeans, confidence_bound

ALL: Literal["all"] = "all"

InnerSamples = int | Literal["all"]
"""Draws for each observation; ``"all"`` is each stored observation once."""


class ImportanceExplainer:
    """Smoothed increments, one sequence for each feature or group of features."""

    def __init__(self, features: Features, *, alpha: float, debias: bool) -> None:
        self.players = Players(features)
        self.alpha = alpha
        self._means = ExponentialMeans(len(self.players), alpha, debias=debias)
        self._increments = np.zeros(len(self.players))

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance, in units of the loss; 0 before the first explanation."""
        return dict(zip(self.players.names, self._means.values.tolist(), strict=True))

    @property
    def variances(self) -> dict[str, float]:
        """Feature → variance of its increments."""
        return self._by_feature(self._means.variances.tolist())

    @property
    def std_errors(self) -> dict[str, float]:
        """Feature → standard error of its importance; infinite before the first explanation."""
        return self._by_feature(self._means.std_errors)

    @property
    def increments(self) -> dict[str, float]:
        """Feature → what the last explained observation added; empty before the first."""
        return self._by_feature(self._increments.tolist()) if self._means.n else {}

    def confidence(self, delta: float) -> dict[str, float]:
        """Return feature → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {f: confidence_bound(error, delta) for f, error in self.std_errors.items()}

    def _by_feature(self, numbers: list[float]) -> dict[str, float]:
        return dict(zip(self.players.names, numbers, strict=True))

    def _smooth(self, increments: Floats) -> None:
        """Take the increments of one observation, in the order of the features."""
        self._increments[:] = increments
        self._means.update(increments)


def check_observation(observed: Observed, features: tuple[str, ...]) -> None:
    """Raise ``ValueError`` naming the first explained feature that the observation lacks."""
    if observed.features != features:
        for feature in features:
            if feature not in observed.x:
                raise ValueError(f"the observation lacks the feature {feature!r}")


def check_inner_samples(inner_samples: InnerSamples) -> InnerSamples:
    """Return ``inner_samples``, or raise ``ValueError`` if it is neither positive nor all."""
    if inner_samples == ALL or (isinstance(inner_samples, int) and inner_samples >= 1):
        return inner_samples
    raise ValueError(f"inner_samples is {inner_samples!r}, but must be at least 1, or {ALL!r}")


def draws(n: int, inner_samples: InnerSamples, rng: random.Random) -> Sequence[int]:
    """Return which of n stored observations supply replacements: chosen with replacement, or all.

    Each observation of the reservoir once gives the exact expectation over it, without chance.

    References
    ----------
    iPFI, Section 3.1: the expected PFI averages over what it is sampled from.
    """
    if inner_samples == ALL:
        return range(n)
    return [rng.randrange(n) for _ in range(int(inner_samples))]


def check_warm_up(warm_up: int | None, reservoir_size: int) -> int:
    """Return how many stored observations an explanation needs; by default a full reservoir.

    Raises
    ------
    ValueError
        If ``warm_up`` is not in [1, reservoir_size].
    """
    if warm_up is None:
        return reservoir_size
    if not 1 <= warm_up <= reservoir_size:
        raise ValueError(f"warm_up is {warm_up!r}, but must lie in [1, {reservoir_size}]")
    return warm_up

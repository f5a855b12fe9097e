"""What iPFI and iSAGE have in common: one smoothed number a feature."""

import random
from collections.abc import Sequence
from typing import Literal

import numpy as np

from pipeline.evaluate.inputs import Floats
from pipeline.explain.checks import ALL
from pipeline.explain.players import Features, Players
from pipeline.explain.questions import Observed
from pipeline.explain.smoothing import ExponentialMeans, confidence_bound

InnerSamples = int | Literal["all"]
"""Draws for each observation; ``"all"`` is each stored observation once."""

Alpha = float | Sequence[float]
"""One smoothing rate, or several."""


class Estimates:
    """Importances that are smoothed with one rate, each feature's or group's by its name."""

    def __init__(self, names: tuple[str, ...], means: ExponentialMeans) -> None:
        self._names = names
        self._means = means

    @property
    def alpha(self) -> float:
        """The smoothing rate."""
        return self._means.alpha

    @property
    def values(self) -> dict[str, float]:
        """Feature → current importance, in units of the loss; 0 before the first explanation."""
        return dict(zip(self._names, self._means.values.tolist(), strict=True))

    @property
    def variances(self) -> dict[str, float]:
        """Feature → variance of its increments."""
        return self._by_name(self._means.variances.tolist())

    @property
    def std_errors(self) -> dict[str, float]:
        """Feature → standard error of its importance; infinite before the first explanation."""
        return self._by_name(self._means.std_errors)

    def confidence(self, delta: float) -> dict[str, float]:
        """Return feature → ε with ``P(|estimate - expectation| > ε) ≤ delta`` (iPFI, Eq. 6).

        Raises
        ------
        ValueError
            If ``delta`` is not in (0, 1).
        """
        return {f: confidence_bound(error, delta) for f, error in self.std_errors.items()}

    def _by_name(self, numbers: list[float]) -> dict[str, float]:
        return dict(zip(self._names, numbers, strict=True))


class ImportanceExplainer(Estimates):
    """Smoothed increments, one sequence for each feature or group of features.

    Its own estimates are those with the first smoothing rate.
    """

    def __init__(self, features: Features, *, alpha: Alpha, debias: bool) -> None:
        self.players = Players(features)
        names = self.players.names
        means = [ExponentialMeans(len(names), rate, debias=debias) for rate in _rates(alpha)]
        super().__init__(names, means[0])
        self._others = [Estimates(names, each) for each in means[1:]]
        self._increments = np.zeros(len(names))

    @property
    def increments(self) -> dict[str, float]:
        """Feature → what the last explained observation added; empty before the first."""
        return self._by_name(self._increments.tolist()) if self._means.n else {}

    def at(self, alpha: float) -> Estimates:
        """Return the estimates with one of the smoothing rates.

        Raises
        ------
        ValueError
            If it is none of them.
        """
        for estimates in (self, *self._others):
            if estimates.alpha == alpha:
                return estimates
        rates = ", ".join(str(each.alpha) for each in (self, *self._others))
        raise ValueError(f"alpha is {alpha!r}, but must be one of {rates}")

    def _smooth(self, increments: Floats) -> None:
        """Take the increments of one observation, in the order of the players."""
        self._increments[:] = increments
        self._means.update(increments)
        self._smooth_others()

    def _smooth_others(self) -> None:
        """Smooth the last increments with the further rates."""
        for estimates in self._others:
            estimates._means.update(self._increments)


def _rates(alpha: Alpha) -> Sequence[float]:
    rates = alpha if isinstance(alpha, Sequence) else [alpha]
    if not rates or len(set(rates)) < len(rates):
        raise ValueError(f"alpha is {alpha!r}, but must be one number, or several different ones")
    return rates


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

"""What chance hardly ever exceeds, the tolerances of the theory's tests; and smoothing weights."""

import math
import statistics
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from fluxplain.evaluate.encoding import Floats

FALSE_ALARM = 1e-6
"""Probability that a test fails although the code is right, for another seed."""


def normal_quantile(checks: int) -> float:
    """Return how many standard errors none of several normal deviations exceeds.

    >>> round(normal_quantile(1), 3)
    4.892
    """
    return NormalDist().inv_cdf(1.0 - FALSE_ALARM / (2.0 * checks))


def student_quantile(freedom: int, checks: int) -> float:
    """Return the same for standard errors that are estimated (Abramowitz, Stegun, 26.7.5).

    >>> round(student_quantile(60, 1), 1)
    5.4
    """
    z = normal_quantile(checks)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


def hoeffding(n: int, checks: int) -> float:
    """Return what no mean of n independent numbers in [0, 1] deviates from its expectation by.

    >>> round(hoeffding(10_000, 1), 4)
    0.0269
    """
    return math.sqrt(math.log(2.0 * checks / FALSE_ALARM) / (2.0 * n))


def chi_squared_quantiles(freedom: int, checks: int) -> tuple[float, float]:
    """Return between what χ² lies (Wilson, Hilferty, 1931).

    >>> [round(v) for v in chi_squared_quantiles(100, 1)]
    [45, 185]
    """
    z, spread = normal_quantile(checks), 2.0 / (9.0 * freedom)
    low, high = (1.0 - spread + sign * z * math.sqrt(spread) for sign in (-1.0, 1.0))
    return freedom * max(low, 0.0) ** 3, freedom * high**3


def chi_squared(observed: Sequence[int], expected: Sequence[float]) -> float:
    """Return Pearson's statistic."""
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


def mean_and_tolerance(samples: Sequence[float], checks: int) -> tuple[float, float]:
    """Return the mean of independent samples, and how far its expectation may be (Student's t)."""
    error = statistics.stdev(samples) / math.sqrt(len(samples))
    return statistics.fmean(samples), student_quantile(len(samples) - 1, checks) * error


def weights(alpha: float, n: int) -> Floats:
    """Return the weights of n increments in the debiased estimate, the oldest first."""
    w: Floats = alpha * (1.0 - alpha) ** np.arange(n - 1.0, -1.0, -1.0)
    w /= w.sum()
    return w


Measured = dict[float, tuple[float, float]]
"""Rate or size → a measured variance, and its tolerance."""


def assert_slope(measured: Measured, exact: dict[float, float]) -> None:
    """The slope on a log scale is the exact one, within what the tolerances leave."""
    first, last = min(exact), max(exact)
    span = math.log(last / first)
    slope = math.log(measured[last][0] / measured[first][0]) / span
    relative = sum(tolerance / value for value, tolerance in (measured[first], measured[last]))
    assert relative < 0.5
    expected = math.log(exact[last] / exact[first]) / span
    # log(1 ± e) is within 1.4 e for e up to 1/2
    assert abs(slope - expected) < 1.4 * relative / abs(span)

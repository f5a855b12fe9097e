"""Standard error of the mean of a short series whose numbers depend on each other."""

import math
from collections.abc import Sequence

from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.quantiles import student

SHARED = 1.3
"""The variance of a mean is at least so many times that of independent numbers: contrasts share
reservoirs, and so weak a dependence over hundreds of observations does not show in a hundred
numbers."""

DOUBT = 3.0
"""What dependence adds to the variance counts so many times, since it is hardly known. Chosen, like
``SHARED``, by simulations of autoregressive inputs (``tests/drift/test_series_error.py``)."""

LEAST_FREEDOM = 4.0
"""With fewer degrees of freedom the error is not known."""

MOST_LOST = 0.7
"""Autocorrelations around a mean of the same numbers are too small; the correction for this assumes
that at most so much of their sum is lost."""


def error_of_mean(numbers: Floats, earlier: Floats) -> float:
    """Return the standard error of the mean of a series, for which twice of it covers 95 %.

    ``numbers`` are at least two, at equal distances; ``earlier`` numbers, maybe none, depend on
    each other in the same way, whatever their size: they only help to estimate how. The error is
    infinite if it cannot be known: the series is worth too few independent numbers.

    Examples
    --------
    >>> import numpy as np
    >>> rng, none = np.random.default_rng(1), np.empty(0)
    >>> error_of_mean(rng.normal(size=100), none)
    0.100...
    >>> error_of_mean(rng.normal(size=100).cumsum(), none)
    inf
    """
    width = float(numbers.max() - numbers.min())
    if width == 0.0:
        return 0.0
    inflation = SHARED + DOUBT * (_inflation([numbers, earlier]) - 1.0)
    freedom = len(numbers) / inflation - 1.0
    if freedom < LEAST_FREEDOM:
        return math.inf
    spread = width * float((numbers / width).std(ddof=1))  # its square may be too small or large
    return spread * math.sqrt(inflation / len(numbers)) * student(freedom)


def _inflation(series: Sequence[Floats]) -> float:
    """Return the sum of all autocorrelations, at least 1.

    Each series counts as much as it has numbers. Sums of pairs of autocorrelations decrease and are
    above 0, except for noise.

    References
    ----------
    Geyer (1992), "Practical Markov Chain Monte Carlo", Section 3.3: the initial monotone sequence
    estimator.
    """
    parts = [_standardized(each) for each in series if len(each) and each.min() < each.max()]
    n = sum(map(len, parts))
    total, last = -1.0, math.inf
    for lag in range(0, max(map(len, parts)) - 1, 2):
        products = sum(_products(each, lag) + _products(each, lag + 1) for each in parts)
        last = min(products / n, last)
        if last <= 0.0:
            break
        total += 2.0 * last
    total = max(total, 1.0)
    return total / (1.0 - min(total * len(parts) / n, MOST_LOST))


def _standardized(numbers: Floats) -> Floats:
    deviations = (numbers - numbers.mean()) / (numbers.max() - numbers.min())
    standard: Floats = deviations / deviations.std()
    return standard


def _products(numbers: Floats, lag: int) -> float:
    """Return the sum of the products of numbers at a distance."""
    return float(numbers[: len(numbers) - lag] @ numbers[lag:]) if lag < len(numbers) else 0.0

"""Standard errors of exponential means of numbers that depend on each other.

Increments depend on each other: they share a reservoir or a store of values, and records resemble
the ones before. The variance of their mean is that of independent numbers times the sum of all
autocorrelations. It is estimated from products of each number with a decaying sum of the ones
before, so that the state is a few numbers, whatever the time spanned.

References
----------
Newey, West (1987), "A Simple, Positive Semi-Definite, Heteroskedasticity and Autocorrelation
Consistent Covariance Matrix", for sums of weighted autocovariances; Vats, Flegal (2022), "Lugsail
lag windows for estimating time-average covariance matrices", for two spans without the bias of one.
"""

import math

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.quantiles import student

DEFAULT_REACH = 200
"""Observations over which increments depend on each other, for reservoirs of 100."""

CENTRE, OWN, SUM, HALF_SUM, PRODUCT, HALF_PRODUCT = range(6)
"""Columns of what is kept: the mean, the variance, the decaying sums of deviations of the whole
span and of half of it, and the mean products of deviations with those sums."""

COLUMNS = 6

CENTRES, MEMORY = 5, 20
"""Over how many times the reach the mean, and the products, are averaged."""

LEAST_FREEDOM, LEAST_LEFT = 2.0, 1.0
"""With fewer degrees of freedom, or fewer left after the division for skewed losses, the error is
not known."""

COST = 1.83
"""How many spans of numbers a degree of freedom takes where two spans are combined; else one."""

SKEW = 30.0
"""The degrees of freedom of losses are divided by 1 + SKEW · (sum of autocorrelations / span).

Losses are skewed, and so is the mean of the few independent ones that such records are worth.
Chosen by coverage.
"""


@compiled
def rate(alpha: float, n: int) -> float:
    """Return the weight of the newest of n numbers in a debiased exponential mean."""
    return alpha / -math.expm1(n * math.log1p(-alpha))


@compiled
def rates(reach: int, n: int) -> tuple[float, float]:
    """Return the weights of the newest of n numbers in the mean and in the products."""
    return rate(1.0 / (CENTRES * reach), n), rate(1.0 / (MEMORY * reach), n)


@compiled
def follow(
    kept: Floats, value: float, span: float, centre_rate: float, product_rate: float
) -> None:
    """Take the next number into what is kept, shape (6,).

    The sums decay by ``1 / span`` at each number.
    """
    before = value - kept[CENTRE]
    kept[CENTRE] += centre_rate * before
    after = value - kept[CENTRE]
    kept[OWN] += product_rate * (after * before - kept[OWN])
    for total, product, decay in (
        (SUM, PRODUCT, 1.0 / span),
        (HALF_SUM, HALF_PRODUCT, min(1.0, 2.0 / span)),
    ):
        kept[total] *= 1.0 - decay
        kept[product] += product_rate * (after * kept[total] - kept[product])
        kept[total] += after


@compiled
def standard_error(  # noqa: PLR0917  compiled functions take numbers
    kept: Floats, n: int, alpha: float, reach: int, squares: float, skew: float
) -> float:
    """Return the standard error of a mean of n numbers; infinite if too few are known.

    ``squares`` is the sum of the squares of the numbers' weights in the mean. The error is so large
    that twice of it covers the expectation in about 95 % of cases, though it is an estimate itself.
    ``skew`` is 0, or :data:`SKEW` for numbers whose distribution is as skewed as that of losses.
    """
    if n < 2:
        return math.inf
    is_long = 1.0 / alpha > reach
    span, slow = min(1.0 / alpha, reach), 1.0 / (MEMORY * reach)
    decay = math.expm1(n * math.log1p(-slow))
    known = decay * decay * (2.0 - slow) / slow / -math.expm1(2 * n * math.log1p(-slow))
    freedom = known / (COST * span if is_long else span)
    if freedom < LEAST_FREEDOM:
        return math.inf
    if kept[OWN] > 0.0:
        freedom /= 1.0 + skew * max(kept[PRODUCT], 0.0) / kept[OWN] / span
        if freedom < LEAST_LEFT:
            return math.inf
    total = kept[OWN] + 2.0 * kept[PRODUCT]
    if is_long:
        total = 2.0 * total - (kept[OWN] + 2.0 * kept[HALF_PRODUCT])
    # deviations from a mean of the same numbers are too small: by half of the weights of all lags,
    # whose sum is 3 spans where two are combined, else 2
    lost = 0.5 * (3.0 if is_long else 2.0) * span / min(n, 2 * CENTRES * reach)
    total = max(total, 0.1 * kept[OWN]) / max(0.3, 1.0 - lost)
    return math.sqrt(total * squares) * student(freedom)

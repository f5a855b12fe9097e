"""Quantiles of distributions."""

import math

from fluxplain.evaluate.compiled import compiled


@compiled
def student(freedom: float) -> float:
    """Return Student's 97.5 % quantile over that of the normal distribution, within 4 %.

    The expansion of Abramowitz and Stegun (26.7.5) from 2 degrees of freedom on; from 1 to 2, one
    exponential in the reciprocal of the degrees, right at both ends.
    """
    z = 1.959963984540054
    if freedom < 2.0:
        return 12.706204736174694 / z * math.exp(2.1657166 * (1.0 / freedom - 1.0))
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return 1.0 + (first + (second + third / freedom) / freedom) / freedom / z

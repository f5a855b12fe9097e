"""The sigmoid as River computes it."""

import math

from fluxplain.evaluate.compiled import compiled

LARGE = 30.0
"""Limit of the exponent beyond which River's sigmoid is 0 or 1."""


@compiled
def sigmoid(total: float) -> float:
    """Return the probability that belongs to a sum of weighted features."""
    if total > LARGE:
        return 1.0
    return 0.0 if total < -LARGE else 1.0 / (1.0 + math.exp(-total))

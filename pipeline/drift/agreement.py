"""What is watched of a trend: whether a curve agrees with earlier ones."""

ALIKE = 0.5
"""Smallest correlation of curves that are alike; at most minus this, they are opposite."""


def agreement(trend: float) -> float:
    """Return 1 for a curve that is like the reference, -1 for an opposite one, else 0.

    As the range of the inputs wanders, correlations near 1 vary a little, and each depends on those
    before. Such a series says little about its mean: a reversal would be noticed late.

    Examples
    --------
    >>> [agreement(trend) for trend in (1.0, 0.6, 0.3, -0.3, -0.9)]
    [1.0, 1.0, 0.0, 0.0, -1.0]
    """
    return float((trend >= ALIKE) - (trend <= -ALIKE))

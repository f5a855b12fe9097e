"""How far partial dependence curves are from each other."""

from collections.abc import Sequence

import numpy as np


def distance_between(effect: Sequence[float], other: Sequence[float]) -> float:
    """Return the mean distance of two curves over the same points.

    Examples
    --------
    >>> distance_between([0.0, 1.0], [0.5, 1.0])
    0.25
    """
    return float(np.abs(np.subtract(effect, other)).mean())

"""Weight, mean and sum of squares of targets, as River's ``Var`` keeps them.

Each function follows River operation by operation. ``two`` is 2.0: as a constant, the compiler
would square differently from Python.
"""

import math

from fluxplain.evaluate.compiled import borrowing
from fluxplain.evaluate.encoding import Floats

WEIGHT, MEAN, SQUARES = range(3)
"""Places in moments, shape (3,)."""


@borrowing
def clear(of: Floats) -> None:
    """Make moments those of nothing."""
    of[WEIGHT] = of[MEAN] = of[SQUARES] = 0.0


@borrowing
def copy(source: Floats, to: Floats) -> None:
    """Copy moments."""
    to[WEIGHT], to[MEAN], to[SQUARES] = source[WEIGHT], source[MEAN], source[SQUARES]


@borrowing
def see(of: Floats, y: float, w: float) -> None:
    """Let moments see a target."""
    before = of[MEAN]
    of[WEIGHT] += w
    of[MEAN] += (w / of[WEIGHT]) * (y - before)
    of[SQUARES] += w * (y - before) * (y - of[MEAN])


@borrowing
def add(of: Floats, other: Floats, two: float) -> None:
    """Add the moments of other targets."""
    n, m, squared = of[WEIGHT], other[WEIGHT], math.pow(of[MEAN] - other[MEAN], two)
    of[SQUARES] = of[SQUARES] + other[SQUARES] + squared * n * m / (n + m)
    of[WEIGHT] += m
    of[MEAN] = (n * of[MEAN] + m * other[MEAN]) / of[WEIGHT]


@borrowing
def subtract(of: Floats, other: Floats, two: float) -> None:
    """Subtract the moments of some of the targets."""
    n, m = of[WEIGHT], other[WEIGHT]
    of[WEIGHT] -= m
    if of[WEIGHT] > 0.0:
        of[MEAN] = (n * of[MEAN] - m * other[MEAN]) / of[WEIGHT]
    else:
        of[WEIGHT] = of[MEAN] = 0.0
    squared = math.pow(of[MEAN] - other[MEAN], two)
    of[SQUARES] = of[SQUARES] - other[SQUARES] - squared * of[WEIGHT] * m / (of[WEIGHT] + m)


@borrowing
def variance(of: Floats) -> float:
    """Return the variance."""
    return of[SQUARES] / (of[WEIGHT] - 1.0) if of[WEIGHT] > 1.0 else 0.0


@borrowing
def reduction(whole: Floats, sides: Floats, least: float) -> float:
    """Return by how much a split reduces the variance; 0 if a side weighs less than ``least``.

    ``sides`` has shape (sides, 3).
    """
    for i in range(len(sides)):
        if not sides[i, WEIGHT] >= least:
            return 0.0
    found = variance(whole)
    for i in range(len(sides)):
        found -= sides[i, WEIGHT] / whole[WEIGHT] * variance(sides[i])
    return float(found)

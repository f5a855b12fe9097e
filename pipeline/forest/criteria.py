"""How good a split is, as River's criteria judge it, operation by operation."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import summing
from fluxplain.forest.state import Integers

INFO_GAIN, GINI, HELLINGER = range(3)

RAISES = math.nan
"""Instead of a merit where River would raise."""


@compiled
def entropy(weights: Floats, count: int) -> float:
    """Return the entropy of ``count`` weights."""
    found = total = 0.0
    for k in range(count):
        if weights[k] > 0.0:
            found -= weights[k] * math.log2(weights[k])
            total += weights[k]
    return (found + total * math.log2(total)) / total if total > 0.0 else 0.0


@compiled
def _gini(weights: Floats, count: int, total: float) -> float:
    found = 1.0
    if total != 0.0:
        for k in range(count):
            share = weights[k] / total
            found -= share * share
    return found


@compiled
def _by_gini(counts: Integers, weights: Floats, sums: Floats, total: float) -> float:
    found = 0.0
    for i in range(len(counts)):
        found += (sums[i] / total) * _gini(weights[i], counts[i], sums[i])
    return 1.0 - found


@compiled
def _by_entropy(
    counts: Integers, weights: Floats, sums: Floats, total: float, before: float
) -> float:
    found = 0.0
    for i in range(len(counts)):
        found += sums[i] * entropy(weights[i], counts[i])
    return before - found / total


@compiled
def _of_class(counts: Integers, order: Integers, weights: Floats, i: int, c: int) -> float:
    """Return a class's weight on one side; -1 if it is not there."""
    for k in range(counts[i]):
        if order[i, k] == c:
            return float(weights[i, k])
    return -1.0


@compiled
def _by_hellinger(
    counts: Integers, order: Integers, weights: Floats, zero: int, one: int, two: float
) -> float:
    left_one = _of_class(counts, order, weights, 0, one)
    left_zero = _of_class(counts, order, weights, 0, zero)
    right_one = _of_class(counts, order, weights, 1, one)
    right_zero = _of_class(counts, order, weights, 1, zero)
    if min(left_one, left_zero, right_one, right_zero) < 0.0:
        return 0.0
    zeros, ones = left_zero + right_zero, left_one + right_one
    if zeros == 0.0 or ones == 0.0:
        return RAISES
    left = math.sqrt(left_zero / zeros) - math.sqrt(left_one / ones)
    right = math.sqrt(right_zero / zeros) - math.sqrt(right_one / ones)
    return math.sqrt(math.pow(left, two) + math.pow(right, two))


@compiled
def merit(
    criterion: int,
    least_share: float,
    before: float,
    zero: int,
    one: int,
    two: float,
    counts: Integers,
    order: Integers,
    weights: Floats,
) -> float:
    """Return the merit of a split into ``len(counts)`` sides; NaN where River would raise.

    ``before`` is the entropy of the leaf; ``zero`` and ``one`` are the classes of these names.
    """
    sums, total, large = np.empty(len(counts)), 0.0, 0
    for i in range(len(counts)):
        sums[i] = summing.total(counts[i], weights[i])
        total += sums[i]
    if criterion == HELLINGER and total == 0.0:
        return RAISES
    if total > 0.0 or criterion == HELLINGER:
        for i in range(len(counts)):
            if sums[i] / total > least_share:
                large += 1
    if large < 2:
        return -np.inf
    if criterion == GINI:
        return _by_gini(counts, weights, sums, total)
    if criterion == INFO_GAIN:
        return _by_entropy(counts, weights, sums, total, before)
    return _by_hellinger(counts, order, weights, zero, one, two)


@compiled
def merit_range(criterion: int, classes: int) -> float:
    """Return the range of merits, for the Hoeffding bound."""
    return 1.0 if criterion == GINI else math.log2(max(classes, 2))

"""The two inner loops over a forest, compiled by Numba where it is installed.

Without Numba these functions are not used. They compute what River computes, in the order in which
River does, on the arrays of :class:`~pipeline.evaluate.hoeffding.mirror.Mirror`.
"""

import math

import numpy as np
from numpy.typing import NDArray

from pipeline.evaluate.compiled import IS_COMPILED, compiled
from pipeline.evaluate.inputs import Floats

__all__ = ["FAR", "HALF_LOG_TAU", "IS_COMPILED", "reach", "vote"]

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

HALF_LOG_TAU = 0.5 * math.log(math.tau)

FAR = -200.0
"""Log-densities below it are squared as Python does it, which has a last bit of its own that
matters in large terms; above, it makes less than 1e-13."""


@compiled
def reach(  # noqa: PLR0917  compiled functions take arrays, not objects
    x: Floats,
    roots: Integers,
    feature: Integers,
    threshold: Floats,
    children: Integers,
    reached: Integers,
    leaves: Flags,
    unknown: Flags,
) -> None:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    x
        Inputs, shape (rows, columns).
    roots
        The first node of each tree.
    feature, threshold, children
        Of each node: its column of ``x``, or -1 if it is a leaf; where it parts the values; the
        two nodes below, or the leaf's place twice.
    reached
        Filled with the leaves' places, shape (trees, rows).
    leaves
        Set for each place that is reached.
    unknown
        Set for each row that lacks what a branch tests.
    """
    for tree in range(roots.shape[0]):
        for row in range(x.shape[0]):
            node = roots[tree]
            column = feature[node]
            while column >= 0:
                if math.isnan(x[row, column]):
                    unknown[row] = True
                node = children[node, 0 if x[row, column] <= threshold[node] else 1]
                column = feature[node]
            place = children[node, 0]
            reached[tree, row] = place
            leaves[place] = True


@compiled
def vote(  # noqa: PLR0912, PLR0917  compiled functions take arrays; loops are what they are for
    x: Floats,
    reached: Integers,
    weights: Floats,
    fixed: Flags,
    answers: Floats,
    column: NDArray[np.intp],
    prior: Floats,
    terms: Floats,
    two: float,
    votes: Floats,
    unknown: Flags,
) -> None:
    """Add up what the reached leaves answer.

    Parameters
    ----------
    x
        Inputs, shape (rows, columns); the last row is the observation itself.
    reached
        Places, shape (trees, rows).
    weights
        Of each tree.
    fixed, answers
        Of each place: whether its answer depends on nothing, and that answer.
    column, prior, terms
        Of each place: columns of its features (0 behind the last), logarithms of the classes'
        shares, and for each feature and class the mean, -2 variance and half its logarithm.
    two
        2.0: the compiler must not know it, or it would square in another way than Python.
    votes
        Filled, shape (rows, classes).
    unknown
        Set for each row at which a square is infinite.
    """
    rows, classes = votes.shape
    features = column.shape[1]
    itself = rows - 1
    own = np.zeros(classes)
    shares = np.zeros(classes)
    for tree in range(reached.shape[0]):
        for i in range(rows):
            row = itself - i  # the observation itself first
            place = reached[tree, row]
            same = i > 0 and place == reached[tree, itself]
            if same and not fixed[place]:
                for k in range(features):
                    c = column[place, k]
                    if c == 0:
                        break
                    if x[row, c] != x[itself, c]:
                        same = False
                        break
            if not same:
                if fixed[place]:
                    for c in range(classes):
                        shares[c] = answers[place, c]
                else:
                    highest = -np.inf
                    for c in range(classes):
                        log_share = prior[place, c]
                        if log_share > -np.inf:
                            for k in range(features):
                                if column[place, k] == 0:
                                    break
                                scale = terms[place, 1, k, c]
                                if scale == -np.inf:
                                    continue
                                distance = x[row, column[place, k]] - terms[place, 0, k, c]
                                if math.isinf(distance * distance):
                                    unknown[row] = True
                                spread = terms[place, 2, k, c]
                                term = distance * distance / scale - HALF_LOG_TAU - spread
                                if term < FAR:
                                    square = math.pow(distance, two)
                                    term = square / scale - HALF_LOG_TAU - spread
                                if term > -np.inf:
                                    log_share += term
                        shares[c] = log_share
                        highest = max(highest, log_share)
                    total = 0.0
                    for c in range(classes):
                        total += math.exp(shares[c] - highest)
                    total = highest + math.log(total)
                    for c in range(classes):
                        shares[c] = math.exp(shares[c] - total)
                if i == 0:
                    for c in range(classes):
                        own[c] = shares[c]
            if same:
                for c in range(classes):
                    votes[row, c] += weights[tree] * own[c]
            else:
                for c in range(classes):
                    votes[row, c] += weights[tree] * shares[c]

"""Inner loops over a forest's arrays; see :mod:`fluxplain.evaluate.compiled`.

They perform River's operations in River's order.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.compiled import compiled, inlined
from fluxplain.evaluate.encoding import Floats

Integers = NDArray[np.int32]
Flags = NDArray[np.bool_]

LEAF, NUMERIC, NOMINAL, OTHER = range(4)
"""Kinds of nodes; OTHER ends the search: River must evaluate the tree."""

BITS = 62
"""Number of bits that mark changed columns. Further columns share bits, which only costs time."""

HALF_LOG_TAU = 0.5 * math.log(math.tau)

FAR = -200.0
"""Log-density below which squares are computed as in Python, whose last bit may differ and matters
in large terms; above it, the difference is less than 1e-13."""


@compiled
def reach(  # noqa: PLR0912, PLR0917  compiled functions take arrays and loops
    x: Floats,
    columns: Integers,
    is_text: Flags,
    roots: Integers,
    kind: NDArray[np.int8],
    feature: Integers,
    threshold: Floats,
    below: Integers,
    codes: Floats,
    ways: Integers,
    common: Integers,
    lost: Flags,
    reached: Integers,
    is_current: Flags,
    stale: Integers,
) -> tuple[int, int]:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    x
        Inputs, shape (rows, columns); the last row is the observation itself.
    columns
        Of each feature its column; -1 if there is none.
    is_text
        Of each column whether it has codes of categories.
    roots
        The first node of each tree; -1 of one that has none.
    kind, feature, threshold
        Kind, feature and threshold of each node.
    below
        Of each node, shape (nodes, 3): of a numeric branch the two nodes below; of a nominal one
        the first edge and that behind the last, and the node for all other categories, -1 if there
        is none.
    codes, ways
        Of each edge the category, and the node that it leads to.
    common
        Of each node the one below that most observations went to, where it is known; else -1.
    lost
        Set for each node where it is needed: a feature is missing, or a category new.
    reached
        Filled with the leaves, shape (trees, rows); -1 where no leaf is found.
    is_current
        Of each leaf whether its statistics are up to date.
    stale
        Filled with the reached leaves that are not current.

    Returns
    -------
    How many leaves are stale, and how many nodes are lost whose common one is not known.
    """
    n_stale = n_lost = 0
    seen = np.zeros(kind.shape[0], np.bool_)
    itself = x.shape[0] - 1
    changed = np.zeros(x.shape[0], np.int64)
    for row in range(itself):
        for column in range(x.shape[1]):
            if x[row, column] != x[itself, column]:
                changed[row] |= 1 << column % BITS
    for t in range(roots.shape[0]):
        tested = 0
        for i in range(x.shape[0]):
            row = itself - i
            if i > 0 and not changed[row] & tested:
                reached[t, row] = reached[t, itself]
                continue
            node = roots[t]
            while node >= 0 and kind[node] != LEAF:
                if kind[node] == OTHER:
                    node = -1
                    break
                column = columns[feature[node]]
                if i == 0 and column >= 0:
                    tested |= 1 << column % BITS
                if column < 0:
                    lost[node] = True
                    node = common[node]
                elif kind[node] == NUMERIC:
                    if is_text[column]:
                        node = -1
                    else:
                        node = below[node, 0 if x[row, column] <= threshold[node] else 1]
                else:
                    way = below[node, 2]
                    for edge in range(below[node, 0], below[node, 1]):
                        if codes[edge] == x[row, column]:
                            way = ways[edge]
                            break
                    if way < 0:
                        lost[node] = True
                        way = common[node]
                    node = way
            reached[t, row] = node
            if node < 0 or seen[node]:
                continue
            seen[node] = True
            if not is_current[node]:
                stale[n_stale] = node
                n_stale += 1
    for node in range(lost.shape[0]):
        if lost[node] and common[node] < 0:
            n_lost += 1
    return n_stale, n_lost


@inlined
def joint(  # noqa: PLR0917  compiled functions take arrays; slices of them would cost time
    x: Floats,
    columns: Integers,
    is_text: Flags,
    features: Integers,
    prior: Floats,
    terms: Floats,
    tables: Integers,
    places: Integers,
    codes: Floats,
    weights: Floats,
    totals: Floats,
    two: float,
    row: int,
    leaf: int,
    c: int,
) -> float:
    """Return the logarithm of a class's share in a leaf times the densities of an input.

    NaN if River must compute it. The parameters are those of :func:`vote`.
    """
    log_share = float(prior[leaf, c])
    if log_share == -np.inf:
        return -math.inf
    for k in range(features.shape[1]):
        if features[leaf, k] < 0:
            break
        column = columns[features[leaf, k]]
        if column < 0:
            continue
        value, table = x[row, column], tables[leaf, c, k]
        if table >= 0:
            for entry in range(places[0, table], places[1, table]):
                if codes[entry] == value:
                    if weights[entry] > 0.0:
                        log_share += math.log(weights[entry] / totals[table])
                    break
            continue
        scale = terms[leaf, c, 1, k]
        if scale == -np.inf:
            continue
        distance = value - terms[leaf, c, 0, k]
        if is_text[column] or math.isinf(distance * distance):
            return math.nan
        term = distance * distance / scale - HALF_LOG_TAU - terms[leaf, c, 2, k]
        if term < FAR:
            term = math.pow(distance, two) / scale - HALF_LOG_TAU - terms[leaf, c, 2, k]
        if term > -np.inf:
            log_share += term
    return log_share


@compiled
def vote(  # noqa: PLR0912, PLR0917  compiled functions take arrays and loops
    x: Floats,
    columns: Integers,
    is_text: Flags,
    reached: Integers,
    fixed: Flags,
    answers: Floats,
    features: Integers,
    prior: Floats,
    terms: Floats,
    tables: Integers,
    places: Integers,
    codes: Floats,
    weights: Floats,
    totals: Floats,
    two: float,
    given: Floats,
) -> bool:
    """Fill in the predictions of the reached leaves of classification trees.

    Returns whether there is one of each.

    Parameters
    ----------
    x
        Inputs, shape (rows, columns); the last row is the observation itself.
    columns, is_text
        See :func:`reach`.
    reached
        Leaves, shape (trees, rows); -1, now also where a leaf has no answer here, is left out.
    fixed, answers
        Of each leaf: whether its answer depends on nothing, and that answer.
    features, prior, terms
        Of each leaf: its features (-1 behind the last), logarithms of the classes' shares, and for
        each class and feature the mean, -2 variance and half its logarithm.
    tables
        Of each leaf, class and feature, which table of categories; -1 of a numeric one.
    places, codes, weights, totals
        Where each table begins and ends; its categories; the weights that were learned of them; and
        of each table their sum.
    two
        2.0: as a constant, the compiler would square differently from Python.
    given
        Filled, shape (trees, rows, classes).
    """
    trees, rows, classes = given.shape
    itself = rows - 1
    own, shares, is_complete = np.zeros(classes), np.zeros(classes), True
    for t in range(trees):
        for i in range(rows):
            row = itself - i  # the observation itself first
            leaf = reached[t, row]
            if leaf < 0:
                is_complete = False
                continue
            if fixed[leaf]:
                for c in range(classes):
                    given[t, row, c] = answers[leaf, c]
                continue
            same = i > 0 and leaf == reached[t, itself]
            if same:
                for k in range(features.shape[1]):
                    if features[leaf, k] < 0:
                        break
                    column = columns[features[leaf, k]]
                    if column >= 0 and x[row, column] != x[itself, column]:
                        same = False
                        break
            if same:
                for c in range(classes):
                    given[t, row, c] = own[c]
                continue
            highest = -np.inf
            for c in range(classes):
                share = joint(
                    x,
                    columns,
                    is_text,
                    features,
                    prior,
                    terms,
                    tables,
                    places,
                    codes,
                    weights,
                    totals,
                    two,
                    row,
                    leaf,
                    c,
                )
                if math.isnan(share):
                    reached[t, row], is_complete = -1, False
                shares[c] = share
                highest = max(highest, share)
            total = 0.0
            for c in range(classes):
                total += math.exp(shares[c] - highest)
            total = highest + math.log(total)
            for c in range(classes):
                given[t, row, c] = math.exp(shares[c] - total)
            if i == 0:
                for c in range(classes):
                    own[c] = given[t, row, c]
    return is_complete


@compiled
def weighted_sum(given: Floats, weights: Floats, votes: Floats) -> None:
    """Add the trees' predictions times their weights, in their order.

    ``given`` has the shape (trees, rows, classes), ``votes`` the shape (rows, classes).
    """
    trees, rows, classes = given.shape
    for t in range(trees):
        for row in range(rows):
            for c in range(classes):
                votes[row, c] += given[t, row, c] * weights[t]


@compiled
def regress(  # noqa: PLR0917  compiled functions take arrays
    x: Floats,
    features: Integers,
    any_text: bool,
    reached: Integers,
    fixed: Flags,
    means: Floats,
    weights: Floats,
    intercepts: Floats,
    given: Floats,
) -> bool:
    """Fill in the predictions of the reached leaves of regression trees.

    Returns whether there is one of each.

    Parameters
    ----------
    x
        Inputs, shape (rows, columns).
    features
        Which feature each column is.
    any_text
        Whether a column has codes of categories; no linear model multiplies them.
    reached
        Leaves, shape (trees, rows); -1, now also where a leaf has no answer here, is left out.
    fixed, means
        Of each leaf: whether its answer is a mean, and that mean.
    weights, intercepts
        Of each leaf the linear model; shapes (leaves, features) and (leaves,).
    given
        Filled, shape (trees, rows).
    """
    is_complete = True
    for t in range(given.shape[0]):
        for row in range(given.shape[1]):
            leaf = reached[t, row]
            if leaf < 0:
                is_complete = False
                continue
            if fixed[leaf]:
                given[t, row] = means[leaf]
            elif any_text:
                reached[t, row], is_complete = -1, False
            else:
                total = 0.0
                for column in range(x.shape[1]):
                    total += x[row, column] * weights[leaf, features[column]]
                given[t, row] = total + intercepts[leaf]
    return is_complete

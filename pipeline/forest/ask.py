"""What a model's trees answer about many inputs of one observation."""

import math
from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import (
    category_term,
    freshen,
    is_bayes,
    log_density,
    majority,
    normalize,
    total,
)
from fluxplain.forest.learn import DONE, OVERFLOW, class_order, divide
from fluxplain.forest.state import (
    LEAF,
    MEAN,
    Flags,
    Integers,
    State,
)
from fluxplain.forest.walk import Ways, common_way, leaf_of, step, way, ways_of

BITS = 62
"""Number of bits that mark columns. Further columns share bits, which only costs time."""

BLOCK = 32
"""Columns that are compared together: most of a row is the observation."""

NO_COLUMN, SEVERAL = -1, -2
"""Which column is changed, where it is not exactly one."""


class LeafArrays(NamedTuple):
    """The arrays that predictions of leaves need; see :mod:`fluxplain.forest.state`."""

    leaf: Integers
    n_classes: Integers
    order: Integers
    weight: Floats
    prior: Floats
    is_active: Flags
    correct: Floats
    observed: Integers
    n_observed: Integers
    known: Flags
    gaussian: Floats
    logs: Floats
    first: Integers
    category: Integers
    entry_weight: Floats
    following: Integers
    nominal: Flags


LONGEST = 64
"""Most nodes of the observation's own way that are kept; rows walk the rest."""

NOTHING = math.inf
"""Instead of a term where a feature adds nothing to a vote, not even 0."""


@borrowing
def mark_of(column: int) -> int:
    """Return the bit that marks a column."""
    return 1 << column % BITS


@borrowing
def changed_columns(rows: Floats, x: Floats, changed: Integers) -> None:
    """Fill in where each row differs from the observation, shape (rows, 2).

    The first are marks of the columns, the second is the column if it is exactly one.
    """
    # the compiler compares many integers at once, but neither numbers nor parts by their places
    n, bits, own = rows.shape[1], rows.view(np.int64), x.view(np.int64)
    for row in range(rows.shape[0]):
        marks, which = 0, NO_COLUMN
        for begin in range(0, n, BLOCK):
            mine, its = own[begin : begin + BLOCK], bits[row, begin : begin + BLOCK]
            differing = 0
            for k in range(len(its)):
                differing |= its[k] ^ mine[k]
            for k in range(len(its) if differing else 0):
                if its[k] != mine[k]:
                    marks |= mark_of(begin + k)
                    which = begin + k if which == NO_COLUMN else SEVERAL
        changed[row, 0], changed[row, 1] = marks, which


@compiled
def own_path(
    state: State, root: int, x: Floats, columns: Integers, path: Integers, tested: Integers
) -> int:
    """Fill in the nodes on the observation's own way, and marks of the column that each tests.

    Returns how many they are; the last one is the leaf. Longer ways end in the middle.
    """
    nodes, node, n = state.nodes, root, 0
    while n < len(path):
        path[n], tested[n] = node, 0
        n += 1
        if nodes.kind[node] == LEAF:
            break
        column = columns[nodes.feature[node]]
        if column >= 0:
            tested[n - 1] = mark_of(column)
        following = way(state, node, x, columns)
        node = following if following >= 0 else common_way(state, node)
    return n


@borrowing
def reach_all(
    of: Ways,
    rows: Floats,
    columns: Integers,
    changed: Integers,
    path: Integers,
    tested: Integers,
    n: int,
    reached: Integers,
) -> None:
    """Fill in each row's leaf, or the first branch that has no way for it.

    ``changed`` tells where a row differs from the observation, whose own ``path`` of ``n`` nodes
    needs no second look; see :func:`changed_columns`.
    """
    for row in range(len(rows)):
        place = 0
        while place < n - 1 and not tested[place] & changed[row, 0]:
            place += 1
        node = path[place]
        while of.kind[node] != LEAF:
            following = step(of, node, rows[row], columns)
            if following < 0:
                break
            node = following
        reached[row] = node


@compiled
def leaves_of(
    state: State, root: int, rows: Floats, x: Floats, columns: Integers, changed: Integers
) -> Integers:
    """Return the leaf of each row, with the logarithms that it needs; see :func:`freshen`."""
    path, tested = np.empty((2, LONGEST), np.int64)
    reached, leaf, is_fresh = np.empty(len(rows), np.int64), state.nodes.leaf, state.leaves.is_fresh
    n, of = own_path(state, root, x, columns, path, tested), ways_of(state)
    reach_all(of, rows, columns, changed, path, tested, n, reached)
    for row in range(len(rows)):
        if of.kind[reached[row]] != LEAF:
            reached[row] = leaf_of(state, reached[row], rows[row], columns)
        if not is_fresh[leaf[reached[row]]]:
            freshen(state, reached[row])
    return reached


@borrowing
def see_columns(of: LeafArrays, leaf: int, columns: Integers, seen: Flags) -> int:
    """Note the columns that a leaf observes; return marks of them."""
    marks = 0
    seen[:] = False
    for place in range(of.n_observed[leaf]):
        column = columns[of.observed[leaf, place]]
        if column >= 0:
            marks |= mark_of(column)
            seen[column] = True
    return marks


@borrowing
def fill_terms(
    of: LeafArrays,
    leaf: int,
    rows: Floats,
    row: int,
    columns: Integers,
    changed: int,
    two: float,
    own: Floats,
    terms: Floats,
) -> None:
    """Fill in what a row's values add to the votes, shape (observers, classes).

    Where a column is not changed, that is what the observation's ``own`` values add. Terms are NaN
    where River would raise.
    """
    for place in range(of.n_observed[leaf]):
        feature = of.observed[leaf, place]
        column = columns[feature]
        is_own = column < 0 or not changed & mark_of(column)
        for c in range(terms.shape[1]):
            if is_own:
                terms[place, c] = own[place, c]
            elif of.nominal[feature]:
                first = of.first[leaf, place, c]
                terms[place, c] = category_term(
                    of.category, of.entry_weight, of.following, first, rows[row, column]
                )
            elif of.known[leaf, place, c]:
                mean, value = of.gaussian[leaf, place, c, MEAN], rows[row, column]
                double, half_log = of.logs[leaf, place, c, 0], of.logs[leaf, place, c, 1]
                density = log_density(mean, double, half_log, value, two)
                terms[place, c] = NOTHING if density == -np.inf else density
            else:
                terms[place, c] = NOTHING


@borrowing
def vote_again(of: LeafArrays, node: int, terms: Floats, shares: Floats) -> int:
    """Fill in the shares by naive Bayes, from the terms of a leaf; see :func:`bayes`."""
    highest, n_terms = -np.inf, of.n_observed[of.leaf[node]]
    for k in range(of.n_classes[node]):
        c, vote = of.order[node, k], 0.0
        if of.weight[node, c] > 0.0:
            vote = of.prior[node, c]
            for place in range(n_terms):
                if terms[place, c] != NOTHING:
                    vote += terms[place, c]
            if math.isnan(vote) or of.prior[node, c] == -np.inf:
                return OVERFLOW
        shares[c] = vote
        highest = max(highest, vote)
    normalize(of.n_classes[node], of.order[node], highest, shares)
    return DONE


@borrowing
def answer_leaf(
    of: LeafArrays,
    node: int,
    by_bayes: bool,
    first: int,
    rows: Floats,
    x: Floats,
    columns: Integers,
    changed: Integers,
    reached: Integers,
    two: float,
    seen: Flags,
    own: Floats,
    terms: Floats,
    given: Floats,
) -> int:
    """Fill in the predictions on the rows that reach a leaf, from the first on.

    What the observation's own values add to the votes is computed once. Rows that are done reach
    -1.
    """
    leaf, status, answered, marks = of.leaf[node], DONE, -1, 0
    if by_bayes:
        marks = see_columns(of, leaf, columns, seen)
        for place in range(of.n_observed[leaf]):
            for c in range(given.shape[1]):
                own[place, c] = NOTHING
        fill_terms(of, leaf, x, 0, columns, -1, two, own, own)
    for row in range(first, len(rows)):
        if reached[row] != node:
            continue
        reached[row] = -1
        which = changed[row, 1]
        is_own = not changed[row, 0] & marks or (which >= 0 and not seen[which])
        if is_own and answered >= 0:
            for c in range(given.shape[1]):
                given[row, c] = given[answered, c]
            continue
        answered = row if is_own else answered
        if by_bayes:
            fill_terms(of, leaf, rows, row, columns, changed[row, 0], two, own, terms)
            status = max(status, vote_again(of, node, terms, given[row]))
        else:
            majority(of.n_classes[node], of.order[node], of.weight[node], given[row])
    return status


@borrowing
def answer_leaves(
    of: LeafArrays,
    prediction: int,
    threshold: float,
    two: float,
    rows: Floats,
    x: Floats,
    columns: Integers,
    changed: Integers,
    reached: Integers,
    seen: Flags,
    own: Floats,
    terms: Floats,
    given: Floats,
) -> int:
    """Fill in the predictions of the leaves that the rows reach."""
    status = DONE
    for first in range(len(rows)):
        node = reached[first]
        if node >= 0:
            leaf, weight = of.leaf[node], total(of.n_classes[node], of.order[node], of.weight[node])
            active, right = of.is_active[leaf], of.correct[leaf]
            by_bayes = weight != 0.0 and is_bayes(prediction, threshold, active, right, weight)
            part = answer_leaf(
                *(of, node, by_bayes, first, rows, x, columns, changed, reached, two),
                *(seen, own, terms, given),
            )
            status = max(status, part)
    return status


@compiled
def answer_tree(
    state: State,
    tree: int,
    rows: Floats,
    x: Floats,
    columns: Integers,
    changed: Integers,
    given: Floats,
) -> int:
    """Fill in a tree's predictions on the rows, shape (rows, classes); return DONE or OVERFLOW.

    Loops take the arrays that they need: taking one from the state counts its references, which
    costs as much as a term of a vote.
    """
    root, settings = state.trees.root[tree], state.settings
    given[:] = 0.0
    if root < 0:
        return DONE
    nodes, leaves, observers, entries = state.nodes, state.leaves, state.observers, state.entries
    reached = leaves_of(state, root, rows, x, columns, changed)
    of = LeafArrays(
        *(nodes.leaf, nodes.n_classes, nodes.order, nodes.weight, nodes.prior),
        *(leaves.is_active, leaves.correct, leaves.observed, leaves.n_observed),
        *(observers.known, observers.gaussian, observers.terms, observers.first),
        *(entries.category, entries.weight, entries.following, settings.nominal),
    )
    own, terms = np.empty((2, leaves.observed.shape[1], given.shape[1]))
    prediction, threshold, alone = settings.prediction, settings.nb_threshold, x.reshape(1, len(x))
    return answer_leaves(
        *(of, prediction, threshold, settings.two, rows, alone, columns, changed, reached),
        *(np.empty(len(x), np.bool_), own, terms, given),
    )


@compiled
def answer_forest(
    state: State,
    mains: Integers,
    weights: Floats,
    rows: Floats,
    x: Floats,
    columns: Integers,
    votes: Floats,
    order: Integers,
) -> tuple[int, int]:
    """Fill in the forest's shares on the rows, shape (rows, classes), and the order of the classes.

    Returns how many classes there are, and DONE or OVERFLOW.
    """
    changed, given = np.empty((rows.shape[0], 2), np.int64), np.empty(votes.shape)
    n, status = class_order(state, mains, order), DONE
    changed_columns(rows, x, changed)
    for i in range(len(mains)):
        status = max(status, answer_tree(state, mains[i], rows, x, columns, changed, given))
        for row in range(rows.shape[0]):
            for k in range(n):
                votes[row, order[k]] += given[row, order[k]] * weights[i]
    for row in range(rows.shape[0]):
        divide(votes[row], order[:n])
    return n, status

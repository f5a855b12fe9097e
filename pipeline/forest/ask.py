"""What a model's trees answer about many inputs of one observation."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import category_share, freshen, has_votes, log_density, normalize
from fluxplain.forest.learn import DONE, OVERFLOW, class_order, divide, is_bayes, predict_leaf
from fluxplain.forest.places import copy_into, fill
from fluxplain.forest.state import LEAF, MEAN, NUMERIC, Flags, Integers, Kinds, Nodes, State
from fluxplain.forest.walk import common_way, leaf_of, way

BITS = 62
"""Number of bits that mark columns. Further columns share bits, which only costs time."""

NOTHING = math.inf
"""Instead of a term where a feature adds nothing to a vote, not even 0."""


@compiled
def changed_columns(rows: Floats, x: Floats, changed: Integers) -> None:
    """Mark the columns in which each row differs from the observation, shape (rows,)."""
    for row in range(rows.shape[0]):
        marks = 0
        for column in range(rows.shape[1]):
            if rows[row, column] != x[column]:
                marks |= 1 << column % BITS
        changed[row] = marks


@compiled
def own_path(state: State, root: int, x: Floats, columns: Integers) -> tuple[int, int]:
    """Return the leaf of the observation itself, and marks of the columns that its path tests."""
    nodes, node, tested = state.nodes, root, 0
    while nodes.kind[node] != LEAF:
        column = columns[nodes.feature[node]]
        if column >= 0:
            tested |= 1 << column % BITS
        following = way(state, node, x, columns)
        node = following if following >= 0 else common_way(state, node)
    return node, tested


@compiled
def observed_columns(state: State, leaf: int, columns: Integers) -> int:
    """Return marks of the columns that a leaf observes."""
    marks = 0
    for place in range(state.leaves.n_observed[leaf]):
        column = columns[state.leaves.observed[leaf, place]]
        if column >= 0:
            marks |= 1 << column % BITS
    return marks


@compiled
def reach(
    kind: Kinds,
    feature: Integers,
    test: Floats,
    below: Integers,
    root: int,
    x: Floats,
    columns: Integers,
) -> int:
    """Return the leaf of an input, or the first node on its way that is no simple test of it."""
    node = root
    while kind[node] == NUMERIC:
        column = columns[feature[node]]
        if column < 0:
            break
        node = below[node, 0 if x[column] <= test[node] else 1]
    return node


@compiled
def number_term(knows: bool, gaussian: Floats, terms: Floats, value: float, two: float) -> float:
    """Return what a number adds to the vote for a class; NaN where River would raise."""
    if not knows:
        return NOTHING
    density = log_density(gaussian[MEAN], terms, value, two)
    return density if density > -np.inf or math.isnan(density) else NOTHING


@compiled
def category_term(state: State, leaf: int, place: int, c: int, value: float) -> float:
    """Return what a category adds to the vote for a class."""
    share = category_share(state.entries, state.observers.first[leaf, place, c], value)
    return math.log(share) if share > 0.0 else 0.0


@compiled
def fill_terms(
    state: State, leaf: int, x: Floats, columns: Integers, changed: int, terms: Floats
) -> None:
    """Fill in what the changed columns add to the votes, shape (observers, classes)."""
    observed, observers, nominal = state.leaves.observed, state.observers, state.settings.nominal
    known, gaussian, logs = observers.known, observers.gaussian, observers.terms
    two = state.settings.two
    for place in range(state.leaves.n_observed[leaf]):
        feature = observed[leaf, place]
        column = columns[feature]
        if column < 0 or not changed & (1 << column % BITS):
            continue
        for c in range(terms.shape[1]):
            if nominal[feature]:
                terms[place, c] = category_term(state, leaf, place, c, x[column])
            else:
                terms[place, c] = number_term(
                    known[leaf, place, c],
                    gaussian[leaf, place, c],
                    logs[leaf, place, c],
                    x[column],
                    two,
                )


@compiled
def vote_again(nodes: Nodes, node: int, n_observed: int, terms: Floats, shares: Floats) -> int:
    """Fill in the shares by naive Bayes, from the terms; see :func:`bayes`."""
    highest, order, weight, prior = -np.inf, nodes.order, nodes.weight, nodes.prior
    for k in range(nodes.n_classes[node]):
        c = order[node, k]
        shares[c] = 0.0
        if weight[node, c] > 0.0:
            vote = prior[node, c]
            if vote == -np.inf:
                return OVERFLOW
            for place in range(n_observed):
                if math.isnan(terms[place, c]):
                    return OVERFLOW
                if terms[place, c] != NOTHING:
                    vote += terms[place, c]
            shares[c] = vote
        highest = max(highest, shares[c])
    normalize(nodes, node, highest, shares)
    return DONE


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

    What is known of the observation's own leaf is kept, and of the last other one.
    """
    nodes, root, status = state.nodes, state.trees.root[tree], DONE
    kind, feature, test, below = nodes.kind, nodes.feature, nodes.test, nodes.below
    for row in range(rows.shape[0]):
        fill(given[row], 0.0)
    if root < 0:
        return DONE
    own, tested = own_path(state, root, x, columns)
    of = np.array([own, -1])
    by_bayes, seen, has_own = np.zeros(2, np.bool_), np.zeros(2, np.int64), np.zeros(2, np.bool_)
    known = np.empty((2, state.leaves.observed.shape[1], given.shape[1]))
    terms, shares = np.empty(known.shape[1:]), np.zeros((2, given.shape[1]))
    prepare(state, own, x, columns, 0, by_bayes, seen, known)
    for row in range(rows.shape[0]):
        node = own
        if changed[row] & tested:
            node = reach(kind, feature, test, below, root, rows[row], columns)
            if kind[node] != LEAF:
                node = leaf_of(state, node, rows[row], columns)
        slot = 0 if node == own else 1
        if of[slot] != node:
            of[slot], has_own[slot] = node, False
            prepare(state, node, x, columns, slot, by_bayes, seen, known)
        if by_bayes[slot] and changed[row] & seen[slot]:
            leaf = nodes.leaf[node]
            n = state.leaves.n_observed[leaf]
            for place in range(n):
                for c in range(given.shape[1]):
                    terms[place, c] = known[slot, place, c]
            fill_terms(state, leaf, rows[row], columns, changed[row], terms)
            status = max(status, vote_again(nodes, node, n, terms, given[row]))
            continue
        if not has_own[slot]:
            has_own[slot] = True
            fill(shares[slot], 0.0)
            status = max(status, predict_leaf(state, node, rows[row], columns, False, shares[slot]))
        copy_into(given[row], shares[slot])
    return status


@compiled
def prepare(
    state: State,
    node: int,
    x: Floats,
    columns: Integers,
    slot: int,
    by_bayes: Flags,
    seen: Integers,
    known: Floats,
) -> None:
    """Fill in whether a leaf predicts by naive Bayes, the columns that it sees, and its terms."""
    leaf = state.nodes.leaf[node]
    by_bayes[slot] = is_bayes(state, node) and has_votes(state.nodes, node)
    seen[slot] = observed_columns(state, leaf, columns)
    if by_bayes[slot]:
        freshen(state, node)
        for place in range(state.leaves.n_observed[leaf]):
            fill(known[slot, place], NOTHING)
        fill_terms(state, leaf, x, columns, -1, known[slot])


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
    changed, given = np.empty(rows.shape[0], np.int64), np.empty(votes.shape)
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

"""What an adaptive tree answers: the weighted predictions of leaves, added up.

These are the leaf that an input reaches, and the alternate trees of the branches on its way.
"""

import math

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.ask import answer_reached, freshen_all, in_order
from fluxplain.forest.learn import DONE, MISSING
from fluxplain.forest.reach import LONGEST, changed_columns, leaves_of, mark_of
from fluxplain.forest.state import ERROR, LEAF, Integers, State
from fluxplain.forest.summing import total_at
from fluxplain.forest.walk import common_way, way
from fluxplain.forest.weighing import predict_weighted, weigh


@compiled
def combined(state: State, x: Floats, columns: Integers, found: Integers) -> tuple[int, int]:
    """Fill in the leaves whose predictions are added up for an input, in River's order.

    Returns how many they are, also if there is no room for all, and marks of the columns that are
    tested on the way. Behind a branch that has no way for the input, River counts an alternate tree
    twice.
    """
    kind, alternate = state.nodes.kind, state.adaptive.alternate
    node, n, marks, times = state.trees.root[0], 0, 0, 1
    while kind[node] != LEAF:
        for _ in range(times if alternate[node] >= 0 else 0):
            if n < len(found):
                found[n] = alternate[node]
            n += 1
        column, following = columns[state.nodes.feature[node]], way(state, node, x, columns)
        marks |= mark_of(column) if column >= 0 else 0
        times = 2 if following < 0 else 1
        node = following if following >= 0 else common_way(state, node)
    if n < len(found):
        found[n] = node
    return n + 1, marks


@compiled
def combined_leaves(state: State, x: Floats, columns: Integers) -> Integers:
    """Return the leaves whose predictions are added up for an input; see :func:`combined`."""
    found = np.empty(LONGEST, np.int64)
    n, _ = combined(state, x, columns, found)
    if n > len(found):
        found = np.empty(n, np.int64)
        combined(state, x, columns, found)
    return found[:n]


@borrowing
def divide_by_sum(order: Integers, votes: Floats) -> None:
    """Divide votes by their sum, added in order, unless it is 0."""
    together = total_at(len(order), order, votes)
    if together == 0.0 or math.isnan(together):
        return
    scale = 1.0 / together
    for c in order:
        votes[c] *= scale


@compiled
def predict_adaptive(
    state: State, x: Floats, columns: Integers, order: Integers, given: Floats
) -> int:
    """Fill in the tree's prediction, in the order of River's answer; return a status.

    ``order`` are its classes.
    """
    if state.trees.root[0] < 0:
        return DONE
    votes, shares = np.zeros(state.nodes.weight.shape[1]), np.empty(state.nodes.weight.shape[1])
    for leaf in combined_leaves(state, x, columns):
        status = predict_weighted(state, leaf, x, columns, shares)
        if status != DONE:
            return status
        for c in range(len(votes)):
            votes[c] += shares[c]
    divide_by_sum(order, votes)
    for k in range(len(order)):
        given[k] = votes[order[k]]
    return DONE


@compiled
def all_combined(
    state: State, rows: Floats, x: Floats, columns: Integers, changed: Integers
) -> Integers:
    """Return the leaves of each row, shape (rows, leaves), -1 behind its last one.

    A row in which no tested column is changed has the leaves of the observation.
    """
    found, most = np.empty(LONGEST, np.int64), 1
    own = combined_leaves(state, x, columns)
    _, marks = combined(state, x, columns, found)
    for row in range(len(rows)):
        if changed[row, 0] & marks:
            most = max(most, combined(state, rows[row], columns, found)[0])
    reached = np.full((len(rows), max(most, len(own))), -1)
    for row in range(len(rows)):
        if changed[row, 0] & marks:
            combined(state, rows[row], columns, reached[row])
            continue
        for k in range(len(own)):
            reached[row, k] = own[k]
    return reached


@compiled
def leaves_to_add(
    state: State, rows: Floats, x: Floats, columns: Integers, changed: Integers
) -> Integers:
    """Return the leaves of each row as :func:`all_combined`, in less time if each has one."""
    if np.any(state.adaptive.alternate >= 0):
        return all_combined(state, rows, x, columns, changed)
    alone = leaves_of(state, state.trees.root[0], rows, x, columns, changed)
    return alone.reshape(len(rows), 1)


@compiled
def answer_adaptive(
    state: State, rows: Floats, x: Floats, columns: Integers, order: Integers
) -> tuple[Floats, int]:
    """Return the tree's shares of the classes on the rows, and a status."""
    changed, status = np.empty((len(rows), 2), np.int64), DONE
    votes = np.zeros((len(rows), state.nodes.weight.shape[1]))
    given = np.empty(votes.shape)
    if state.trees.root[0] < 0:
        return in_order(votes, order), DONE
    changed_columns(rows, x, changed)
    reached = leaves_to_add(state, rows, x, columns, changed)
    for k in range(reached.shape[1]):
        given[:] = 0.0
        leaves = reached[:, k].copy()
        freshen_all(state, leaves)
        status = max(
            status,
            answer_reached(state, leaves, rows, x, columns, changed, given),
            add_weighted(state, leaves, given, votes),
        )
    for row in range(len(rows)):
        divide_by_sum(order, votes[row])
    return in_order(votes, order), status


@compiled
def add_weighted(state: State, reached: Integers, given: Floats, votes: Floats) -> int:
    """Add what the leaf of each row predicts to the votes; return a status."""
    status, errors = DONE, state.adaptive.errors
    n_classes, order = state.nodes.n_classes, state.nodes.order
    for row in range(len(reached)):
        leaf = reached[row]
        if leaf < 0:
            continue
        status = MISSING if n_classes[leaf] == 0 else status
        weigh(n_classes[leaf], order[leaf], errors[leaf, ERROR], given[row])
        for c in range(votes.shape[1]):
            votes[row, c] += given[row, c]
    return status

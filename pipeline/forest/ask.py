"""What a model's trees answer about many inputs of one observation."""

import math
from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled, inlined
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import (
    category_term,
    freshen,
    is_bayes,
    log_density,
    majority,
    normalize,
)
from fluxplain.forest.learn import DONE, OVERFLOW, class_order, divide
from fluxplain.forest.reach import changed_columns, group_rows, leaves_of, mark_of
from fluxplain.forest.state import MEAN, Flags, Integers, State
from fluxplain.forest.summing import mixed_total_at


class LeafArrays(NamedTuple):
    """The arrays that predictions of leaves need; see :mod:`fluxplain.forest.state`."""

    leaf: Integers
    n_classes: Integers
    order: Integers
    weight: Floats
    is_integer: Flags
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


@compiled
def freshen_all(state: State, reached: Integers) -> None:
    """Compute the logarithms that the leaves need, -1 aside; see :func:`freshen`."""
    leaf, is_fresh = state.nodes.leaf, state.leaves.is_fresh
    for node in reached:
        if node >= 0 and not is_fresh[leaf[node]]:
            freshen(state, node)


@inlined
def fill_term(
    of: LeafArrays, leaf: int, place: int, value: float, two: float, term: Floats
) -> None:
    """Fill in what a feature's value adds to the vote for each class, shape (classes,).

    NaN where River would raise, 0 where it adds nothing.
    """
    is_nominal = of.nominal[of.observed[leaf, place]]
    for c in range(len(term)):
        term[c] = 0.0
        if is_nominal:
            first, together = of.first[leaf, place, c], of.logs[leaf, place, c, 0]
            term[c] = category_term(
                of.category, of.entry_weight, of.following, first, together, value
            )
        elif of.known[leaf, place, c]:
            mean = of.gaussian[leaf, place, c, MEAN]
            double, half_log = of.logs[leaf, place, c, 0], of.logs[leaf, place, c, 1]
            density = log_density(mean, double, half_log, value, two)
            term[c] = 0.0 if density == -np.inf else density


@inlined
def fill_terms(
    of: LeafArrays, leaf: int, x: Floats, columns: Integers, two: float, terms: Floats
) -> None:
    """Fill in what an input's values add to the votes, shape (observers, classes)."""
    for place in range(of.n_observed[leaf]):
        column = columns[of.observed[leaf, place]]
        if column >= 0:
            fill_term(of, leaf, place, x[column], two, terms[place])
        else:
            terms[place] = 0.0


@inlined
def vote(of: LeafArrays, node: int, terms: Floats, shares: Floats) -> int:
    """Fill in the shares by naive Bayes, from the terms of a leaf; see :func:`bayes`."""
    highest, n_terms = -np.inf, of.n_observed[of.leaf[node]]
    for k in range(of.n_classes[node]):
        c, found = of.order[node, k], 0.0
        if of.weight[node, c] > 0.0:
            found = of.prior[node, c]
            for place in range(n_terms):
                found += terms[place, c]
            if math.isnan(found) or of.prior[node, c] == -np.inf:
                return OVERFLOW
        shares[c] = found
        highest = max(highest, found)
    normalize(of.n_classes[node], of.order[node], highest, shares)
    return DONE


@inlined
def vote_changed(
    of: LeafArrays,
    node: int,
    row: Floats,
    columns: Integers,
    changed: Integers,
    two: float,
    own: Floats,
    terms: Floats,
    shares: Floats,
) -> int:
    """Fill in the shares of a row, where ``own`` are the observation's terms, and ``terms`` too."""
    leaf = of.leaf[node]
    for place in range(of.n_observed[leaf]):
        column = columns[of.observed[leaf, place]]
        if column >= 0 and changed[0] & mark_of(column):
            fill_term(of, leaf, place, row[column], two, terms[place])
    status = vote(of, node, terms, shares)
    for place in range(of.n_observed[leaf]):
        column = columns[of.observed[leaf, place]]
        if column >= 0 and changed[0] & mark_of(column):
            for c in range(terms.shape[1]):
                terms[place, c] = own[place, c]
    return status


@borrowing
def answer_alike(
    of: LeafArrays,
    node: int,
    by_bayes: bool,
    row: int,
    rows: Floats,
    x: Floats,
    columns: Integers,
    changed: Integers,
    following: Integers,
    two: float,
    seen: Flags,
    own: Floats,
    terms: Floats,
    given: Floats,
) -> int:
    """Fill in the predictions on the rows that reach a leaf, from the first on.

    What the observation's own values add to the votes is computed once.
    """
    leaf, status, answered, marks = of.leaf[node], DONE, -1, 0
    if by_bayes:
        fill_terms(of, leaf, x, columns, two, own)
        seen[:] = False
        for place in range(of.n_observed[leaf]):
            column = columns[of.observed[leaf, place]]
            if column >= 0:
                marks |= mark_of(column)
                seen[column] = True
            for c in range(terms.shape[1]):
                terms[place, c] = own[place, c]
    while row >= 0:
        which = changed[row, 1]
        is_own = not changed[row, 0] & marks or (which >= 0 and not seen[which])
        if is_own and answered >= 0:
            for c in range(given.shape[1]):
                given[row, c] = given[answered, c]
        elif by_bayes:
            part = vote_changed(
                of, node, rows[row], columns, changed[row], two, own, terms, given[row]
            )
            status = max(status, part)
        else:
            n_classes, order, is_integer = of.n_classes[node], of.order[node], of.is_integer[node]
            majority(n_classes, order, of.weight[node], is_integer, given[row])
        answered = row if is_own and answered < 0 else answered
        row = following[row]
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
    links: Integers,
    seen: Flags,
    own: Floats,
    terms: Floats,
    given: Floats,
) -> int:
    """Fill in the predictions of the leaves that the rows reach."""
    status, following = DONE, links[3]
    for group in range(group_rows(reached, links[0], links[1], links[2], following)):
        node, row = links[0, group], links[1, group]
        leaf = of.leaf[node]
        weight = mixed_total_at(
            of.n_classes[node], of.order[node], of.weight[node], of.is_integer[node]
        )
        active, right = of.is_active[leaf], of.correct[leaf]
        by_bayes = weight != 0.0 and is_bayes(prediction, threshold, active, right, weight)
        if following[row] >= 0 or not by_bayes:
            part = answer_alike(
                *(of, node, by_bayes, row, rows, x, columns, changed, following, two),
                *(seen, own, terms, given),
            )
        else:
            fill_terms(of, leaf, rows[row], columns, two, terms)
            part = vote(of, node, terms, given[row])
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
    """Fill in a tree's predictions on the rows, shape (rows, classes); return DONE or OVERFLOW."""
    root = state.trees.root[tree]
    given[:] = 0.0
    if root < 0:
        return DONE
    reached = leaves_of(state, root, rows, x, columns, changed)
    freshen_all(state, reached)
    return answer_reached(state, reached, rows, x, columns, changed, given)


@compiled
def answer_reached(
    state: State,
    reached: Integers,
    rows: Floats,
    x: Floats,
    columns: Integers,
    changed: Integers,
    given: Floats,
) -> int:
    """Fill in the predictions of the leaf that each row reaches, if any.

    Loops take the arrays that they need: taking one from the state counts its references, which
    costs as much as a term of a vote.
    """
    nodes, leaves, observers, entries = state.nodes, state.leaves, state.observers, state.entries
    settings = state.settings
    of = LeafArrays(
        *(nodes.leaf, nodes.n_classes, nodes.order, nodes.weight, nodes.is_integer, nodes.prior),
        *(leaves.is_active, leaves.correct, leaves.observed, leaves.n_observed),
        *(observers.known, observers.gaussian, observers.terms, observers.first),
        *(entries.category, entries.weight, entries.following, settings.nominal),
    )
    own, terms = np.empty((2, leaves.observed.shape[1], given.shape[1]))
    links, seen = np.empty((4, len(rows)), np.int64), np.empty(len(x), np.bool_)
    return answer_leaves(
        *(of, settings.prediction, settings.nb_threshold, settings.two),
        *(rows, x),
        *(columns, changed, reached, links),
        seen,
        *(own, terms, given),
    )


@compiled
def in_order(shares: Floats, order: Integers) -> Floats:
    """Return some classes' shares, shape (rows, classes), in less time than NumPy for a few."""
    found = np.empty((len(shares), len(order)))
    for row in range(len(shares)):
        for k in range(len(order)):
            found[row, k] = shares[row, order[k]]
    return found


@compiled
def answer_alone(
    state: State, tree: int, rows: Floats, x: Floats, columns: Integers, order: Integers
) -> tuple[Floats, int]:
    """Return a tree's shares of the classes on the rows, and DONE or OVERFLOW."""
    changed = np.empty((rows.shape[0], 2), np.int64)
    given = np.empty((rows.shape[0], state.nodes.weight.shape[1]))
    changed_columns(rows, x, changed)
    status = answer_tree(state, tree, rows, x, columns, changed, given)
    return in_order(given, order), status


@compiled
def answer_forest(
    state: State,
    mains: Integers,
    weights: Floats,
    rows: Floats,
    x: Floats,
    columns: Integers,
    order: Integers,
) -> tuple[Floats, int]:
    """Return the forest's shares of the classes on the rows, and DONE or OVERFLOW.

    Fills in the order of the classes, of which the shares may have fewer.
    """
    changed, given = np.empty((rows.shape[0], 2), np.int64), np.empty((rows.shape[0], len(order)))
    n, status, votes = class_order(state, mains, order), DONE, np.zeros(given.shape)
    changed_columns(rows, x, changed)
    for i in range(len(mains)):
        status = max(status, answer_tree(state, mains[i], rows, x, columns, changed, given))
        for row in range(rows.shape[0]):
            for k in range(n):
                votes[row, order[k]] += given[row, order[k]] * weights[i]
    for row in range(rows.shape[0]):
        divide(votes[row], order[:n])
    return in_order(votes, order[:n]), status

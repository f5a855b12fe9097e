"""Predictions of a leaf: by its majority, or by naive Bayes, as River computes them."""

import math

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import (
    BAYES,
    MAJORITY,
    MEAN,
    MEAN_N,
    SQUARES,
    Integers,
    Nodes,
    State,
)

HALF_LOG_TAU = 0.5 * math.log(math.tau)


@borrowing
def total(n_classes: int, order: Integers, weight: Floats) -> float:
    """Return the weight of ``n_classes`` classes, added in their order."""
    found = 0.0
    for k in range(n_classes):
        found += weight[order[k]]
    return found


@compiled
def total_of(nodes: Nodes, node: int) -> float:
    """Return a node's weight."""
    return total(nodes.n_classes[node], nodes.order[node], nodes.weight[node])


@compiled
def first_best(nodes: Nodes, node: int, shares: Floats) -> int:
    """Return the class with the largest share, the first of several in the node's order."""
    best = -1
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        if best < 0 or shares[c] > shares[best]:
            best = c
    return best


@borrowing
def majority(n_classes: int, order: Integers, weight: Floats, shares: Floats) -> None:
    """Fill in the shares of the classes that a node knows, shape (classes,)."""
    found = total(n_classes, order, weight)
    scale = 1.0 if found == 0.0 or math.isnan(found) else 1.0 / found
    for k in range(n_classes):
        shares[order[k]] = weight[order[k]] * scale


@compiled
def freshen(state: State, node: int) -> None:
    """Compute the logarithms that naive Bayes needs, if the leaf has learned since."""
    nodes, leaves, observers = state.nodes, state.leaves, state.observers
    leaf = nodes.leaf[node]
    if leaves.is_fresh[leaf]:
        return
    leaves.is_fresh[leaf] = True
    whole = total_of(nodes, node)
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        weight = nodes.weight[node, c]
        nodes.prior[node, c] = math.log(weight / whole) if weight > 0.0 else 0.0
        for place in range(leaves.n_observed[leaf]):
            seen, n = observers.gaussian[leaf, place, c], observers.gaussian[leaf, place, c, MEAN_N]
            terms = observers.terms[leaf, place, c]
            variance = seen[SQUARES] / (n - 1.0) if n > 1.0 else 0.0
            terms[0] = -2.0 * variance if variance > 0.0 else 0.0
            terms[1] = 0.5 * math.log(variance) if variance > 0.0 else 0.0


@borrowing
def log_density(mean: float, double: float, half_log: float, value: float, two: float) -> float:
    """Return the logarithm of a normal density; NaN where Python's power overflows.

    -inf if there is none, also for NaN, which River leaves out as well. ``double`` is -2 variance,
    0 without one, ``half_log`` half the variance's logarithm. ``two`` is 2.0: as a constant, the
    compiler would square differently from Python.
    """
    distance = value - mean
    if double == 0.0 or math.isnan(distance):
        return -math.inf
    squared = math.pow(distance, two)
    if math.isinf(squared) and math.isfinite(distance):
        return math.nan
    return float(squared / double - HALF_LOG_TAU - half_log)


@compiled
def know_class(state: State, leaf: int, place: int, c: int) -> None:
    """Append a class to those that an observer knows, if it is new."""
    observers = state.observers
    if not observers.known[leaf, place, c]:
        observers.known[leaf, place, c] = True
        observers.order[leaf, place, observers.n_classes[leaf, place]] = c
        observers.n_classes[leaf, place] += 1


@borrowing
def category_term(
    category: Integers, weight: Floats, following: Integers, first: int, value: float
) -> float:
    """Return the logarithm of a category's share of the weights in a list; 0 without any.

    The arrays are those of the entries, ``first`` is that of the list.
    """
    found, together, entry = -1, 0.0, first
    while entry >= 0:
        if category[entry] == value:
            found = entry
        together += weight[entry]
        entry = following[entry]
    if found < 0 or together == 0.0:
        return 0.0
    share = weight[found] / together
    return math.log(share) if share > 0.0 else 0.0


@compiled
def vote_of(state: State, node: int, c: int, x: Floats, columns: Integers, learns: bool) -> float:
    """Return the logarithm of a class's share times the densities; NaN if River would raise."""
    leaves, observers, entries = state.leaves, state.observers, state.entries
    leaf, vote = state.nodes.leaf[node], state.nodes.prior[node, c]
    if vote == -np.inf:
        return math.nan
    for place in range(leaves.n_observed[leaf]):
        feature = leaves.observed[leaf, place]
        column = columns[feature]
        if column < 0:
            continue
        if state.settings.nominal[feature]:
            if learns:
                know_class(state, leaf, place, c)
            first = observers.first[leaf, place, c]
            vote += category_term(
                entries.category, entries.weight, entries.following, first, x[column]
            )
        elif observers.known[leaf, place, c]:
            density = log_density(
                observers.gaussian[leaf, place, c, MEAN],
                observers.terms[leaf, place, c, 0],
                observers.terms[leaf, place, c, 1],
                x[column],
                state.settings.two,
            )
            if math.isnan(density):
                return math.nan
            if density > -np.inf:
                vote += density
    return float(vote)


@borrowing
def normalize(n_classes: int, order: Integers, highest: float, shares: Floats) -> None:
    """Turn the logarithms of votes, of which one is the highest, into shares that sum to 1."""
    together = 0.0
    for k in range(n_classes):
        below = shares[order[k]] - highest
        together += 1.0 if below == 0.0 else math.exp(below)
    together = highest + math.log(together)
    for k in range(n_classes):
        shares[order[k]] = math.exp(shares[order[k]] - together)


@borrowing
def is_bayes(
    prediction: int, threshold: float, is_active: bool, correct: Floats, weight: float
) -> bool:
    """Return whether a leaf predicts by naive Bayes, not by its majority.

    ``correct`` are the weights that each has predicted rightly, ``weight`` is the leaf's.
    """
    if prediction == MAJORITY or not is_active:
        return False
    if prediction == BAYES:
        return weight >= threshold
    return bool(correct[1] >= correct[0])


@compiled
def bayes(
    state: State, node: int, x: Floats, columns: Integers, learns: bool, shares: Floats
) -> int:
    """Fill in the shares by naive Bayes; return 0 if there are none, 1, or 2 if River would raise.

    If ``learns``, observers of categories come to know the class, as River's do when asked.
    """
    nodes = state.nodes
    if nodes.n_classes[node] == 0 or total_of(nodes, node) == 0.0:
        return 0
    freshen(state, node)
    highest = -np.inf
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        shares[c] = 0.0
        if nodes.weight[node, c] > 0.0:
            shares[c] = vote_of(state, node, c, x, columns, learns)
            if math.isnan(shares[c]):
                return 2
        highest = max(highest, shares[c])
    normalize(nodes.n_classes[node], nodes.order[node], highest, shares)
    return 1

"""Predictions of a leaf: by its majority, or by naive Bayes, as River computes them."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import (
    MEAN,
    MEAN_N,
    SQUARES,
    Entries,
    Integers,
    Nodes,
    Observers,
    State,
)

HALF_LOG_TAU = 0.5 * math.log(math.tau)


@compiled
def total_of(nodes: Nodes, node: int) -> float:
    """Return a node's weight, added in the order of its classes."""
    total = 0.0
    for k in range(nodes.n_classes[node]):
        total += nodes.weight[node, nodes.order[node, k]]
    return total


@compiled
def first_best(nodes: Nodes, node: int, shares: Floats) -> int:
    """Return the class with the largest share, the first of several in the node's order."""
    best = -1
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        if best < 0 or shares[c] > shares[best]:
            best = c
    return best


@compiled
def majority(nodes: Nodes, node: int, shares: Floats) -> None:
    """Fill in the shares of the classes that the node knows, shape (classes,)."""
    total = total_of(nodes, node)
    scale = 1.0 if total == 0.0 or math.isnan(total) else 1.0 / total
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        shares[c] = nodes.weight[node, c] * scale


@compiled
def freshen(state: State, node: int) -> None:
    """Compute the logarithms that naive Bayes needs, if the leaf has learned since."""
    nodes, leaves, observers = state.nodes, state.leaves, state.observers
    leaf = nodes.leaf[node]
    if leaves.is_fresh[leaf]:
        return
    leaves.is_fresh[leaf] = True
    total = total_of(nodes, node)
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        weight = nodes.weight[node, c]
        nodes.prior[node, c] = math.log(weight / total) if weight > 0.0 else 0.0
        for place in range(leaves.n_observed[leaf]):
            seen, n = observers.gaussian[leaf, place, c], observers.gaussian[leaf, place, c, MEAN_N]
            terms = observers.terms[leaf, place, c]
            variance = seen[SQUARES] / (n - 1.0) if n > 1.0 else 0.0
            terms[0] = -2.0 * variance if variance > 0.0 else 0.0
            terms[1] = 0.5 * math.log(variance) if variance > 0.0 else 0.0


@compiled
def log_density(mean: float, terms: Floats, value: float, two: float) -> float:
    """Return the logarithm of a normal density; NaN where Python's power overflows.

    -inf if there is none, also for NaN, which River leaves out as well. ``two`` is 2.0: as a
    constant, the compiler would square differently from Python.
    """
    distance = value - mean
    if terms[0] == 0.0 or math.isnan(distance):
        return -math.inf
    squared = math.pow(distance, two)
    if math.isinf(squared) and math.isfinite(distance):
        return math.nan
    return float(squared / terms[0] - HALF_LOG_TAU - terms[1])


@compiled
def know_class(observers: Observers, leaf: int, place: int, c: int) -> None:
    """Append a class to those that an observer knows, if it is new."""
    if not observers.known[leaf, place, c]:
        observers.known[leaf, place, c] = True
        observers.order[leaf, place, observers.n_classes[leaf, place]] = c
        observers.n_classes[leaf, place] += 1


@compiled
def category_share(entries: Entries, first: int, value: float) -> float:
    """Return a category's share of the weights in a list; 0 if it is not there."""
    found, total, entry = -1, 0.0, first
    while entry >= 0:
        if entries.category[entry] == value:
            found = entry
        total += entries.weight[entry]
        entry = entries.following[entry]
    if found < 0 or total == 0.0:
        return 0.0
    return float(entries.weight[found] / total)


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
                know_class(observers, leaf, place, c)
            share = category_share(entries, observers.first[leaf, place, c], x[column])
            vote += math.log(share) if share > 0.0 else 0.0
        elif observers.known[leaf, place, c]:
            density = log_density(
                observers.gaussian[leaf, place, c, MEAN],
                observers.terms[leaf, place, c],
                x[column],
                state.settings.two,
            )
            if math.isnan(density):
                return math.nan
            if density > -np.inf:
                vote += density
    return float(vote)


@compiled
def has_votes(nodes: Nodes, node: int) -> bool:
    """Return whether naive Bayes has anything to say."""
    return nodes.n_classes[node] > 0 and total_of(nodes, node) != 0.0


@compiled
def normalize(nodes: Nodes, node: int, highest: float, shares: Floats) -> None:
    """Turn the logarithms of votes, of which one is the highest, into shares that sum to 1."""
    together = 0.0
    for k in range(nodes.n_classes[node]):
        below = shares[nodes.order[node, k]] - highest
        together += 1.0 if below == 0.0 else math.exp(below)
    together = highest + math.log(together)
    for k in range(nodes.n_classes[node]):
        c = nodes.order[node, k]
        shares[c] = math.exp(shares[c] - together)


@compiled
def bayes(
    state: State, node: int, x: Floats, columns: Integers, learns: bool, shares: Floats
) -> int:
    """Fill in the shares by naive Bayes; return 0 if there are none, 1, or 2 if River would raise.

    If ``learns``, observers of categories come to know the class, as River's do when asked.
    """
    nodes = state.nodes
    if not has_votes(nodes, node):
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
    normalize(nodes, node, highest, shares)
    return 1

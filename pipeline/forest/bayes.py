"""Predictions of a leaf: by its majority, or by naive Bayes, as River computes them."""

import math
import sys

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.state import (
    BAYES,
    MAJORITY,
    MEAN,
    MEAN_N,
    SQUARES,
    Entries,
    Flags,
    Integers,
    Nodes,
    State,
)
from fluxplain.forest.summing import Sum, mixed_total_at, plus, value_of

HALF_LOG_TAU = 0.5 * math.log(math.tau)

IS_PRECISE = sys.platform == "linux"
"""Whether the error of the system's power is known: glibc and musl have the same one."""

LEAST_PRODUCT = 1e-250
"""Products below may have errors that no float holds."""


@compiled
def total_of(nodes: Nodes, node: int) -> float:
    """Return a node's weight."""
    return mixed_total_at(
        nodes.n_classes[node], nodes.order[node], nodes.weight[node], nodes.is_integer[node]
    )


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
def majority(
    n_classes: int, order: Integers, weight: Floats, is_integer: Flags, shares: Floats
) -> None:
    """Fill in the shares of the classes that a node knows, shape (classes,)."""
    found = mixed_total_at(n_classes, order, weight, is_integer)
    scale = 1.0 if found == 0.0 or math.isnan(found) else 1.0 / found
    for k in range(n_classes):
        shares[order[k]] = weight[order[k]] * scale


@compiled
def majority_of(nodes: Nodes, node: int, shares: Floats) -> None:
    """Fill in the shares of the classes that a node knows, shape (classes,)."""
    order, is_integer = nodes.order[node], nodes.is_integer[node]
    majority(nodes.n_classes[node], order, nodes.weight[node], is_integer, shares)


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
            terms = observers.terms[leaf, place, c]
            if state.settings.nominal[leaves.observed[leaf, place]]:
                terms[0] = weight_in(state.entries, observers.first[leaf, place, c])
                continue
            seen, n = observers.gaussian[leaf, place, c], observers.gaussian[leaf, place, c, MEAN_N]
            variance = seen[SQUARES] / (n - 1.0) if n > 1.0 else 0.0
            terms[0] = -2.0 * variance if variance > 0.0 else 0.0
            terms[1] = 0.5 * math.log(variance) if variance > 0.0 else 0.0


@compiled
def weight_in(entries: Entries, first: int) -> float:
    """Return the weight of a list of categories."""
    found, entry = Sum(0.0, 0.0, False), first
    weight, is_integer, following = entries.weight, entries.is_integer, entries.following
    while entry >= 0:
        found = plus(found, weight[entry], is_integer[entry])
        entry = following[entry]
    return value_of(found)


@borrowing
def square(number: float, two: float) -> float:
    """Return the square as Python's ``** 2``, the system's power, in half its time.

    A product is what the power returns, unless the exact square is nearly in the middle of two
    floats: the power's error is below 0.55 of the distance between them. So the product is taken if
    1.1 times its own error, which Dekker's product gives exactly, does not change it. ``two`` is
    2.0: as a constant, the compiler would square differently from Python.
    """
    product = number * number
    split = 134217729.0 * number
    high = split - (split - number)
    low = number - high
    error = (high * high - product + 2.0 * high * low) + low * low
    if IS_PRECISE and product > LEAST_PRODUCT and product + 1.1 * error == product:
        return product
    return math.pow(number, two)


@borrowing
def log_density(mean: float, double: float, half_log: float, value: float, two: float) -> float:
    """Return the logarithm of a normal density; NaN where Python's power overflows.

    -inf if there is none, also where it is NaN, which River leaves out as well. ``double`` is
    -2 variance, 0 without one, ``half_log`` half the variance's logarithm. ``two`` is 2.0; see
    :func:`square`.
    """
    distance = value - mean
    if double == 0.0 or math.isnan(distance):
        return -math.inf
    squared = square(distance, two)
    if math.isinf(squared) and math.isfinite(distance):
        return math.nan
    density = float(squared / double - HALF_LOG_TAU - half_log)
    return -math.inf if math.isnan(density) else density


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
    category: Integers,
    weight: Floats,
    following: Integers,
    first: int,
    together: float,
    value: float,
) -> float:
    """Return the logarithm of a category's share of the weights in a list; 0 without any.

    The arrays are those of the entries, ``first`` is that of the list, and ``together`` its weight.
    """
    entry = first
    while entry >= 0 and category[entry] != value:
        entry = following[entry]
    if entry < 0 or together == 0.0:
        return 0.0
    share = weight[entry] / together
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
            first, together = observers.first[leaf, place, c], observers.terms[leaf, place, c, 0]
            vote += category_term(
                *(entries.category, entries.weight, entries.following, first, together, x[column])
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
    found = Sum(0.0, 0.0, False)
    for k in range(n_classes):
        below = shares[order[k]] - highest
        found = plus(found, 1.0 if below == 0.0 else math.exp(below), False)
    together = highest + math.log(value_of(found))
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

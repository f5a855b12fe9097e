"""The way of an input through a tree, as River's branches take it."""

from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import total_of
from fluxplain.forest.state import CATEGORIES, LEAF, NUMERIC, Integers, Kinds, Nodes, State
from fluxplain.forest.summing import Sum, plus, value_of


class Ways(NamedTuple):
    """The arrays that tell the way of an input; see :mod:`fluxplain.forest.state`."""

    kind: Kinds
    feature: Integers
    test: Floats
    below: Integers
    category: Integers
    target: Integers
    following: Integers


@compiled
def ways_of(state: State) -> Ways:
    """Return the arrays; a function that takes them needs no more of the state."""
    nodes, edges = state.nodes, state.edges
    tests = nodes.kind, nodes.feature, nodes.test, nodes.below
    return Ways(*tests, edges.category, edges.node, edges.following)


@borrowing
def step(of: Ways, node: int, x: Floats, columns: Integers) -> int:
    """Return the node that a branch leads to; -1 if it has none for the input.

    ``columns`` has of each feature its place in ``x``; -1 if it is missing.
    """
    column = columns[of.feature[node]]
    if column < 0:
        return -1
    if of.kind[node] == NUMERIC:
        return int(of.below[node, 0 if x[column] <= of.test[node] else 1])
    if of.kind[node] != CATEGORIES:
        return int(of.below[node, 0 if x[column] == of.test[node] else 1])
    edge = of.below[node, 0]
    while edge >= 0 and of.category[edge] != x[column]:
        edge = of.following[edge]
    return int(of.target[edge]) if edge >= 0 else -1


@compiled
def way(state: State, node: int, x: Floats, columns: Integers) -> int:
    """Return the node that a branch leads to; see :func:`step`."""
    return step(ways_of(state), node, x, columns)


@compiled
def has_integers(nodes: Nodes, node: int) -> bool:
    """Return whether all weights of a leaf are integers in River."""
    known = nodes.order[node, : nodes.n_classes[node]]
    return bool(np.all(nodes.is_integer[node][known]))


@compiled
def weight_below(state: State, node: int) -> tuple[float, bool]:
    """Return the weight in all leaves below a node, and whether River has an integer for it."""
    nodes, edges = state.nodes, state.edges
    if nodes.kind[node] == LEAF:
        return total_of(nodes, node), has_integers(nodes, node)
    found = Sum(0.0, 0.0, False)
    if nodes.kind[node] == CATEGORIES:
        edge = nodes.below[node, 0]
        while edge >= 0:
            weight, is_integer = weight_below(state, edges.node[edge])
            found = plus(found, weight, is_integer)
            edge = edges.following[edge]
    else:
        for below in nodes.below[node]:
            weight, is_integer = weight_below(state, below)
            found = plus(found, weight, is_integer)
    return value_of(found), not found.is_float


@compiled
def common_way(state: State, node: int) -> int:
    """Return the node below a branch with the most weight, the first of several."""
    nodes, edges = state.nodes, state.edges
    if nodes.kind[node] != CATEGORIES:
        left, right = nodes.below[node, 0], nodes.below[node, 1]
        is_right = weight_below(state, left)[0] < weight_below(state, right)[0]
        return int(right if is_right else left)
    best, most, edge = -1, -np.inf, nodes.below[node, 0]
    while edge >= 0:
        weight, _ = weight_below(state, edges.node[edge])
        if best < 0 or weight > most:
            best, most = edges.node[edge], weight
        edge = edges.following[edge]
    return int(best)


@compiled
def leaf_of(state: State, root: int, x: Floats, columns: Integers) -> int:
    """Return the leaf that predicts for an input."""
    node = root
    while state.nodes.kind[node] != LEAF:
        following = way(state, node, x, columns)
        node = following if following >= 0 else common_way(state, node)
    return node


@compiled
def stop_of(state: State, root: int, x: Floats, columns: Integers) -> int:
    """Return where an input that is learned stops: a leaf, or a branch without a way for it."""
    node = root
    while state.nodes.kind[node] != LEAF:
        following = way(state, node, x, columns)
        if following < 0:
            break
        node = following
    return node

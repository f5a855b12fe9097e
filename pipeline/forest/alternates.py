"""Alternate trees: an adaptive tree grows one where its errors increase, and may switch to it."""

from fluxplain.evaluate.compiled import compiled
from fluxplain.forest.node_errors import (
    LARGER,
    SMALLER,
    UNDEFINED,
    compared,
    forget_errors,
    is_regression,
)
from fluxplain.forest.places import new_leaf
from fluxplain.forest.state import CATEGORIES, GROWN, LEAF, PRUNED, SWITCHED, State

NOBODY, NOT_COMPARED = -1, -2
"""Instead of the alternate tree that learns."""


@compiled
def drop(state: State, node: int) -> None:
    """Note that a node is no longer in the tree; it is freed after the observation."""
    adaptive = state.adaptive
    adaptive.dropped[adaptive.n_dropped[0]] = node
    adaptive.n_dropped[0] += 1


@compiled
def drop_alternate(state: State, node: int) -> None:
    """Drop the alternate tree of a branch, if it has one."""
    alternate = state.adaptive.alternate[node]
    if alternate >= 0:
        drop(state, alternate)
        state.adaptive.alternate[node] = -1


@compiled
def grow_alternate(state: State, node: int) -> None:
    """Start an alternate tree of a branch, instead of the one that it may have."""
    forget_errors(state, node)
    drop_alternate(state, node)
    state.adaptive.alternate[node] = new_leaf(state, state.nodes.depth[node])
    state.adaptive.counts[GROWN] += 1


@compiled
def leaves_below(state: State, node: int) -> int:
    """Return the number of leaves below a node, without alternate trees."""
    nodes, edges, n = state.nodes, state.edges, 0
    if nodes.kind[node] == LEAF:
        return 1
    if nodes.kind[node] != CATEGORIES:
        left, right = nodes.below[node, 0], nodes.below[node, 1]
        return leaves_below(state, left) + leaves_below(state, right)
    edge = nodes.below[node, 0]
    while edge >= 0:
        n += leaves_below(state, edges.node[edge])
        edge = edges.following[edge]
    return n


# Numba's cache loses functions that call themselves with other types, or each other in turn
@compiled
def uncount(state: State, node: int) -> None:
    """Take a node and all below it from the counts of leaves, and drop their alternate trees."""
    nodes, edges, trees = state.nodes, state.edges, state.trees
    if nodes.kind[node] == LEAF:
        if state.leaves.is_active[nodes.leaf[node]]:
            trees.active[0] -= 1
        else:
            trees.inactive[0] -= 1
        return
    if state.adaptive.alternate[node] >= 0:
        drop_alternate(state, node)
        state.adaptive.counts[PRUNED] += 1
    if nodes.kind[node] != CATEGORIES:
        uncount(state, nodes.below[node, 0])
        uncount(state, nodes.below[node, 1])
        return
    edge = nodes.below[node, 0]
    while edge >= 0:
        uncount(state, edges.node[edge])
        edge = edges.following[edge]


@compiled
def put_below(state: State, parent: int, before: int, node: int) -> None:
    """Let a branch lead to a node where it has led to another one."""
    nodes, edges = state.nodes, state.edges
    if nodes.kind[parent] != CATEGORIES:
        side = 0 if nodes.below[parent, 0] == before else 1
        nodes.below[parent, side] = node
        return
    edge = nodes.below[parent, 0]
    while edges.node[edge] != before:
        edge = edges.following[edge]
    edges.node[edge] = node


@compiled
def replace(state: State, level: int) -> None:
    """Put the alternate tree of a branch on the path in the branch's place."""
    adaptive = state.adaptive
    node = adaptive.path[level, 0]
    alternate = adaptive.alternate[node]
    if level > 0:
        put_below(state, adaptive.path[level - 1, 0], node, alternate)
    else:
        state.trees.root[0] = alternate
    adaptive.alternate[node] = -1
    drop(state, node)


@compiled
def switch(state: State, level: int) -> None:
    """Replace a branch on the path by its alternate tree, with River's counts of leaves."""
    node, alternate = state.adaptive.path[level, 0], state.adaptive.alternate
    kept, alternate[node] = alternate[node], -1
    state.trees.active[0] += 1 - leaves_below(state, node)
    uncount(state, node)
    alternate[node] = kept
    replace(state, level)
    state.adaptive.counts[SWITCHED] += 1


@compiled
def learning_alternate(
    state: State, level: int, is_worse: bool, least: float, significance: float
) -> int:
    """Grow, switch to or prune the alternate tree of a branch; return the one that learns.

    Returns NOBODY if none does, NOT_COMPARED if River would raise. ``is_worse`` says whether the
    branch's errors have increased, ``least`` after how many observations both trees are compared.
    """
    adaptive, node = state.adaptive, state.adaptive.path[level, 0]
    # River's regressor keeps an alternate tree until it is compared
    if is_worse and (adaptive.alternate[node] < 0 or not is_regression(state)):
        grow_alternate(state, node)
        return int(adaptive.alternate[node])
    alternate = adaptive.alternate[node]
    if alternate < 0:
        return NOBODY
    found = compared(state, node, alternate, least, significance)
    if found == UNDEFINED:
        return NOT_COMPARED
    if found == SMALLER:
        switch(state, level)
        return int(alternate) if level == 0 else NOBODY  # River lets a new root learn, no other one
    if found == LARGER:
        drop_alternate(state, node)
        adaptive.counts[PRUNED] += 1
        return NOBODY
    return int(alternate)

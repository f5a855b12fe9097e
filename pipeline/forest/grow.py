"""Attempts to split a leaf, as River decides them."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import total_of
from fluxplain.forest.criteria import INFO_GAIN, entropy, merit_range
from fluxplain.forest.observe import count_class
from fluxplain.forest.places import (
    add_edge,
    alternate_of,
    forget_observed,
    free_leaf,
    new_leaf,
    remove_observer,
)
from fluxplain.forest.search import divide_all, divide_at, divide_by, ranked_values, search
from fluxplain.forest.state import CATEGORIES, LEAF, MAJORITY, NUMERIC, Integers, Kinds, State

RAISES, KEPT, DECIDED = range(3)
"""What an attempt to split a leaf leads to: River's error, nothing, or another kind of node."""


@compiled
def is_pure(state: State, node: int) -> bool:
    """Return whether at most one class of a node has a weight."""
    nodes, found = state.nodes, 0
    for k in range(nodes.n_classes[node]):
        if nodes.weight[node, nodes.order[node, k]] != 0.0:
            found += 1
    return found < 2


@compiled
def is_dominated(state: State, node: int, most_share: float) -> bool:
    """Return whether the majority of a node is so large that it is not split."""
    nodes, highest = state.nodes, -np.inf
    for k in range(nodes.n_classes[node]):
        highest = max(highest, nodes.weight[node, nodes.order[node, k]])
    return highest != 0.0 and highest / total_of(nodes, node) > most_share


@compiled
def entropy_of(state: State, node: int) -> float:
    """Return the entropy of a node's statistics."""
    nodes = state.nodes
    weights = np.empty(nodes.n_classes[node])
    for k in range(nodes.n_classes[node]):
        weights[k] = nodes.weight[node, nodes.order[node, k]]
    return entropy(weights, nodes.n_classes[node])


@compiled
def last_two(merits: Floats) -> tuple[int, int]:
    """Return the places of the highest and the second highest merit, the last of equal ones.

    The second is -1 if there is one only.
    """
    best = second = -1
    for i in range(len(merits)):
        if best < 0 or merits[i] >= merits[best]:
            best, second = i, best
        elif second < 0 or merits[i] >= merits[second]:
            second = i
    return best, second


@compiled
def deactivate(state: State, tree: int, node: int) -> None:
    """Let a leaf observe no longer."""
    leaf = state.nodes.leaf[node]
    forget_observed(state, leaf)
    state.leaves.is_active[leaf] = False
    state.trees.inactive[tree] += 1
    state.trees.active[tree] -= 1


@compiled
def activate_all(state: State, tree: int, node: int, max_depth: float) -> None:
    """Let all leaves below a node observe again, with alternate trees below it."""
    nodes, edges = state.nodes, state.edges
    if nodes.kind[node] == LEAF:
        leaf = nodes.leaf[node]
        if not state.leaves.is_active[leaf] and nodes.depth[node] < max_depth:
            state.leaves.is_active[leaf] = True
            state.trees.active[tree] += 1
            state.trees.inactive[tree] -= 1
    elif nodes.kind[node] == CATEGORIES:
        edge = nodes.below[node, 0]
        while edge >= 0:
            below = edges.node[edge]
            activate_all(state, tree, below, max_depth)
            if alternate_of(state, below) >= 0:
                activate_all(state, tree, alternate_of(state, below), max_depth)
            edge = edges.following[edge]
    else:
        for side in range(2):
            below = nodes.below[node, side]
            activate_all(state, tree, below, max_depth)
            if alternate_of(state, below) >= 0:
                activate_all(state, tree, alternate_of(state, below), max_depth)


@compiled
def fits(state: State, tree: int) -> bool:
    """Return whether River would let all leaves of a tree observe, by its estimates of sizes."""
    trees, most = state.trees, state.settings.max_bytes
    active, inactive, factor = trees.sizes[tree]
    leaves = trees.active[tree] + trees.inactive[tree]
    for n in range(1, leaves + 1):
        if (n * active + (leaves - n) * inactive) * factor > most:
            return False
    return True


@compiled
def stops_growing(state: State, tree: int) -> bool:
    """Stop the growth of a tree that is near its limit, if it is to stop; return whether it is."""
    trees = state.trees
    active, inactive, factor = trees.sizes[tree]
    size = factor * (active + trees.inactive[tree] * inactive)
    is_near = trees.inactive[tree] > 0 or size > state.settings.max_bytes
    if is_near and state.settings.stop_mem_management:
        trees.grows[tree] = False
        return True
    return False


@compiled
def enforce_size(state: State, tree: int) -> None:
    """Do what River does about a tree's size; where leaves must go, only say so.

    References
    ----------
    Kirkby (2007), Improving Hoeffding Trees.
    """
    trees = state.trees
    if stops_growing(state, tree):
        return
    if not fits(state, tree):
        trees.is_large[tree] = True
        state.news.n[1] += 1
    elif trees.inactive[tree] > 0:
        activate_all(state, tree, trees.root[tree], state.settings.max_depth)


@compiled
def start_leaf(state: State, depth: int, count: int, order: Integers, weights: Floats) -> int:
    """Return a new leaf with the statistics of one side of a split."""
    node = new_leaf(state, depth)
    for k in range(count):
        count_class(state, node, order[k], weights[k], False)
    state.leaves.tried[state.nodes.leaf[node]] = total_of(state.nodes, node)
    return node


@compiled
def split_in_two(state: State, node: int, place: int, kind: int, test: float) -> int:
    """Turn a leaf into a branch with two ways; return how many leaves are below."""
    nodes, leaf, classes = state.nodes, state.nodes.leaf[node], state.observers.order.shape[2]
    counts, order = np.zeros(2, np.int64), np.empty((2, classes), np.int64)
    weights = np.empty((2, classes))
    if kind == NUMERIC:
        divide_at(state, leaf, place, test, state.settings.half, counts, order, weights)
    else:
        divide_by(state, leaf, place, int(test), counts, order, weights)
    for side in range(2):
        below = start_leaf(state, nodes.depth[node] + 1, counts[side], order[side], weights[side])
        nodes.below[node, side] = below
    return 2


@compiled
def split_in_all(state: State, node: int, place: int) -> int:
    """Turn a leaf into a branch with one way a category; return how many leaves are below."""
    nodes, leaf, classes = state.nodes, state.nodes.leaf[node], state.observers.order.shape[2]
    feature = state.leaves.observed[leaf, place]
    values = ranked_values(state, leaf, place, state.settings.category_ranks[feature])
    counts, order = np.zeros(len(values), np.int64), np.empty((len(values), classes), np.int64)
    weights = np.empty((len(values), classes))
    divide_all(state, leaf, place, values, state.settings.ranks, counts, order, weights)
    for side in range(len(values)):
        below = start_leaf(state, nodes.depth[node] + 1, counts[side], order[side], weights[side])
        add_edge(state, node, values[side], below)
    return len(values)


@compiled
def split(state: State, tree: int, node: int, place: int, kind: int, test: float) -> None:
    """Turn a leaf into a branch."""
    nodes, leaf = state.nodes, state.nodes.leaf[node]
    feature = state.leaves.observed[leaf, place]
    if kind == CATEGORIES:
        ways = split_in_all(state, node, place)
    else:
        ways = split_in_two(state, node, place, kind, test)
    free_leaf(state, node)
    nodes.kind[node], nodes.feature[node], nodes.test[node] = kind, feature, test
    state.trees.active[tree] += ways - 1


@compiled
def attempted(state: State, node: int, decision: int) -> int:
    """Note a leaf's weight at an attempt to split it, unless that raises; return ``decision``."""
    if decision != RAISES and state.nodes.kind[node] == LEAF:
        state.leaves.tried[state.nodes.leaf[node]] = total_of(state.nodes, node)
    return decision


@compiled
def try_split(state: State, tree: int, node: int) -> int:
    """Try to split a leaf, and note its weight at the attempt; see :func:`attempt`."""
    return attempted(state, node, attempt(state, tree, node))


@compiled
def attempt(state: State, tree: int, node: int) -> int:
    """Try to split a leaf; return RAISES also where River's order is not defined, KEPT or DECIDED.

    What was decided may change the tree's size.
    """
    if is_pure(state, node):
        return KEPT
    leaves, leaf = state.leaves, state.nodes.leaf[node]
    if is_dominated(state, node, state.settings.max_share_to_split):
        deactivate(state, tree, node)
        return DECIDED
    first = 1 if state.settings.merit_preprune else 0
    merits = np.empty(first + leaves.n_observed[leaf])
    kinds, tests = np.empty(len(merits), np.int8), np.empty(len(merits))
    before = entropy_of(state, node) if state.settings.criterion == INFO_GAIN else 0.0
    if first:
        merits[0], kinds[0], tests[0] = -np.inf, LEAF, 0.0
    for place in range(leaves.n_observed[leaf]):
        i = first + place
        merits[i], kinds[i], tests[i] = search(state, leaf, place, before)
        if math.isnan(merits[i]):
            return RAISES
    best, second = last_two(merits)
    if best < 0:
        return KEPT
    if second >= 0:
        span = merit_range(state.settings.criterion, state.nodes.n_classes[node])
        bound = hoeffding_bound(state, tree, node, span)
        is_clear = merits[best] - merits[second] > bound or bound < state.trees.tau[tree]
        if not is_clear:
            if state.settings.remove_poor_attrs and state.settings.prediction == MAJORITY:
                switch_off(state, leaf, kinds[first:], merits[best] - merits[first:], bound)
            return KEPT
    if kinds[best] == LEAF:
        deactivate(state, tree, node)
    else:
        split(state, tree, node, best - first, kinds[best], tests[best])
    return DECIDED


@compiled
def switch_off(state: State, leaf: int, kinds: Kinds, behind: Floats, bound: float) -> None:
    """Switch off the observers whose merits are further behind the best than the bound."""
    for place in range(len(kinds) - 1, -1, -1):
        if kinds[place] != LEAF and behind[place] > bound:
            remove_observer(state, leaf, place)


@compiled
def hoeffding_bound(state: State, tree: int, node: int, span: float) -> float:
    """Return the bound on the error of a mean of numbers with a range of ``span``."""
    log = math.log(1.0 / state.trees.delta[tree])
    return math.sqrt((span * span * log) / (2.0 * total_of(state.nodes, node)))

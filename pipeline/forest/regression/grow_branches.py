"""Attempts to split a leaf of a regression tree, as River decides them."""

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import total_of
from fluxplain.forest.grow import (
    DECIDED,
    KEPT,
    RAISES,
    attempted,
    deactivate,
    hoeffding_bound,
    last_two,
)
from fluxplain.forest.observe import count_class
from fluxplain.forest.places import add_edge, free_leaf, new_leaf, remove_observer
from fluxplain.forest.regression import moments
from fluxplain.forest.regression.leaf_models import copy_model
from fluxplain.forest.regression.search_trees import remove_bad, search_numbers
from fluxplain.forest.state import CATEGORIES, CATEGORY, LEAF, NUMERIC, Integers, Kinds, State


@compiled
def moments_of(state: State, node: int, found: Floats) -> None:
    """Fill in the moments of a node's targets, shape (3,)."""
    found[0] = total_of(state.nodes, node)
    found[1], found[2] = state.nodes.moments[node, 0], state.nodes.moments[node, 1]


@compiled
def sorted_categories(state: State, leaf: int, place: int) -> Integers:
    """Return the points of the categories that an observer has seen, sorted."""
    points, feature = state.points, state.leaves.observed[leaf, place]
    ranks = state.settings.category_ranks[feature]
    found, n, point = np.empty(len(ranks), np.int64), 0, state.observers.point[leaf, place]
    while point >= 0:
        k, rank = n, ranks[int(points.value[point])]
        while k > 0 and ranks[int(points.value[found[k - 1]])] > rank:
            found[k] = found[k - 1]
            k -= 1
        found[k] = point
        n += 1
        point = points.right[point]
    return found[:n]


@compiled
def search_categories(
    state: State, leaf: int, place: int, whole: Floats, best: Floats
) -> tuple[float, int, float]:
    """Return what :func:`search` returns for a categorical feature."""
    points, settings = state.points, state.settings
    merit, kind, value, sides = -np.inf, LEAF, 0.0, np.empty((2, 3))
    found = sorted_categories(state, leaf, place)
    if not settings.binary_split and len(found) > 2:
        merit = moments.reduction(whole, points.moments[found], settings.least)
        kind = CATEGORIES
    for point in found:
        moments.copy(points.moments[point], sides[0])
        moments.copy(whole, sides[1])
        moments.subtract(sides[1], sides[0], settings.two)
        judged = moments.reduction(whole, sides, settings.least)
        if judged > merit:
            merit, kind, value = judged, CATEGORY, points.value[point]
            best[:] = sides
    return merit, kind, value


@compiled
def search(
    state: State, leaf: int, place: int, whole: Floats, best: Floats
) -> tuple[float, int, float]:
    """Return the highest merit that an observer finds, the kind of branch, and its test.

    Fills in the moments of both sides, shape (2, 3). The kind is that of a leaf if there is no
    split.
    """
    if state.settings.nominal[state.leaves.observed[leaf, place]]:
        return search_categories(state, leaf, place, whole, best)
    first, settings = state.observers.point[leaf, place], state.settings
    merit, value = search_numbers(state.points, first, whole, settings.least, settings.two, best)
    return merit, NUMERIC if merit > -np.inf else LEAF, value


@compiled
def add_leaf(state: State, node: int, found: Floats) -> int:
    """Return a new leaf below a node, with the moments of a side and a copy of its model."""
    nodes = state.nodes
    below = new_leaf(state, nodes.depth[node] + 1)
    count_class(state, below, 0, found[0], False)
    nodes.moments[below, 0], nodes.moments[below, 1] = found[1], found[2]
    state.leaves.tried[nodes.leaf[below]] = total_of(nodes, below)
    copy_model(state.models, nodes.leaf[node], nodes.leaf[below])
    return below


@compiled
def split(
    state: State, tree: int, node: int, place: int, kind: int, test: float, sides: Floats
) -> None:
    """Turn a leaf into a branch; ``sides`` are the moments of two ways."""
    nodes, leaf, ways = state.nodes, state.nodes.leaf[node], 2
    feature = state.leaves.observed[leaf, place]
    if kind == CATEGORIES:
        found = sorted_categories(state, leaf, place)
        ways = len(found)
        for point in found:
            below = add_leaf(state, node, state.points.moments[point])
            add_edge(state, node, int(state.points.value[point]), below)
    else:
        for side in range(2):
            nodes.below[node, side] = add_leaf(state, node, sides[side])
    free_leaf(state, node)
    nodes.kind[node], nodes.feature[node], nodes.test[node] = kind, feature, test
    state.trees.active[tree] += ways - 1


@compiled
def remove_poor(
    state: State, leaf: int, kinds: Kinds, merits: Floats, best: float, least: float
) -> None:
    """Switch off the observers whose share of the best merit is below ``least``."""
    for place in range(len(kinds) - 1, -1, -1):
        if kinds[place] != LEAF and merits[place] / best < least:
            remove_observer(state, leaf, place)


@compiled
def tidy(state: State, node: int, whole: Floats, best: float, second: float, bound: float) -> None:
    """Remove bad thresholds after a split was refused."""
    leaves, leaf = state.leaves, state.nodes.leaf[node]
    if not (best > 0.0 and second > 0.0):
        return
    for place in range(leaves.n_observed[leaf]):
        is_nominal = state.settings.nominal[leaves.observed[leaf, place]]
        if not is_nominal and state.observers.point[leaf, place] >= 0:
            remove_bad(state, leaf, place, whole, best, second / best - 2.0 * bound)


@compiled
def attempt(state: State, tree: int, node: int) -> int:
    """Try to split a leaf; return RAISES where River would divide by zero, KEPT or DECIDED.

    What was decided may change the tree's size.
    """
    leaves, leaf, settings = state.leaves, state.nodes.leaf[node], state.settings
    first, whole = 1 if settings.merit_preprune else 0, np.empty(3)
    n = first + leaves.n_observed[leaf]
    merits, kinds = np.full(n, -np.inf), np.full(n, LEAF, np.int8)
    tests, sides = np.zeros(n), np.empty((n, 2, 3))
    moments_of(state, node, whole)
    for i in range(first, n):
        merits[i], kinds[i], tests[i] = search(state, leaf, i - first, whole, sides[i])
    best, second = last_two(merits)
    if best < 0:
        return KEPT
    feature = leaves.observed[leaf, best - first] if best >= first else -1
    if second >= 0:
        high, low = merits[best], merits[second]
        bound = hoeffding_bound(state, tree, node, 1.0)
        is_clear = high > 0.0 and (low / high < 1.0 - bound or bound < state.trees.tau[tree])
        if settings.remove_poor_attrs:
            if high == 0.0:
                return RAISES
            remove_poor(
                *(state, leaf, kinds[first:], merits[first:], high, low / high - 2.0 * bound)
            )
        if not is_clear:
            tidy(state, node, whole, high, low, bound)
            return KEPT
    if kinds[best] == LEAF:
        deactivate(state, tree, node)
    else:
        place = leaves.place[leaf, feature]
        split(state, tree, node, place, kinds[best], tests[best], sides[best])
    return DECIDED


@compiled
def try_split(state: State, tree: int, node: int) -> int:
    """Try to split a leaf, and note its weight at the attempt; see :func:`attempt`."""
    return attempted(state, node, attempt(state, tree, node))

"""What an adaptive tree learns of an observation, as far as no detector is asked.

Each branch on the observation's path sees the error of the leaf that predicts, then its alternate
tree learns, then what is below it.
"""

import math

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.alternates import NOBODY, NOT_COMPARED, learning_alternate, replace
from fluxplain.forest.bayes import total_of
from fluxplain.forest.grow import activate_all, deactivate, stops_growing
from fluxplain.forest.learn import DIVISION, DONE
from fluxplain.forest.mersenne import Words, poisson
from fluxplain.forest.node_errors import forget_errors, is_regression, see_error
from fluxplain.forest.observe import Given, count_class, see_target
from fluxplain.forest.places import add_edge, free_tree, new_leaf
from fluxplain.forest.state import CATEGORIES, LEAF, Integers, State
from fluxplain.forest.walk import common_way, leaf_of, way

LIMIT = math.exp(-1.0)
"""Limit of the draws for bootstrap sampling, whose rate is 1; see :func:`poisson`."""


@compiled
def find_path(state: State, x: Floats, columns: Integers) -> tuple[int, int]:
    """Fill in an observation's path, on which -1 is a leaf to be made.

    Makes the root of a tree that has learned nothing. Returns how many branches are on the path,
    and the leaf that predicts.
    """
    nodes, path, trees = state.nodes, state.adaptive.path, state.trees
    if trees.root[0] < 0:
        trees.root[0] = new_leaf(state, 0)
        trees.active[0] = 1
    node, n = trees.root[0], 0
    while nodes.kind[node] != LEAF:
        path[n, 0], path[n, 1] = node, state.adaptive.alternate[node]
        n += 1
        following = way(state, node, x, columns)
        is_new = nodes.kind[node] == CATEGORIES and columns[nodes.feature[node]] >= 0
        node = following if following >= 0 else common_way(state, node)
        if following < 0 and is_new:
            path[n, 0] = -1
            return n, leaf_of(state, node, x, columns)
    path[n, 0] = node
    return n, node


@compiled
def count(state: State, w: float) -> None:
    """Count an observation of a tree, whose size may be due to be looked at."""
    trees = state.trees
    trees.weight[0] += w
    if trees.weight[0] % state.settings.period == 0.0:
        trees.to_measure[0] = True
        state.news.n[1] += 1


@compiled
def leaf_on(state: State, level: int, x: Floats, columns: Integers) -> int:
    """Return the leaf of the path, behind ``level`` branches; make it if it is new."""
    path, nodes = state.adaptive.path, state.nodes
    if path[level, 0] < 0:
        branch = path[level - 1, 0]
        path[level, 0] = new_leaf(state, nodes.depth[branch] + 1)
        add_edge(state, branch, int(x[columns[nodes.feature[branch]]]), path[level, 0])
        state.trees.active[0] += 1
    return int(path[level, 0])


@compiled
def is_due(state: State, node: int) -> bool:
    """Return whether a leaf is to be split; switch it off if it is too deep."""
    leaf = state.nodes.leaf[node]
    if not total_of(state.nodes, node) - state.leaves.tried[leaf] >= state.trees.grace_period[0]:
        return False
    if state.nodes.depth[node] >= state.settings.max_depth:
        deactivate(state, 0, node)  # River counts it again each time
        return False
    return bool(state.leaves.is_active[leaf])


@compiled
def drawn_weight(w: float, words: Words, draws: bool) -> float:
    """Return the weight with which a leaf learns, by bootstrap sampling if it ``draws``."""
    times = poisson(words, LIMIT) if draws else 1
    return w * times if times > 0 else w


@compiled
def next_learner(
    state: State,
    first: int,
    last: int,
    n: int,
    drifts: bool,
    error: float,
    of: Given,
    label: float,
    w: float,
    is_integer: bool,
    least: float,
    significance: float,
) -> tuple[int, int]:
    """Let a part of the path of ``n`` branches and a leaf see its error, up to a leaf that learns.

    No branch before the ``last`` has a drift or an alternate tree. ``label`` is a class or a
    target. Returns DONE or DIVISION, and the leaf, of the path or an alternate tree, or NOBODY.
    """
    path, is_better = state.adaptive.path, False
    for level in range(first, min(last + 1, n)):
        if is_regression(state):
            see_target(state, path[level, 0], float(label), w)
        else:
            count_class(state, path[level, 0], int(label), w, is_integer)
        is_better = see_error(state, path[level, 0], float(error))
    if last == n:
        return DONE, leaf_on(state, n, of.x, of.columns)
    if drifts and is_better:
        forget_errors(state, path[last, 0])
    is_worse = drifts and not is_better
    leaf = learning_alternate(state, last, is_worse, least, significance)
    return (DIVISION, NOBODY) if leaf == NOT_COMPARED else (DONE, leaf)


@compiled
def settle_split(state: State, level: int, leaf: int) -> bool:
    """Put a leaf that has become a branch in its place; return whether it has become one.

    A branch that was an alternate tree replaces the main tree. Then River looks at the size.
    """
    node, is_branch = state.adaptive.path[level, 0], state.nodes.kind[leaf] != LEAF
    if is_branch:
        forget_errors(state, leaf)
        if state.adaptive.alternate[node] == leaf:
            replace(state, level)
    if not stops_growing(state, 0):
        activate_all(state, 0, state.trees.root[0], state.settings.max_depth)
    return bool(is_branch)


@compiled
def free_dropped(state: State) -> None:
    """Free what is no longer in the tree."""
    adaptive = state.adaptive
    for i in range(adaptive.n_dropped[0]):
        free_tree(state, adaptive.dropped[i])
    adaptive.n_dropped[0] = 0

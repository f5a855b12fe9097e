"""What a model's trees learn of an observation, in one call."""

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import bayes, first_best, is_bayes, majority_of, total_of
from fluxplain.forest.grow import DECIDED, KEPT, RAISES, deactivate, enforce_size, try_split
from fluxplain.forest.mersenne import Words, poisson
from fluxplain.forest.observe import choose_features, count_class, see_feature
from fluxplain.forest.places import add_edge, fill, new_leaf
from fluxplain.forest.state import ADAPTIVE, CATEGORIES, LEAF, Integers, State
from fluxplain.forest.summing import total_at
from fluxplain.forest.walk import common_way, leaf_of, stop_of

DONE, OVERFLOW, DIVISION, MISSING = range(4)
"""Whether all went well, or why River would raise: numbers, or a leaf without statistics."""

NOT_ASKED = -2
"""Instead of the class that a tree predicts."""


@compiled
def predict_leaf(
    state: State, node: int, x: Floats, columns: Integers, learns: bool, shares: Floats
) -> int:
    """Fill in a leaf's prediction, shape (classes,); return DONE or OVERFLOW; see :func:`bayes`."""
    nodes, leaves, settings = state.nodes, state.leaves, state.settings
    leaf, weight = nodes.leaf[node], total_of(nodes, node)
    active, right = leaves.is_active[leaf], leaves.correct[leaf]
    if is_bayes(settings.prediction, settings.nb_threshold, active, right, weight):
        found = bayes(state, node, x, columns, learns, shares)
        return OVERFLOW if found == 2 else DONE
    majority_of(nodes, node, shares)
    return DONE


@compiled
def best_class(state: State, tree: int, shares: Floats) -> int:
    """Return the class with the largest share, the first of several if sorted; -1 if none."""
    best, ranks = -1, state.settings.ranks
    for c in range(len(shares)):
        if not state.trees.classes[tree, c]:
            continue
        is_before = best >= 0 and shares[c] == shares[best] and ranks[c] < ranks[best]
        if best < 0 or shares[c] > shares[best] or is_before:
            best = c
    return best


@compiled
def predict_tree(
    state: State,
    tree: int,
    x: Floats,
    columns: Integers,
    shares: Floats,
) -> int:
    """Fill in a tree's prediction, shape (classes,); return DONE or OVERFLOW."""
    fill(shares, 0.0)
    root = state.trees.root[tree]
    if root < 0:
        return DONE
    return predict_leaf(state, leaf_of(state, root, x, columns), x, columns, True, shares)


@compiled
def judge(state: State, node: int, x: Floats, columns: Integers, c: int, w: float) -> int:
    """Count which of a leaf's predictions are right; return DONE or OVERFLOW."""
    nodes, correct = state.nodes, state.leaves.correct[state.nodes.leaf[node]]
    shares = np.zeros(nodes.weight.shape[1])
    majority_of(nodes, node, shares)
    if nodes.n_classes[node] == 0 or first_best(nodes, node, shares) == c:
        correct[0] += w
    found = bayes(state, node, x, columns, True, shares)
    if found == 2:
        return OVERFLOW
    if found == 1 and first_best(nodes, node, shares) == c:
        correct[1] += w
    return DONE


@compiled
def learn_leaf(
    state: State,
    tree: int,
    node: int,
    x: Floats,
    columns: Integers,
    given: Integers,
    ranked: Integers,
    c: int,
    w: float,
    is_integer: bool,
    words: Words,
) -> int:
    """Let a leaf learn an observation; return DONE or OVERFLOW.

    ``given`` are the observation's features in its order, ``ranked`` sorted.
    """
    leaves, leaf, most = state.leaves, state.nodes.leaf[node], state.trees.features[tree]
    is_active = leaves.is_active[leaf]
    is_judged = is_active and state.settings.prediction == ADAPTIVE
    if is_judged and judge(state, node, x, columns, c, w) != DONE:
        return OVERFLOW
    count_class(state, node, c, w, is_integer)
    leaves.is_fresh[leaf] = False
    if not is_active:
        return DONE
    if most < 0:
        for k in range(len(given)):
            see_feature(state, leaf, given[k], x, columns, c, w, is_integer)
        return DONE
    if leaves.n_chosen[leaf] == 0:
        choose_features(state, leaf, ranked, most, words)
    for k in range(leaves.n_chosen[leaf]):
        see_feature(state, leaf, leaves.chosen[leaf, k], x, columns, c, w, is_integer)
    return DONE


@compiled
def leaf_below(state: State, tree: int, branch: int, x: Floats, columns: Integers) -> int:
    """Return the leaf that learns what has no way at a branch; a new one for a new category."""
    nodes, node = state.nodes, branch
    while nodes.kind[node] != LEAF:
        column = columns[nodes.feature[node]]
        if nodes.kind[node] == CATEGORIES and column >= 0:
            below = new_leaf(state, nodes.depth[node] + 1)
            add_edge(state, node, int(x[column]), below)
            state.trees.active[tree] += 1
            return below
        node = common_way(state, node)
        node = stop_of(state, node, x, columns)
    return node


@compiled
def learn_tree(
    state: State,
    tree: int,
    x: Floats,
    columns: Integers,
    given: Integers,
    ranked: Integers,
    c: int,
    w: float,
    is_integer: bool,
    words: Words,
) -> tuple[int, int]:
    """Let a tree learn an observation; return DONE or OVERFLOW, and a leaf to split, or -1."""
    trees, nodes = state.trees, state.nodes
    trees.classes[tree, c] = True
    trees.weight[tree] += w
    if trees.weight[tree] % state.settings.period == 0.0:
        trees.to_measure[tree] = True
        state.news.n[1] += 1
    if trees.root[tree] < 0:
        trees.root[tree] = new_leaf(state, 0)
        trees.active[tree] = 1
    node = stop_of(state, trees.root[tree], x, columns)
    is_leaf = nodes.kind[node] == LEAF
    if not is_leaf:
        node = leaf_below(state, tree, node, x, columns)
    learned = learn_leaf(state, tree, node, x, columns, given, ranked, c, w, is_integer, words)
    leaf = nodes.leaf[node]
    if learned != DONE or not is_leaf or not trees.grows[tree] or not state.leaves.is_active[leaf]:
        return learned, -1
    if nodes.depth[node] >= state.settings.max_depth:
        deactivate(state, tree, node)
        return DONE, -1
    seen = total_of(nodes, node)
    is_due = seen - state.leaves.tried[leaf] >= trees.grace_period[tree]
    return DONE, node if is_due else -1


@compiled
def split_due(state: State, due: Integers) -> bool:
    """Try to split a leaf of each tree, where it is due; return False where River would raise."""
    for tree in range(len(due)):
        node = due[tree]
        due[tree] = -1
        decision = try_split(state, tree, node) if node >= 0 else KEPT
        if decision == RAISES:
            return False
        if decision == DECIDED:
            enforce_size(state, tree)
    return True


@compiled
def learn_forest(
    state: State,
    mains: Integers,
    backgrounds: Integers,
    limit: float,
    x: Floats,
    columns: Integers,
    given: Integers,
    ranked: Integers,
    c: int,
    words: Words,
    shares: Floats,
    best: Integers,
    drawn: Integers,
    due: Integers,
) -> tuple[int, int, bool]:
    """Let each tree predict and learn an observation as often as its draw says.

    Fills in ``shares``, shape (trees, classes), ``best`` and ``drawn``, shape (trees,). Returns how
    many trees are done, DONE or OVERFLOW, and whether a split is due.
    """
    is_due = False
    for i in range(len(mains)):
        tree, best[i] = mains[i], NOT_ASKED
        if predict_tree(state, tree, x, columns, shares[i]) != DONE:
            return i, OVERFLOW, is_due
        best[i] = best_class(state, tree, shares[i])
        drawn[i] = poisson(words, limit)
        if drawn[i] <= 0:
            continue
        for slot in (backgrounds[i], tree):
            if slot < 0:
                continue
            learned, due[slot] = learn_tree(
                state, slot, x, columns, given, ranked, c, float(drawn[i]), True, words
            )
            if learned != DONE:
                return i, OVERFLOW, is_due
            is_due = is_due or due[slot] >= 0
    return len(mains), DONE, is_due


@compiled
def class_order(state: State, mains: Integers, order: Integers) -> int:
    """Fill in the classes in the order of the forest's answer; return how many they are."""
    ranks, classes, n = state.settings.ranks, len(order), 0
    ranked, known = np.full(classes, -1), np.zeros(classes, np.bool_)
    for c in range(classes):
        if np.any(state.trees.classes[:, c]):
            ranked[ranks[c]] = c
    for i in range(len(mains)):
        for rank in range(classes):
            c = ranked[rank]
            if c >= 0 and not known[c] and state.trees.classes[mains[i], c]:
                known[c] = True
                order[n] = c
                n += 1
    return n


@compiled
def divide(votes: Floats, order: Integers) -> None:
    """Divide votes by their sum, added in order, if it is positive."""
    found = total_at(len(order), order, votes)
    if found > 0.0:
        for c in order:
            votes[c] /= found


@compiled
def vote_forest(
    state: State,
    mains: Integers,
    weights: Floats,
    x: Floats,
    columns: Integers,
    votes: Floats,
    order: Integers,
) -> tuple[int, int]:
    """Fill in the forest's shares, and the classes in the order of its answer.

    Returns how many classes there are, and DONE or OVERFLOW.
    """
    shares, n = np.zeros(len(votes)), class_order(state, mains, order)
    for i in range(len(mains)):
        if predict_tree(state, mains[i], x, columns, shares) != DONE:
            return n, OVERFLOW
        for k in range(n):
            votes[order[k]] += shares[order[k]] * weights[i]
    divide(votes, order[:n])
    return n, DONE

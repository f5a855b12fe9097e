"""What a model's regression trees predict, and learn of an observation, in one call."""

import math

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import total_of
from fluxplain.forest.grow import DECIDED, RAISES, deactivate, enforce_size
from fluxplain.forest.learn import DIVISION, DONE, OVERFLOW, leaf_below
from fluxplain.forest.mersenne import Words, poisson
from fluxplain.forest.observe import Given, choose_features, observer_of, see_target
from fluxplain.forest.places import new_leaf
from fluxplain.forest.regression.grow_branches import try_split
from fluxplain.forest.regression.leaf_models import dot, fit
from fluxplain.forest.regression.search_trees import see_category, see_number
from fluxplain.forest.state import BETTER, LEAF, LINEAR, MEANS, Integers, State
from fluxplain.forest.walk import leaf_of, stop_of

FAR = 1e140
"""Error of a tree from which on metrics and detectors may raise, in the middle of learning."""


@borrowing
def is_mean(prediction: int, errors: Floats) -> bool:
    """Return whether a leaf with these errors predicts by its mean, not by its model."""
    return prediction == MEANS or (prediction == BETTER and bool(errors[0] < errors[1]))


@compiled
def by_mean(state: State, leaf: int) -> bool:
    """Return whether a leaf predicts by its mean, not by its model."""
    return is_mean(state.settings.prediction, state.models.errors[leaf])


@compiled
def predict_leaf(state: State, node: int, x: Floats, features: Integers) -> float:
    """Return a leaf's prediction."""
    leaf, models = state.nodes.leaf[node], state.models
    if by_mean(state, leaf):
        return float(state.nodes.moments[node, 0])
    return dot(models.weight[leaf], models.intercept[leaf], x, features)


@compiled
def predict_tree(
    state: State, tree: int, x: Floats, columns: Integers, features: Integers
) -> float:
    """Return a tree's prediction."""
    root = state.trees.root[tree]
    if root < 0:
        return 0.0
    return predict_leaf(state, leaf_of(state, root, x, columns), x, features)


@compiled
def judge(state: State, node: int, of: Given, y: float) -> int:
    """Add to the errors of a leaf's mean and model; return DONE or OVERFLOW."""
    leaf, settings, models = state.nodes.leaf[node], state.settings, state.models
    guesses = (
        state.nodes.moments[node, 0],
        dot(models.weight[leaf], models.intercept[leaf], of.x, of.features),
    )
    for k in range(2):
        error = y - guesses[k]
        squared = math.pow(error, settings.two)
        if math.isinf(squared) and math.isfinite(error):
            return OVERFLOW
        models.errors[leaf, k] = settings.decay * models.errors[leaf, k] + squared
    return DONE


@compiled
def see_feature(state: State, leaf: int, feature: int, of: Given, y: float, w: float) -> None:
    """Show one feature of an observation to its observer."""
    column = of.columns[feature]
    place = observer_of(state, leaf, feature) if column >= 0 else -1
    if place < 0:
        return
    if state.settings.nominal[feature]:
        see_category(state, leaf, place, of.values[column], y, w)
    else:
        see_number(state, leaf, place, of.values[column], y, w)


@compiled
def see_features(
    state: State, tree: int, leaf: int, of: Given, y: float, w: float, words: Words
) -> None:
    """Show an observation to the observers of a leaf."""
    leaves, most = state.leaves, state.trees.features[tree]
    if most < 0:
        for feature in of.features:
            see_feature(state, leaf, feature, of, y, w)
        return
    if leaves.n_chosen[leaf] == 0:
        choose_features(state, leaf, of.ranked, most, words)
    for k in range(leaves.n_chosen[leaf]):
        see_feature(state, leaf, leaves.chosen[leaf, k], of, y, w)


@compiled
def learn_leaf(
    state: State, tree: int, node: int, of: Given, y: float, w: float, words: Words
) -> int:
    """Let a leaf learn an observation; return DONE or OVERFLOW."""
    leaf, prediction = state.nodes.leaf[node], state.settings.prediction
    if prediction == BETTER and judge(state, node, of, y) != DONE:
        return OVERFLOW
    see_target(state, node, y, w)
    if state.leaves.is_active[leaf]:
        see_features(state, tree, leaf, of, y, w, words)
    if prediction in {LINEAR, BETTER}:
        fit(state, leaf, of.x, of.features, y, w)
    return DONE


@compiled
def learn_tree(state: State, tree: int, of: Given, y: float, w: float, words: Words) -> int:
    """Let a tree learn an observation, and try a split if it is due; return the status."""
    trees, nodes = state.trees, state.nodes
    trees.weight[tree] += w
    if trees.root[tree] < 0:
        trees.root[tree] = new_leaf(state, 0)
        trees.active[tree] = 1
    node = stop_of(state, trees.root[tree], of.x, of.columns)
    is_leaf = nodes.kind[node] == LEAF
    if not is_leaf:
        node = leaf_below(state, tree, node, of.x, of.columns)
    status = learn_leaf(state, tree, node, of, y, w, words)
    if status == DONE and is_leaf and trees.grows[tree]:
        status = grow(state, tree, node)
    if status == DONE and trees.weight[tree] % state.settings.period == 0.0:
        trees.to_measure[tree] = True
        state.news.n[1] += 1
    return status


@compiled
def grow(state: State, tree: int, node: int) -> int:
    """Try to split a leaf if it is due; return DONE or DIVISION."""
    leaves, leaf = state.leaves, state.nodes.leaf[node]
    if not leaves.is_active[leaf]:
        return DONE
    if state.nodes.depth[node] >= state.settings.max_depth:
        deactivate(state, tree, node)
        return DONE
    if total_of(state.nodes, node) - leaves.tried[leaf] < state.trees.grace_period[tree]:
        return DONE
    decision = try_split(state, tree, node)
    if decision == DECIDED:
        enforce_size(state, tree)
    return DIVISION if decision == RAISES else DONE


@compiled
def learn_forest(
    state: State,
    mains: Integers,
    backgrounds: Integers,
    limit: float,
    of: Given,
    y: float,
    words: Words,
    drawn: Integers,
) -> tuple[int, int]:
    """Let each tree learn an observation as often as its draw says.

    Fills in ``drawn``, shape (trees,). Returns how many trees are done, and the status.
    """
    for i in range(len(mains)):
        drawn[i] = poisson(words, limit)
        if drawn[i] <= 0:
            continue
        for tree in (backgrounds[i], mains[i]):
            status = DONE
            if tree >= 0:
                status = learn_tree(state, tree, of, y, float(drawn[i]), words)
            if status != DONE:
                return i, status
    return len(mains), DONE


@compiled
def predict_trees(
    state: State, trees: Integers, x: Floats, columns: Integers, features: Integers
) -> Floats:
    """Return the predictions of some trees, shape (trees,)."""
    found = np.empty(len(trees))
    for i in range(len(trees)):
        found[i] = predict_tree(state, trees[i], x, columns, features)
    return found

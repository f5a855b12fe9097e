"""Shapley values of classification trees whose leaves predict by their majority."""

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.ask import in_order
from fluxplain.forest.bayes import is_bayes, majority
from fluxplain.forest.combine import divide_by_sum
from fluxplain.forest.learn import class_order
from fluxplain.forest.mixtures import parts_of
from fluxplain.forest.splits import Game, empty_table
from fluxplain.forest.state import ERROR, Flags, Integers, State
from fluxplain.forest.summing import mixed_total_at
from fluxplain.forest.weighing import weigh

ROUNDING = 1e-9
"""Difference of a leaf's sum of shares from 1 that is rounding."""

UNEQUAL = -1.0
"""Instead of the sum of the shares of each leaf, where leaves differ in it."""


@borrowing
def add_parts(parts: Floats, predictions: Floats, weight: float, found: Floats) -> None:
    """Add what players get of the leaves' weighted predictions, shape (players + 1, labels)."""
    for leaf in range(parts.shape[0]):
        for player in range(parts.shape[1]):
            part = parts[leaf, player] * weight
            for label in range(found.shape[1]):
                found[player, label] += part * predictions[leaf, label]


@borrowing
def fill_shares(
    leaf: Integers,
    n_classes: Integers,
    order: Integers,
    weight: Floats,
    is_integer: Flags,
    is_active: Flags,
    correct: Floats,
    prediction: int,
    threshold: float,
    leaves: Integers,
    shares: Floats,
) -> bool:
    """Fill in the shares of the leaves' classes; see :func:`fill_majorities`."""
    for k in range(len(leaves)):
        node = leaves[k]
        n, known, weights, integers = n_classes[node], order[node], weight[node], is_integer[node]
        together = mixed_total_at(n, known, weights, integers)
        active, right = is_active[leaf[node]], correct[leaf[node]]
        if together != 0.0 and is_bayes(prediction, threshold, active, right, together):
            return False
        majority(n, known, weights, integers, shares[k])
    return True


@compiled
def fill_majorities(state: State, leaves: Integers, shares: Floats) -> bool:
    """Fill in the shares of the leaves; return whether none of them predicts by naive Bayes."""
    nodes, settings = state.nodes, state.settings
    return fill_shares(
        *(nodes.leaf, nodes.n_classes, nodes.order, nodes.weight, nodes.is_integer),
        *(state.leaves.is_active, state.leaves.correct),
        settings.prediction,
        settings.nb_threshold,
        *(leaves, shares),
    )


@borrowing
def common_sum(shares: Floats) -> float:
    """Return the sum of each leaf's shares: 1, or 0 of leaves without weight; else UNEQUAL."""
    common = 0.0
    for leaf in range(shares.shape[0]):
        together = 0.0
        for c in range(shares.shape[1]):
            together += shares[leaf, c]
        found = 0.0 if together == 0.0 else UNEQUAL
        found = 1.0 if abs(together - 1.0) < ROUNDING else found
        common = found if leaf == 0 else common
        if found != common:
            return UNEQUAL
    return common


@compiled
def attribute_alone(state: State, tree: int, game: Game, order: Integers) -> tuple[Floats, bool]:
    """Return what each player gets of a tree's shares, and whether that is exact.

    The shape is (players + 1, classes); the last row is the mean on the rows.
    """
    found = np.zeros((game.n_players + 1, state.nodes.weight.shape[1]))
    table = empty_table(state, game)
    leaves, parts = parts_of(state, tree, game, table)
    shares = np.zeros((len(leaves), found.shape[1]))
    if not fill_majorities(state, leaves, shares):
        return found, False
    add_parts(parts, shares, 1.0 / game.values.shape[1], found)
    return in_order(found, order), True


@compiled
def attribute_forest(
    state: State, mains: Integers, weights: Floats, game: Game, order: Integers
) -> tuple[Floats, bool]:
    """Return what each player gets of the forest's shares, and whether that is exact.

    Fills in the order of the classes, of which the shares may have fewer. The votes' sum, by which
    they are divided, must be the same whichever leaves are reached.
    """
    n, together = class_order(state, mains, order), 0.0
    found = np.zeros((game.n_players + 1, len(order)))
    table = empty_table(state, game)
    for i in range(len(mains)):
        leaves, parts = parts_of(state, mains[i], game, table)
        shares = np.zeros((len(leaves), len(order)))
        if not fill_majorities(state, leaves, shares):
            return found, False
        tree_sum = common_sum(shares)
        if tree_sum == UNEQUAL:
            return found, False
        together += tree_sum * weights[i]
        add_parts(parts, shares, weights[i], found)
    found /= game.values.shape[1] * (together if together > 0.0 else 1.0)
    return in_order(found, order[:n]), True


@compiled
def attribute_adaptive(state: State, game: Game, order: Integers) -> tuple[Floats, bool]:
    """Return what each player gets of an adaptive tree's shares, and whether that is exact.

    Alternate trees are weighted by errors, and the sum is divided: they are no sum of trees.
    """
    found = np.zeros((game.n_players + 1, state.nodes.weight.shape[1]))
    if np.any(state.adaptive.alternate >= 0):
        return found, False
    table = empty_table(state, game)
    leaves, parts = parts_of(state, 0, game, table)
    shares = np.zeros((len(leaves), found.shape[1]))
    if not fill_majorities(state, leaves, shares):
        return found, False
    n_classes, known = state.nodes.n_classes, state.nodes.order
    for k in range(len(leaves)):
        node = leaves[k]
        if n_classes[node] == 0:
            return found, False  # River raises there
        weigh(n_classes[node], known[node], state.adaptive.errors[node, ERROR], shares[k])
        divide_by_sum(order, shares[k])
    add_parts(parts, shares, 1.0 / game.values.shape[1], found)
    return in_order(found, order), True

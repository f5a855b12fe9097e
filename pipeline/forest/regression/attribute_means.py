"""Shapley values of regression trees whose leaves predict by their means."""

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.attribute import add_parts
from fluxplain.forest.mixtures import parts_of
from fluxplain.forest.regression.regress import is_mean
from fluxplain.forest.splits import Game, empty_table
from fluxplain.forest.state import Integers, State


@borrowing
def fill_means(
    prediction: int,
    leaf: Integers,
    moments: Floats,
    errors: Floats,
    leaves: Integers,
    means: Floats,
) -> bool:
    """Fill in the means of the leaves; return whether none of them predicts by a linear model."""
    for k in range(len(leaves)):
        node = leaves[k]
        if not is_mean(prediction, errors[leaf[node]]):
            return False
        means[k, 0] = moments[node, 0]
    return True


@compiled
def attribute_trees(
    state: State, trees: Integers, weights: Floats, game: Game
) -> tuple[Floats, bool]:
    """Return what each player gets of the trees' weighted sum, and whether that is exact.

    The shape is (players + 1, 1); the last row is the mean on the rows.
    """
    found = np.zeros((game.n_players + 1, 1))
    table = empty_table(state, game)
    for i in range(len(trees)):
        leaves, parts = parts_of(state, trees[i], game, table)
        means = np.empty((len(leaves), 1))
        given = state.settings.prediction, state.nodes.leaf, state.nodes.moments
        if not fill_means(*given, state.models.errors, leaves, means):
            return found, False
        add_parts(parts, means, weights[i], found)
    return found / game.values.shape[1], True


@compiled
def attribute_adaptive(state: State, game: Game) -> tuple[Floats, bool]:
    """Return what each player gets of an adaptive tree's prediction, and whether that is exact.

    Alternate trees are part of a mean over as many leaves as an input reaches: no sum of trees.
    """
    if np.any(state.adaptive.alternate >= 0):
        return np.zeros((game.n_players + 1, 1)), False
    return attribute_trees(state, np.zeros(1, np.int64), np.ones(1), game)

"""Shapley values of regression trees whose leaves predict by their means."""

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.attribute import add_parts
from fluxplain.forest.mixtures import parts_of
from fluxplain.forest.regression.regress import by_mean
from fluxplain.forest.splits import Game, empty_splits
from fluxplain.forest.state import Integers, State


@compiled
def fill_means(state: State, leaves: Integers, means: Floats) -> bool:
    """Fill in the means of the leaves; return whether none of them predicts by a linear model."""
    for k in range(len(leaves)):
        if not by_mean(state, state.nodes.leaf[leaves[k]]):
            return False
        means[k, 0] = state.nodes.moments[leaves[k], 0]
    return True


@compiled
def attribute_trees(
    state: State, trees: Integers, weights: Floats, game: Game
) -> tuple[Floats, bool]:
    """Return what each player gets of the trees' weighted sum, and whether that is exact.

    The shape is (players + 1, 1); the last row is the mean on the rows.
    """
    found = np.zeros((game.n_players + 1, 1))
    splits = empty_splits(len(state.nodes.kind), game.values.shape[1])
    for i in range(len(trees)):
        leaves, parts = parts_of(state, trees[i], game, splits)
        means = np.empty((len(leaves), 1))
        if not fill_means(state, leaves, means):
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

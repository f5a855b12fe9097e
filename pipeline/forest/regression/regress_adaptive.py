"""What an adaptive tree for regression predicts and learns; see :mod:`fluxplain.forest.adapt`."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.adapt import count, drawn_weight, find_path, is_due, next_learner
from fluxplain.forest.alternates import NOBODY
from fluxplain.forest.combine import combined_leaves, leaves_to_add
from fluxplain.forest.learn import DONE
from fluxplain.forest.mersenne import Words
from fluxplain.forest.node_errors import see_error
from fluxplain.forest.observe import Given
from fluxplain.forest.reach import changed_columns
from fluxplain.forest.regression.answer import answer_reached
from fluxplain.forest.regression.regress import FAR, learn_leaf, predict_leaf
from fluxplain.forest.state import MEANS, Integers, State


@compiled
def predict_adaptive(state: State, x: Floats, columns: Integers, features: Integers) -> float:
    """Return the tree's prediction: the mean of its leaf's and of alternate trees on the way."""
    if state.trees.root[0] < 0:
        return 0.0
    leaves, total = combined_leaves(state, x, columns), 0.0
    for leaf in leaves:
        total += predict_leaf(state, leaf, x, features)
    return total / len(leaves)


@compiled
def answer_adaptive(
    state: State, rows: Floats, x: Floats, columns: Integers, features: Integers
) -> Floats:
    """Return the tree's predictions on the rows, shape (rows,)."""
    totals, given = np.zeros(len(rows)), np.empty(len(rows))
    if state.trees.root[0] < 0:
        return totals
    changed = np.empty((len(rows), 2), np.int64)
    changed_columns(rows, x, changed)
    reached = leaves_to_add(state, rows, x, columns, changed)
    for k in range(reached.shape[1]):
        answer_reached(state, reached[:, k].copy(), rows, features, given)
        for row in range(len(rows)):
            if reached[row, k] >= 0:
                totals[row] += given[row]
    for row in range(len(rows)):
        totals[row] /= np.sum(reached[row] >= 0)
    return totals


@compiled
def error_of(state: State, node: int, of: Given, y: float) -> float:
    """Return the absolute error of a leaf."""
    return abs(y - predict_leaf(state, node, of.x, of.features))


@compiled
def error_of_new(state: State, of: Given, y: float) -> float:
    """Return the absolute error of a leaf that has learned nothing; NaN for infinite features."""
    predicted = 0.0
    if state.settings.prediction != MEANS:
        for value in of.x:
            predicted += value * 0.0
        predicted += state.settings.intercept
    return abs(y - predicted)


@compiled
def visit(state: State, of: Given, y: float, w: float) -> tuple[int, int, float]:
    """Start to learn an observation, and fill in its path; see :func:`find_path`.

    Returns how many branches are on the path, the leaf that predicts, and its error. The error is
    NaN, and nothing has been learned, if it is too large, or that of an alternate tree or of a new
    leaf.
    """
    n, node = find_path(state, of.x, of.columns)
    error = error_of(state, node, of, y)
    is_far = not (error < FAR and error_of_new(state, of, y) < FAR)
    for level in range(n):
        alternate = state.adaptive.path[level, 1]
        if alternate >= 0 and not error_of(state, alternate, of, y) < FAR:
            is_far = True
    if is_far:
        return n, node, math.nan
    count(state, w)
    return n, node, error


@compiled
def learn_path(
    state: State,
    first: int,
    last: int,
    n: int,
    drifts: bool,
    error: float,
    of: Given,
    y: float,
    w: float,
    is_integer: bool,
    words: Words,
    draws: bool,
    least: float,
    significance: float,
) -> tuple[int, int, float, bool, bool]:
    """Let a part of the path of ``n`` branches and a leaf learn; see :func:`next_learner`.

    Returns the status; the leaf that has learned, or NOBODY; its error, whether its errors
    decrease, and whether it is to be split.
    """
    status, leaf = next_learner(
        *(state, first, last, n, drifts, error, of, y, w, is_integer, least, significance)
    )
    if leaf == NOBODY:
        return status, leaf, 0.0, False, False
    own = error_of(state, leaf, of, y)
    weight = drawn_weight(w, words, draws)
    is_better = see_error(state, leaf, own)
    status = learn_leaf(state, 0, leaf, of, y, weight, words)
    return status, leaf, own, is_better, status == DONE and is_due(state, leaf)

"""How the errors of an adaptive tree's nodes weight the predictions of its leaves."""

import math

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import first_best, is_bayes, total_of
from fluxplain.forest.learn import MISSING, OVERFLOW, predict_leaf
from fluxplain.forest.places import fill
from fluxplain.forest.state import ERROR, Integers, State
from fluxplain.forest.summing import total_at


@borrowing
def weigh(n_classes: int, order: Integers, error: float, shares: Floats) -> None:
    """Divide a leaf's shares by their sum and its squared error, unless that is 0."""
    factor = total_at(n_classes, order, shares) * error * error
    if factor == 0.0 or math.isnan(factor):
        return
    scale = 1.0 / factor
    for k in range(n_classes):
        shares[order[k]] *= scale


@compiled
def predict_weighted(state: State, node: int, x: Floats, columns: Integers, shares: Floats) -> int:
    """Fill in a leaf's weighted prediction, shape (classes,); return a status."""
    nodes, status = state.nodes, MISSING
    fill(shares, 0.0)
    if nodes.n_classes[node] > 0:
        status = predict_leaf(state, node, x, columns, True, shares)
        weigh(nodes.n_classes[node], nodes.order[node], state.adaptive.errors[node, ERROR], shares)
    return status


@compiled
def is_silent(state: State, node: int) -> bool:
    """Return whether a leaf predicts nothing: it has no weight yet, which naive Bayes needs."""
    leaf, settings, weight = state.nodes.leaf[node], state.settings, total_of(state.nodes, node)
    active, right = state.leaves.is_active[leaf], state.leaves.correct[leaf]
    is_by_bayes = is_bayes(settings.prediction, settings.nb_threshold, active, right, weight)
    return weight == 0.0 and is_by_bayes


@compiled
def mistake_of(state: State, node: int, x: Floats, columns: Integers, c: int) -> int:
    """Return 1 if a leaf does not predict the class, 0 if it does, -1 where River would raise."""
    shares = np.zeros(state.nodes.weight.shape[1])
    status = predict_weighted(state, node, x, columns, shares)
    if status == OVERFLOW:
        return -1
    if status == MISSING or is_silent(state, node):
        return 1
    return 0 if first_best(state.nodes, node, shares) == c else 1

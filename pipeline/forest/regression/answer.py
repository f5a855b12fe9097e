"""What a model's regression trees answer about many inputs of one observation."""

import numpy as np

from fluxplain.evaluate.compiled import borrowing, compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.reach import changed_columns, leaves_of
from fluxplain.forest.regression.leaf_models import dot
from fluxplain.forest.regression.regress import by_mean
from fluxplain.forest.state import Flags, Integers, State


@borrowing
def answer_leaves(
    leaf: Integers,
    moments: Floats,
    weight: Floats,
    intercept: Floats,
    means: Flags,
    rows: Floats,
    features: Integers,
    reached: Integers,
    given: Floats,
) -> None:
    """Fill in the prediction of each row's leaf, if any: its mean where ``means`` says so."""
    for row in range(len(rows)):
        node = reached[row]
        if node < 0:
            continue
        model = leaf[node]
        if means[row]:
            given[row] = moments[node, 0]
        else:
            given[row] = dot(weight[model], intercept[model], rows[row], features)


@compiled
def answer_reached(
    state: State, reached: Integers, rows: Floats, features: Integers, given: Floats
) -> None:
    """Fill in the prediction of the leaf that each row reaches; rows that reach -1 stay."""
    nodes, models = state.nodes, state.models
    means = np.empty(len(rows), np.bool_)
    for row in range(len(rows)):
        means[row] = reached[row] >= 0 and by_mean(state, nodes.leaf[reached[row]])
    answer_leaves(
        *(nodes.leaf, nodes.moments, models.weight, models.intercept, means),
        *(rows, features, reached, given),
    )


@compiled
def answer_tree(
    state: State,
    tree: int,
    rows: Floats,
    x: Floats,
    columns: Integers,
    features: Integers,
    changed: Integers,
    given: Floats,
) -> None:
    """Fill in a tree's predictions on the rows, shape (rows,)."""
    root = state.trees.root[tree]
    if root < 0:
        given[:] = 0.0
        return
    reached = leaves_of(state, root, rows, x, columns, changed)
    answer_reached(state, reached, rows, features, given)


@compiled
def answer_trees(
    state: State,
    trees: Integers,
    rows: Floats,
    x: Floats,
    columns: Integers,
    features: Integers,
) -> Floats:
    """Return the predictions of some trees, shape (rows, trees)."""
    changed, given = np.empty((len(rows), 2), np.int64), np.empty((len(trees), len(rows)))
    changed_columns(rows, x, changed)
    for i in range(len(trees)):
        answer_tree(state, trees[i], rows, x, columns, features, changed, given[i])
    return given.T.copy()

"""What a tree learns of an observation that it is given several times, as in bagging."""

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.learn import DONE, NOT_ASKED, best_class, learn_tree, predict_tree
from fluxplain.forest.mersenne import Words
from fluxplain.forest.state import Integers, State


@compiled
def learn_and_predict(
    state: State,
    tree: int,
    times: int,
    x: Floats,
    columns: Integers,
    given: Integers,
    ranked: Integers,
    c: int,
    w: float,
    is_integer: bool,
    words: Words,
    asks: bool,
) -> tuple[int, int, int, int]:
    """Let a tree learn an observation some times, and predict if ``asks``.

    It stops early where a split is due, or the tree's size is. Returns how many times are left,
    DONE or OVERFLOW, a leaf to split or -1, and the predicted class, NOT_ASKED if it stopped.
    """
    while times > 0:
        status, node = learn_tree(state, tree, x, columns, given, ranked, c, w, is_integer, words)
        times -= 1
        if status != DONE or node >= 0 or state.news.n[1] > 0:
            return times, status, node, NOT_ASKED
    if not asks:
        return 0, DONE, -1, NOT_ASKED
    shares = np.zeros(state.trees.classes.shape[1])
    status = predict_tree(state, tree, x, columns, shares)
    return 0, status, -1, best_class(state, tree, shares)

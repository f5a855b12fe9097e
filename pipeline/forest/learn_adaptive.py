"""What an adaptive tree for classification learns: its leaves' part; see :mod:`.adapt`."""

from fluxplain.evaluate.compiled import compiled
from fluxplain.forest.adapt import count, drawn_weight, find_path, is_due, next_learner
from fluxplain.forest.alternates import NOBODY
from fluxplain.forest.learn import DONE, OVERFLOW, judge, learn_leaf
from fluxplain.forest.mersenne import Words
from fluxplain.forest.node_errors import see_error
from fluxplain.forest.observe import Given
from fluxplain.forest.state import ADAPTIVE, State
from fluxplain.forest.weighing import mistake_of


@compiled
def error_of(state: State, node: int, of: Given, c: int) -> int:
    """Return 1 if a leaf does not predict the class, 0 if it does, -1 where River would raise."""
    return mistake_of(state, node, of.x, of.columns, c)


@compiled
def visit(state: State, of: Given, c: int, w: float) -> tuple[int, int, int]:
    """Start to learn an observation, and fill in its path; see :func:`find_path`.

    Returns how many branches are on the path, the leaf that predicts, and its mistake if there are
    branches.
    """
    state.trees.classes[0, c] = True
    count(state, w)
    n, node = find_path(state, of.x, of.columns)
    return n, node, error_of(state, node, of, c) if n > 0 else 0


@compiled
def learn_path(
    state: State,
    first: int,
    last: int,
    n: int,
    drifts: bool,
    error: int,
    of: Given,
    c: int,
    w: float,
    is_integer: bool,
    words: Words,
    draws: bool,
    least: float,
    significance: float,
) -> tuple[int, int, int, bool, bool]:
    """Let a part of the path of ``n`` branches and a leaf learn; see :func:`next_learner`.

    Returns the status; the leaf that has learned, or NOBODY; its mistake, -1 where River would
    raise, whether its errors decrease, and whether it is to be split.
    """
    status, leaf = next_learner(
        *(state, first, last, n, drifts, error, of, c, w, is_integer, least, significance)
    )
    if leaf == NOBODY:
        return status, leaf, 0, False, False
    weight = drawn_weight(w, words, draws)
    mistake = error_of(state, leaf, of, c)
    if mistake < 0:
        return OVERFLOW, leaf, mistake, False, False
    is_better = see_error(state, leaf, float(mistake))
    # adaptive trees judge whatever predicts; with naive Bayes adaptive, learning includes it
    is_active = state.leaves.is_active[state.nodes.leaf[leaf]]
    is_judged = is_active and state.settings.prediction != ADAPTIVE
    if is_judged and judge(state, leaf, of.x, of.columns, c, weight) != DONE:
        return OVERFLOW, leaf, mistake, is_better, False
    status = learn_leaf(
        *(state, 0, leaf, of.x, of.columns, of.features, of.features, c, weight),
        *(is_integer, words),
    )
    return status, leaf, mistake, is_better, status == DONE and is_due(state, leaf)

"""What a leaf learns of an observation: its statistics, and its observers' of each feature."""

from typing import NamedTuple

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.bayes import know_class
from fluxplain.forest.mersenne import Words, sample
from fluxplain.forest.places import ENTRIES, fill, take
from fluxplain.forest.state import LEAST, MEAN, MEAN_N, MOST, SQUARES, Integers, State


class Given(NamedTuple):
    """An observation, as numbers.

    ``values`` are those that observers see, which are rounded. ``columns`` has of each feature its
    place in ``x``, -1 if it is missing; ``features`` are those of ``x`` in its order, ``ranked``
    sorted.
    """

    x: Floats
    values: Floats
    columns: Integers
    features: Integers
    ranked: Integers


@compiled
def count_class(state: State, node: int, c: int, w: float, is_integer: bool) -> None:
    """Add a weight to the statistics of a node."""
    nodes = state.nodes
    nodes.is_integer[node, c] = is_integer and (
        nodes.is_integer[node, c] or not nodes.known[node, c]
    )
    if not nodes.known[node, c]:
        nodes.known[node, c] = True
        nodes.order[node, nodes.n_classes[node]] = c
        nodes.n_classes[node] += 1
    nodes.weight[node, c] += w


@compiled
def see_target(state: State, node: int, y: float, w: float) -> None:
    """Add a target to the statistics of a node."""
    count_class(state, node, 0, w, False)
    found, mean = state.nodes.moments[node], state.nodes.moments[node, 0]
    found[0] += (w / state.nodes.weight[node, 0]) * (y - mean)
    found[1] += w * (y - mean) * (y - found[0])


@compiled
def choose_features(state: State, leaf: int, ranked: Integers, most: int, words: Words) -> None:
    """Choose at random which features a leaf looks at; ``ranked`` are those given, sorted."""
    leaves, given = state.leaves, len(ranked)
    if given < most:
        leaves.n_chosen[leaf] = given
        for k in range(given):
            leaves.chosen[leaf, k] = ranked[k]
        return
    leaves.n_chosen[leaf] = most
    sample(words, given, most, leaves.chosen[leaf])
    for k in range(most):
        leaves.chosen[leaf, k] = ranked[leaves.chosen[leaf, k]]


@compiled
def observer_of(state: State, leaf: int, feature: int) -> int:
    """Return a feature's observer, a new one if there is none; -2 if it is switched off."""
    leaves = state.leaves
    place = leaves.place[leaf, feature]
    if place == -1:
        place = leaves.n_observed[leaf]
        leaves.place[leaf, feature], leaves.observed[leaf, place] = place, feature
        leaves.n_observed[leaf] += 1
        observers = state.observers
        observers.n_classes[leaf, place] = 0
        fill(observers.known[leaf, place], False)
        fill(observers.first[leaf, place], -1)
        fill(observers.last[leaf, place], -1)
        fill(observers.values[leaf, place], -1)
        observers.point[leaf, place] = -1
    return int(place)


@compiled
def see_number(state: State, leaf: int, place: int, value: float, c: int, w: float) -> None:
    """Update the normal distribution and the range of a class."""
    is_new = not state.observers.known[leaf, place, c]
    seen = state.observers.gaussian[leaf, place, c]
    if is_new:
        know_class(state, leaf, place, c)
        seen[MEAN_N] = seen[MEAN] = seen[SQUARES] = 0.0
        seen[LEAST] = seen[MOST] = value
    elif value < seen[LEAST]:
        seen[LEAST] = value
    if not is_new and value > seen[MOST]:
        seen[MOST] = value
    before = seen[MEAN]
    seen[MEAN_N] += w
    seen[MEAN] += (w / seen[MEAN_N]) * (value - before)
    seen[SQUARES] += w * (value - before) * (value - seen[MEAN])


@compiled
def _append(state: State, category: float, w: float, is_integer: bool, last: int) -> int:
    """Return a new entry behind the last of a list."""
    entries = state.entries
    entry = take(state.free.n, ENTRIES, state.free.entries)
    entries.category[entry], entries.following[entry] = int(category), -1
    entries.weight[entry], entries.is_integer[entry] = w, is_integer
    if last >= 0:
        entries.following[last] = entry
    return entry


@compiled
def _found(state: State, first: int, category: float) -> int:
    entry = first
    while entry >= 0 and state.entries.category[entry] != category:
        entry = state.entries.following[entry]
    return entry


@compiled
def _tell(state: State, leaf: int, feature: int, category: int, is_first: bool) -> None:
    """Note that a leaf has seen a category for the first time."""
    news = state.news
    new = news.seen[news.n[0]]
    new[0], new[1], new[2], new[3] = leaf, feature, category, is_first
    news.n[0] += 1


@compiled
def see_category(
    state: State, leaf: int, place: int, value: float, c: int, w: float, is_integer: bool
) -> None:
    """Add a weight to a category of a class."""
    leaves, observers, entries = state.leaves, state.observers, state.entries
    values = observers.values[leaf, place]
    if _found(state, values[0], value) < 0:
        _tell(state, leaf, leaves.observed[leaf, place], int(value), values[0] < 0)
        values[1] = _append(state, value, 0.0, False, values[1])
        if values[0] < 0:
            values[0] = values[1]
    know_class(state, leaf, place, c)
    entry = _found(state, observers.first[leaf, place, c], value)
    if entry >= 0:
        entries.weight[entry] += w
        entries.is_integer[entry] &= is_integer
    else:
        entry = _append(state, value, w, is_integer, observers.last[leaf, place, c])
        observers.last[leaf, place, c] = entry
        if observers.first[leaf, place, c] < 0:
            observers.first[leaf, place, c] = entry


@compiled
def see_feature(
    state: State,
    leaf: int,
    feature: int,
    x: Floats,
    columns: Integers,
    c: int,
    w: float,
    is_integer: bool,
) -> None:
    """Show one feature of an observation to its observer."""
    if columns[feature] < 0:
        return
    place = observer_of(state, leaf, feature)
    if place < 0:
        return
    if state.settings.nominal[feature]:
        see_category(state, leaf, place, x[columns[feature]], c, w, is_integer)
    else:
        see_number(state, leaf, place, x[columns[feature]], c, w)

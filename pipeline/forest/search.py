"""The best split that a leaf's observers find, as River searches it."""

import math

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats
from fluxplain.forest.criteria import merit
from fluxplain.forest.places import fill
from fluxplain.forest.state import (
    CATEGORIES,
    CATEGORY,
    LEAF,
    LEAST,
    MEAN,
    MEAN_N,
    MOST,
    NUMERIC,
    SQUARES,
    Integers,
    State,
)

ROOT_2 = math.sqrt(2.0)


@compiled
def _share_below(gaussian: Floats, value: float, half: float) -> float:
    """Return a normal distribution's share below a value.

    ``half`` is 0.5: as a constant, the compiler would take another root than Python.
    """
    n = gaussian[MEAN_N]
    variance = gaussian[SQUARES] / (n - 1.0) if n > 1.0 else 0.0
    deviation = math.pow(variance, half)
    if deviation == 0.0:
        return 0.0
    return 0.5 * (1.0 + math.erf((value - gaussian[MEAN]) / deviation / ROOT_2))


@compiled
def _put(counts: Integers, order: Integers, weights: Floats, side: int, c: int, w: float) -> None:
    order[side, counts[side]], weights[side, counts[side]] = c, w
    counts[side] += 1


@compiled
def _add(counts: Integers, order: Integers, weights: Floats, side: int, c: int, w: float) -> None:
    """Add a weight to that of the class, which is the last one or not there."""
    if counts[side] > 0 and order[side, counts[side] - 1] == c:
        weights[side, counts[side] - 1] += w
    else:
        _put(counts, order, weights, side, c, 0.0 + w)


@compiled
def divide_at(
    state: State,
    leaf: int,
    place: int,
    value: float,
    half: float,
    counts: Integers,
    order: Integers,
    weights: Floats,
) -> None:
    """Fill in the statistics of both sides of a threshold."""
    observers = state.observers
    fill(counts, 0)
    for k in range(observers.n_classes[leaf, place]):
        c = observers.order[leaf, place, k]
        seen = observers.gaussian[leaf, place, c]
        if value < seen[LEAST]:
            _put(counts, order, weights, 1, c, seen[MEAN_N])
        elif value >= seen[MOST]:
            _put(counts, order, weights, 0, c, seen[MEAN_N])
        else:
            w = _share_below(seen, value, half) * seen[MEAN_N]
            _put(counts, order, weights, 0, c, w)
            _put(counts, order, weights, 1, c, seen[MEAN_N] - w)


@compiled
def divide_by(
    state: State,
    leaf: int,
    place: int,
    category: int,
    counts: Integers,
    order: Integers,
    weights: Floats,
) -> None:
    """Fill in the statistics of a category, and those of all others."""
    observers, entries = state.observers, state.entries
    fill(counts, 0)
    for k in range(observers.n_classes[leaf, place]):
        c = observers.order[leaf, place, k]
        entry = observers.first[leaf, place, c]
        while entry >= 0:
            side = 0 if entries.category[entry] == category else 1
            _add(counts, order, weights, side, c, entries.weight[entry])
            entry = entries.following[entry]


@compiled
def ranked_values(state: State, leaf: int, place: int, ranks: Integers) -> Integers:
    """Return the categories that an observer has seen, sorted."""
    entries, values = state.entries, np.empty(len(ranks), np.int64)
    entry, n = state.observers.values[leaf, place, 0], 0
    while entry >= 0:
        category = entries.category[entry]
        k = n
        while k > 0 and ranks[values[k - 1]] > ranks[category]:
            values[k] = values[k - 1]
            k -= 1
        values[k] = category
        n += 1
        entry = entries.following[entry]
    return values[:n]


@compiled
def divide_all(
    state: State,
    leaf: int,
    place: int,
    values: Integers,
    ranks: Integers,
    counts: Integers,
    order: Integers,
    weights: Floats,
) -> None:
    """Fill in the statistics of each category, with the classes sorted."""
    observers, entries = state.observers, state.entries
    fill(counts, 0)
    for rank in range(len(ranks)):
        for k in range(observers.n_classes[leaf, place]):
            c = observers.order[leaf, place, k]
            if ranks[c] != rank:
                continue
            for side in range(len(values)):
                entry = observers.first[leaf, place, c]
                while entry >= 0 and entries.category[entry] != values[side]:
                    entry = entries.following[entry]
                if entry >= 0:
                    _put(counts, order, weights, side, c, 0.0 + entries.weight[entry])


@compiled
def search_numbers(state: State, leaf: int, place: int, before: float) -> tuple[float, float]:
    """Return the highest merit of a threshold, and that threshold.

    The merit is -inf if there is none, NaN where River would raise.
    """
    observers, best, found = state.observers, -np.inf, 0.0
    least, most = np.inf, -np.inf
    for k in range(observers.n_classes[leaf, place]):
        seen = observers.gaussian[leaf, place, observers.order[leaf, place, k]]
        least = seen[LEAST] if seen[LEAST] < least else least
        most = seen[MOST] if seen[MOST] > most else most
    if not least < np.inf:
        return best, found
    classes = observers.order.shape[2]
    counts, order = np.zeros(2, np.int64), np.empty((2, classes), np.int64)
    weights, width = np.empty((2, classes)), (most - least) / (state.settings.n_splits + 1.0)
    for i in range(state.settings.n_splits):
        value = least + width * (i + 1)
        if not least < value < most:
            continue
        divide_at(state, leaf, place, value, state.settings.half, counts, order, weights)
        judged = merit_of(state, before, counts, order, weights)
        if math.isnan(judged):
            return math.nan, value
        if judged > best:
            best, found = judged, value
    return best, found


@compiled
def merit_of(
    state: State, before: float, counts: Integers, order: Integers, weights: Floats
) -> float:
    """Return the merit of a split; see :func:`merit`."""
    return merit(
        state.settings.criterion,
        state.settings.min_branch_fraction,
        before,
        state.settings.zero,
        state.settings.one,
        state.settings.two,
        counts,
        order,
        weights,
    )


@compiled
def search_categories(
    state: State, leaf: int, place: int, before: float
) -> tuple[float, int, float]:
    """Return the highest merit of a split by categories, its kind, and the category if it is one.

    The merit is -inf if there is none, NaN where River would raise.
    """
    best, kind, found = -np.inf, LEAF, 0.0
    classes = state.observers.order.shape[2]
    if not state.settings.binary_split:
        feature = state.leaves.observed[leaf, place]
        values = ranked_values(state, leaf, place, state.settings.category_ranks[feature])
        counts, order = np.zeros(len(values), np.int64), np.empty((len(values), classes), np.int64)
        weights = np.empty((len(values), classes))
        divide_all(state, leaf, place, values, state.settings.ranks, counts, order, weights)
        best, kind = merit_of(state, before, counts, order, weights), CATEGORIES
    counts, order = np.zeros(2, np.int64), np.empty((2, classes), np.int64)
    weights = np.empty((2, classes))
    entry = state.observers.values[leaf, place, 0]
    while entry >= 0:
        category = state.entries.category[entry]
        divide_by(state, leaf, place, category, counts, order, weights)
        judged = merit_of(state, before, counts, order, weights)
        if math.isnan(judged) or math.isnan(best):
            return math.nan, kind, found
        if judged > best:
            best, kind, found = judged, CATEGORY, float(category)
        entry = state.entries.following[entry]
    return best, kind, found


@compiled
def search(state: State, leaf: int, place: int, before: float) -> tuple[float, int, float]:
    """Return the highest merit that an observer finds, the kind of branch, and its test.

    The kind is that of a leaf if there is no split.
    """
    if state.settings.nominal[state.leaves.observed[leaf, place]]:
        return search_categories(state, leaf, place, before)
    best, value = search_numbers(state, leaf, place, before)
    return best, NUMERIC if best > -np.inf else LEAF, value

"""Makes the arrays of a model's trees, and larger ones when they are full."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fluxplain.forest.state import (
    Adaptive,
    Edges,
    Entries,
    Free,
    Leaves,
    Models,
    News,
    Nodes,
    Observers,
    Points,
    State,
    Trees,
)


class Size(NamedTuple):
    """How many of each the arrays can hold.

    ``observed`` is the number of observers a leaf, ``modelled`` that of its model's features.
    ``watched`` are the nodes of adaptive trees: all, or none.
    """

    trees: int
    nodes: int
    leaves: int
    edges: int
    entries: int
    news: int
    features: int
    observed: int
    classes: int
    points: int = 0
    modelled: int = 0
    watched: int = 0


_SHAPES: dict[type, dict[str, tuple[Any, float, tuple[str, ...]]]] = {
    Trees: {
        "root": (np.int64, -1, ("trees",)),
        "weight": (np.float64, 0, ("trees",)),
        "active": (np.int64, 0, ("trees",)),
        "inactive": (np.int64, 0, ("trees",)),
        "grows": (np.bool_, 1, ("trees",)),
        "classes": (np.bool_, 0, ("trees", "classes")),
        "grace_period": (np.float64, 0, ("trees",)),
        "delta": (np.float64, 0, ("trees",)),
        "tau": (np.float64, 0, ("trees",)),
        "features": (np.int64, 0, ("trees",)),
        "sizes": (np.float64, 0, ("trees", "three")),
        "to_measure": (np.bool_, 0, ("trees",)),
        "is_large": (np.bool_, 0, ("trees",)),
    },
    Nodes: {
        "kind": (np.int8, 0, ("nodes",)),
        "feature": (np.int64, -1, ("nodes",)),
        "test": (np.float64, 0, ("nodes",)),
        "below": (np.int64, -1, ("nodes", "two")),
        "depth": (np.int64, 0, ("nodes",)),
        "leaf": (np.int64, -1, ("nodes",)),
        "n_classes": (np.int64, 0, ("nodes",)),
        "order": (np.int64, 0, ("nodes", "classes")),
        "known": (np.bool_, 0, ("nodes", "classes")),
        "weight": (np.float64, 0, ("nodes", "classes")),
        "is_integer": (np.bool_, 0, ("nodes", "classes")),
        "prior": (np.float64, 0, ("nodes", "classes")),
        "moments": (np.float64, 0, ("nodes", "two")),
    },
    Edges: {
        "category": (np.int64, 0, ("edges",)),
        "node": (np.int64, -1, ("edges",)),
        "following": (np.int64, -1, ("edges",)),
    },
    Leaves: {
        "is_active": (np.bool_, 0, ("leaves",)),
        "correct": (np.float64, 0, ("leaves", "two")),
        "tried": (np.float64, 0, ("leaves",)),
        "n_chosen": (np.int64, 0, ("leaves",)),
        "chosen": (np.int64, 0, ("leaves", "observed")),
        "n_observed": (np.int64, 0, ("leaves",)),
        "observed": (np.int64, 0, ("leaves", "observed")),
        "place": (np.int64, -1, ("leaves", "features")),
        "is_fresh": (np.bool_, 0, ("leaves",)),
    },
    Observers: {
        "n_classes": (np.int64, 0, ("leaves", "observed")),
        "order": (np.int64, 0, ("leaves", "observed", "classes")),
        "known": (np.bool_, 0, ("leaves", "observed", "classes")),
        "gaussian": (np.float64, 0, ("leaves", "observed", "classes", "five")),
        "terms": (np.float64, 0, ("leaves", "observed", "classes", "two")),
        "first": (np.int64, -1, ("leaves", "observed", "classes")),
        "last": (np.int64, -1, ("leaves", "observed", "classes")),
        "values": (np.int64, -1, ("leaves", "observed", "two")),
        "point": (np.int64, -1, ("leaves", "observed")),
    },
    Entries: {
        "category": (np.int64, 0, ("entries",)),
        "weight": (np.float64, 0, ("entries",)),
        "is_integer": (np.bool_, 0, ("entries",)),
        "following": (np.int64, -1, ("entries",)),
    },
    Points: {
        "value": (np.float64, 0, ("points",)),
        "moments": (np.float64, 0, ("points", "three")),
        "left": (np.int64, -1, ("points",)),
        "right": (np.int64, -1, ("points",)),
    },
    Models: {
        "weight": (np.float64, 0, ("leaves", "modelled")),
        "known": (np.bool_, 0, ("leaves", "modelled")),
        "intercept": (np.float64, 0, ("leaves",)),
        "steps": (np.int64, 0, ("leaves",)),
        "errors": (np.float64, 0, ("leaves", "two")),
    },
    News: {
        "n": (np.int64, 0, ("two",)),
        "seen": (np.int64, 0, ("news", "four")),
    },
    Adaptive: {
        "alternate": (np.int64, -1, ("watched",)),
        "errors": (np.float64, 0, ("watched", "three")),
        "counts": (np.int64, 0, ("three",)),
        "path": (np.int64, -1, ("watched", "two")),
        "dropped": (np.int64, -1, ("watched",)),
        "n_dropped": (np.int64, 0, ("one",)),
    },
    Free: {
        "n": (np.int64, 0, ("five",)),
        "nodes": (np.int64, 0, ("nodes",)),
        "leaves": (np.int64, 0, ("leaves",)),
        "edges": (np.int64, 0, ("edges",)),
        "entries": (np.int64, 0, ("entries",)),
        "points": (np.int64, 0, ("points",)),
    },
}

_FIXED = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}

PLACES = ("nodes", "leaves", "edges", "entries", "points")


def empty_state(size: Size) -> State:
    """Return arrays of a size with nothing in them."""
    return grown(None, Size(*[0] * len(size)), size)


def grown(state: State | None, before: Size, size: Size) -> State:
    """Return the arrays with room for more."""
    parts = []
    for i, (part, fields) in enumerate(_SHAPES.items()):
        old = None if state is None else state[i]
        arrays = []
        for field, (of, fill, axes) in fields.items():
            shape = tuple(_FIXED.get(axis) or getattr(size, axis) for axis in axes)
            array = np.full(shape, fill, dtype=of)
            if old is not None:
                kept = getattr(old, field)
                array[tuple(slice(n) for n in kept.shape)] = kept
            arrays.append(array)
        parts.append(part(*arrays))
    free = parts[-1]
    for which, name in enumerate(PLACES):
        new = np.arange(getattr(before, name), getattr(size, name), dtype=np.int64)[::-1]
        # the old places stay on top, so that they are used first
        n = int(free.n[which])
        stack = getattr(free, name)
        stack[len(new) : len(new) + n] = stack[:n].copy()
        stack[: len(new)] = new
        free.n[which] = n + len(new)
    made: list[Any] = [*parts, None if state is None else state.settings]
    return State(*made)


_CACHES = {"nodes": "prior", "leaves": "is_fresh", "observers": "terms"}
"""Part → an array in it that is computed again when it is needed."""


def without_caches(state: State) -> State:
    """Return the state to keep: asking a model does not change it."""
    return _replaced(state, lambda array: np.array(array.shape))


def with_caches(state: State) -> State:
    """Return a state that was kept, with caches that have nothing in them."""
    made = _replaced(state, lambda shape: np.zeros(tuple(shape)))
    leaves = made.leaves._replace(is_fresh=made.leaves.is_fresh.astype(np.bool_))
    return made._replace(leaves=leaves)


def _replaced(state: State, change: Callable[[Any], Any]) -> State:
    parts = {
        part: getattr(state, part)._replace(**{name: change(getattr(getattr(state, part), name))})
        for part, name in _CACHES.items()
    }
    return state._replace(**parts)

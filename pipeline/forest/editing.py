"""Writing single places of a model's arrays from Python."""

from collections.abc import Iterable, Mapping
from typing import Any

from fluxplain.forest import places
from fluxplain.forest.bayes import know_class
from fluxplain.forest.observe import observer_of
from fluxplain.forest.pool import PLACES
from fluxplain.forest.state import State
from fluxplain.forest.tree_arrays import TreeArrays


class Editor:
    """Adds nodes, observers and entries to a model's arrays, which grow as needed."""

    def __init__(self, arrays: TreeArrays) -> None:
        self.arrays = arrays

    @property
    def state(self) -> State:
        """The arrays of now: larger ones replace them."""
        return self.arrays.state

    def take(self, which: int) -> int:
        """Take a free place among the nodes, leaves, edges or entries."""
        self.arrays.reserve(which, 1)
        free = self.state.free
        return places.take(free.n, which, getattr(free, PLACES[which]))

    def add_edge(self, node: int, category: int, below: int) -> None:
        """Append a way to a branch by categories."""
        self.arrays.reserve(places.EDGES, 1)
        places.add_edge(self.arrays.pointer, node, category, below)

    def add_observer(self, leaf: int, feature: int) -> int:
        """Append an empty observer of a feature; return its place."""
        return observer_of(self.arrays.pointer, leaf, feature)

    def know_class(self, leaf: int, place: int, c: int) -> None:
        """Append a class to those that an observer knows."""
        know_class(self.arrays.pointer, leaf, place, c)

    def add_weights(self, leaf: int, place: int, c: int, weights: Mapping[int, float]) -> None:
        """Put the weights of a class's categories."""
        first, last = self._chain(weights.items())
        observers = self.state.observers
        observers.first[leaf, place, c], observers.last[leaf, place, c] = first, last

    def put_values(self, leaf: int, place: int, feature: int, values: set[Any]) -> None:
        """Put the categories that an observer has seen."""
        codes = [(self.arrays.names.code(feature, value), 0.0) for value in values]
        self.state.observers.values[leaf, place] = self._chain(codes)
        self.arrays.sets[leaf, feature] = values

    def _chain(self, items: Iterable[tuple[int, float]]) -> tuple[int, int]:
        """Return the first and the last of new entries."""
        first = last = -1
        for category, weight in items:
            entry = self.take(places.ENTRIES)
            entries = self.state.entries
            entries.category[entry], entries.following[entry] = category, -1
            entries.weight[entry], entries.is_integer[entry] = weight, type(weight) is int
            if last >= 0:
                entries.following[last] = entry
            first, last = (entry if first < 0 else first), entry
        return first, last

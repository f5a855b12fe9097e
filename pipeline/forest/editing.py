"""Writing single places of a model's arrays from Python."""

from collections.abc import Iterable, Mapping
from typing import Any

from fluxplain.forest.grove import Grove
from fluxplain.forest.pool import PLACES
from fluxplain.forest.state import State


class Editor:
    """Adds nodes, observers and entries to a model's arrays, which grow as needed."""

    def __init__(self, grove: Grove) -> None:
        self.grove = grove

    @property
    def state(self) -> State:
        """The arrays of now: larger ones replace them."""
        return self.grove.state

    def take(self, name: str) -> int:
        """Take a free place among the nodes, leaves, edges or entries."""
        which = PLACES.index(name)
        self.grove.reserve(which, 1)
        free = self.state.free
        free.n[which] -= 1
        return int(getattr(free, name)[free.n[which]])

    def add_edge(self, node: int, category: int, below: int) -> None:
        """Append a way to a branch by categories."""
        edge = self.take("edges")
        nodes, edges = self.state.nodes, self.state.edges
        edges.category[edge], edges.node[edge], edges.following[edge] = category, below, -1
        if nodes.below[node, 0] < 0:
            nodes.below[node, 0] = edge
        else:
            edges.following[nodes.below[node, 1]] = edge
        nodes.below[node, 1] = edge

    def add_observer(self, leaf: int, feature: int) -> int:
        """Append an empty observer of a feature; return its place."""
        leaves, observers = self.state.leaves, self.state.observers
        place = int(leaves.n_observed[leaf])
        leaves.n_observed[leaf] += 1
        leaves.observed[leaf, place], leaves.place[leaf, feature] = feature, place
        observers.n_classes[leaf, place], observers.known[leaf, place] = 0, False
        for field in (observers.first, observers.last, observers.values):
            field[leaf, place] = -1
        return place

    def know_class(self, leaf: int, place: int, c: int) -> None:
        """Append a class to those that an observer knows."""
        observers = self.state.observers
        observers.order[leaf, place, observers.n_classes[leaf, place]] = c
        observers.known[leaf, place, c] = True
        observers.n_classes[leaf, place] += 1

    def add_weights(self, leaf: int, place: int, c: int, weights: Mapping[int, float]) -> None:
        """Put the weights of a class's categories."""
        first, last = self._chain(weights.items())
        observers = self.state.observers
        observers.first[leaf, place, c], observers.last[leaf, place, c] = first, last

    def put_values(self, leaf: int, place: int, feature: int, values: set[Any]) -> None:
        """Put the categories that an observer has seen."""
        codes = [(self.grove.names.code(feature, value), 0.0) for value in values]
        self.state.observers.values[leaf, place] = self._chain(codes)
        self.grove.sets[leaf, feature] = values

    def _chain(self, items: Iterable[tuple[int, float]]) -> tuple[int, int]:
        """Return the first and the last of new entries."""
        first = last = -1
        for category, weight in items:
            entry = self.take("entries")
            entries = self.state.entries
            entries.category[entry], entries.weight[entry] = category, weight
            entries.following[entry] = -1
            if last >= 0:
                entries.following[last] = entry
            first, last = (entry if first < 0 else first), entry
        return first, last

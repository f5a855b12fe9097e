"""A model's trees: their arrays, names and random numbers, and what is done with all of them."""

from collections.abc import Mapping
from operator import is_
from typing import Any

import numpy as np

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn, places
from fluxplain.forest.mersenne import Words
from fluxplain.forest.names import Layout, Names, UnsupportedError
from fluxplain.forest.parameters import settings_of
from fluxplain.forest.places import NODES
from fluxplain.forest.pool import PLACES, Size, empty_state, grown, with_caches, without_caches
from fluxplain.forest.state import Integers, Settings, State
from fluxplain.forest.structs import pointer_to

_NOT_KEPT = frozenset({"pointer", "_sorted", "_last", "_room_for"})
"""Attributes that are made again."""


_Last = tuple[Layout | None, tuple[Any, ...], Floats]
"""The last observation that was encoded: the places of its features, its values, its row."""


class TreeArrays:
    """The trees of one model.

    ``parameters`` are River's, of one tree; ``labels`` the classes, by their numbers.
    """

    def __init__(self, parameters: Mapping[str, Any], *, n_trees: int, words: Words) -> None:
        if not 0.0 < parameters["delta"] <= 1.0:
            raise UnsupportedError(f"delta is {parameters['delta']}")
        self.parameters = dict(parameters)
        self.names = Names(
            parameters["nominal_attributes"], needs_names=parameters["remove_poor_attrs"]
        )
        self.words = words
        self.size = self._first_size(n_trees)
        self._put(empty_state(self.size)._replace(settings=self._settings()))
        self.sets: dict[tuple[int, int], set[Any]] = {}
        self.labels: list[Any] = []
        self._known = 0
        self._needs = (0, 0, 0, 0, 0)
        self._start_caches()

    def _first_size(self, n_trees: int) -> Size:
        return Size(n_trees, 64, 64, 16, 16, 16, 1, 1, 2, watched=self._first_watched())

    def _first_watched(self) -> int:
        """Return how many nodes an adaptive tree has room for; 0 for other trees."""
        return 64 if "drift_detector" in self.parameters else 0

    def _start_caches(self) -> None:
        self._sorted: dict[bytes, list[int]] = {}
        self._last: _Last = None, (), np.empty(0)
        self._room_for = 0

    def _settings(self) -> Settings:
        return settings_of(self.parameters, self.names, self.size)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _NOT_KEPT}
        return {**kept, "state": without_caches(self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_caches()
        self._put(with_caches(self.state))
        for leaf, feature in self.sets:  # a set that was read again can have another order
            self._order_values(leaf, feature)

    def encode(self, x: Mapping[Any, Any], *, learns: bool = False) -> tuple[Floats, Layout]:
        """Return an observation as numbers, and the places of its features."""
        names, features, values = self.names, tuple(x), tuple(x.values())
        layout = names.layouts.get(features)
        if layout is None:
            if not learns and not names.knows(x):
                return self._encode_known(x)
            layout = names.new_layout(features, x)
        last, its_values, its_row = self._last
        if layout is last and all(map(is_, values, its_values)):
            return its_row, layout  # a model is asked about what it learns then
        row = names.row(values, layout, learns=learns)
        if layout.is_numeric:
            self._last = layout, values, row
        if names.n_known != self._known:
            self.make_room()
        return row, layout

    leaves_out_unknown = True
    """Whether features that were never learned do not matter for predictions, whatever they are."""

    def _encode_known(self, x: Mapping[Any, Any]) -> tuple[Floats, Layout]:
        """Encode an observation without features that were never learned: no tree tests them."""
        return self.encode({name: x[name] for name in x if name in self.names.features})

    def encode_labelled(self, x: Mapping[Any, Any], y: Any) -> tuple[Floats, Layout, int]:
        """Return an observation as numbers, and its class, with room for what it can add."""
        row, layout = self.encode(x, learns=True)
        c = self.names.label(y)
        if self.names.n_known != self._known:
            self.make_room()
        self.take_room()
        return row, layout, c

    def take_room(self) -> None:
        """Make room for what a leaf of each tree can add when it learns an observation."""
        self._room_for -= 1
        if self._room_for < 0:
            self._reserve()

    def _reserve(self) -> None:
        """Make room for an observation, and count for how many there is room."""
        for which, need in enumerate(self._needs):
            self.reserve(which, need)
        pairs = zip(self.state.free.n.tolist(), self._needs, strict=True)
        self._room_for = min([free // need for free, need in pairs if need]) - 1

    def answer(self, tree: int, shares: Floats) -> dict[Any, float]:
        """Return a tree's prediction as River returns it."""
        labels, given = self.labels, shares.tolist()
        return {labels[c]: given[c] for c in self.classes_of(tree)}

    def classes_of(self, tree: int) -> list[int]:
        """Return the classes that a tree has learned, sorted by their labels."""
        learned = self.state.trees.classes[tree].tobytes()
        found = self._sorted.get(learned)
        if found is None:
            known = self.state.trees.classes[tree].nonzero()[0].tolist()
            found = sorted(known, key=self.state.settings.ranks.__getitem__)
            self._sorted[learned] = found
        return found

    def scratch(self) -> tuple[Floats, Integers]:
        """Return room for votes and the order of classes."""
        classes = self.size.classes
        return np.zeros(classes), np.zeros(classes, np.int64)

    def plans(self, n: int) -> tuple[Integers, Integers, Integers]:
        """Return room for what ``n`` trees predict, draw, and split."""
        return (
            np.full(n, learn.NOT_ASKED),
            np.zeros(n, np.int64),
            np.full(self.size.trees, -1),
        )

    def settle(self, due: Integers | None) -> bool:
        """Take new categories, and try the splits that are due, if any.

        Returns whether River would look at the size of a tree.
        """
        news, looks = self.state.news.n.tolist()
        if news:
            self._take_news()
        if due is not None:
            if not learn.split_due(self.pointer, due):
                raise ZeroDivisionError("float division by zero")
            looks = self.state.news.n[1]
        return bool(looks)

    def path(self, n: int) -> list[list[int]]:
        """Return the path of an observation: ``n`` branches and a leaf; see :class:`Adaptive`."""
        return self.state.adaptive.path[: n + 1].tolist()  # type: ignore[no-any-return]

    def most_nodes(self) -> int:
        """Return how many nodes there may be after the next observation.

        An adaptive tree can split the leaf that it reaches, and an alternate tree at each branch.
        """
        leaves = int(self.state.nodes.depth.max()) + 2
        return int(self.size.nodes - self.state.free.n[NODES]) + leaves * self._needs[NODES]

    def forget_looks(self) -> None:
        """Look at no size, since River has raised before it would."""
        self.state.trees.to_measure[:], self.state.news.n[1] = False, 0

    def make_room(self) -> None:
        """Enlarge the arrays for new names."""
        names, size, trees = self.names, self.size, self.size.trees
        self._known = names.n_known
        known = len(names.features), len(names.classes)
        observed = self._most_observed(known[0])
        wanted = size._replace(
            news=_enlarged(size.news, trees * observed),
            features=_enlarged(size.features, known[0]),
            classes=_enlarged(size.classes, known[1]),
            observed=_enlarged(size.observed, observed),
        )
        self._resize(wanted)
        self._put(self.state._replace(settings=self._settings()))
        self.labels, self._sorted = [*names.classes], {}
        counts = [len(each) for each in names.categories if each is not None]
        ways = max(2, *counts, 2) + 1
        observers = trees * self.size.observed if counts else 0
        # what one observation can add
        self._needs = trees * ways, trees * ways, trees * ways, 2 * observers, 0
        self._room_for = 0

    def reserve(self, which: int, need: int) -> None:
        """Enlarge the arrays if less than ``need`` places of a kind are free; see PLACES."""
        if self.state.free.n[which] < need:
            name = PLACES[which]
            had = getattr(self.size, name)
            self._resize(self.size._replace(**{name: 2 * had + need}))

    def _take_news(self) -> None:
        """Keep each leaf's categories in the order in which River would try to split by them.

        River keeps them in a set, so that is the order of the set.
        """
        news = self.state.news
        for leaf, feature, category, is_first in news.seen[: int(news.n[0])].tolist():
            if is_first:
                self.sets[leaf, feature] = set()
            self.sets[leaf, feature].add(self.names.value(feature, category))
            self._order_values(leaf, feature)
        news.n[0] = 0

    def _order_values(self, leaf: int, feature: int) -> None:
        """Give the categories that a leaf has seen the order of their set."""
        place = int(self.state.leaves.place[leaf, feature])
        if place < 0:  # the leaf observes no longer
            return
        entries = self.state.entries
        entry = int(self.state.observers.values[leaf, place, 0])
        for value in self.sets[leaf, feature]:
            entries.category[entry] = self.names.code(feature, value)
            entry = int(entries.following[entry])

    def _put(self, state: State) -> None:
        self.state, self.pointer = state, pointer_to(state)

    def _most_observed(self, features: int) -> int:
        chosen: int | None = self.parameters.get("max_features")
        return features if chosen is None else min(features, chosen)

    def _resize(self, size: Size) -> None:
        if size.watched:
            size = size._replace(watched=size.nodes)
        if size != self.size:
            self._put(grown(self.state, self.size, size))
            self.size = size

    def put_tree(self, tree: int, parameters: Mapping[str, Any]) -> None:
        """Make a tree one that has learned nothing."""
        self.drop_tree(tree)
        trees = self.state.trees
        trees.weight[tree], trees.grows[tree], trees.classes[tree] = 0.0, True, False
        trees.active[tree] = trees.inactive[tree] = 0
        trees.grace_period[tree] = parameters["grace_period"]
        trees.delta[tree], trees.tau[tree] = parameters["delta"], parameters["tau"]
        trees.features[tree] = parameters.get("max_features", -1)
        trees.sizes[tree] = 0.0, 0.0, 1.0

    def drop_tree(self, tree: int) -> None:
        """Free the places of a tree, whose size is not looked at."""
        trees = self.state.trees
        trees.to_measure[tree] = trees.is_large[tree] = False
        root = int(self.state.trees.root[tree])
        if root >= 0:
            places.free_tree(self.pointer, root)
            self.state.trees.root[tree] = -1


def _enlarged(size: int, wanted: int) -> int:
    while size < wanted:
        size *= 2
    return size

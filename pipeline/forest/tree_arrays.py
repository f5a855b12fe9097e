"""A model's trees: their arrays, names and random numbers, and what is done with all of them."""

import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from river.tree.splitter import GaussianSplitter

from fluxplain.evaluate.encoding import Floats
from fluxplain.forest import learn, places
from fluxplain.forest.criteria import GINI, HELLINGER, INFO_GAIN
from fluxplain.forest.mersenne import Words
from fluxplain.forest.names import Layout, Names, UnsupportedError, ranks_of
from fluxplain.forest.pool import PLACES, Size, empty_state, grown, with_caches, without_caches
from fluxplain.forest.state import ADAPTIVE, BAYES, MAJORITY, Flags, Integers, Settings, State
from fluxplain.forest.structs import pointer_to

_PREDICTIONS = {"mc": MAJORITY, "nb": BAYES, "nba": ADAPTIVE}

DEFAULT_SPLITS: int = GaussianSplitter().n_splits

_CRITERIA = {"info_gain": INFO_GAIN, "gini": GINI, "hellinger": HELLINGER}


_NOT_KEPT = frozenset({"pointer", "_sorted", "_last", "_room_for"})
"""Attributes that are made again."""


class _Last(NamedTuple):
    """The last observation that was encoded."""

    layout: Layout | None
    values: tuple[Any, ...]
    row: Floats


class TreeArrays:
    """The trees of one model.

    ``parameters`` are River's, of one tree; ``labels`` the classes, by their numbers.
    """

    def __init__(self, parameters: Mapping[str, Any], *, n_trees: int, words: Words) -> None:
        self.parameters = dict(parameters)
        self.names = Names(
            parameters["nominal_attributes"], needs_names=parameters["remove_poor_attrs"]
        )
        self.words = words
        self.size = Size(n_trees, 64, 64, 16, 16, 16, 1, 1, 2)
        self._put(empty_state(self.size)._replace(settings=self._settings()))
        self.sets: dict[tuple[int, int], set[Any]] = {}
        self.labels: list[Any] = []
        self._known = 0
        self._needs = (0, 0, 0, 0)
        self._start_caches()

    def _start_caches(self) -> None:
        self._sorted: dict[bytes, list[int]] = {}
        self._last = _Last(None, (), np.empty(0))
        self._room_for = 0

    def _settings(self) -> Settings:
        given, classes = self.parameters, self.names.classes
        most = max((len(each) for each in self.names.categories if each is not None), default=0)
        category_ranks = np.zeros((self.size.features, max(most, 1)), dtype=np.int64)
        for feature, categories in enumerate(self.names.categories):
            if categories:
                category_ranks[feature] = ranks_of(categories, category_ranks.shape[1])
        return Settings(
            prediction=_PREDICTIONS[given["leaf_prediction"]],
            criterion=_CRITERIA[given["split_criterion"]],
            nb_threshold=float(given["nb_threshold"]),
            max_depth=float(
                sys.getrecursionlimit() - 20 if given["max_depth"] is None else given["max_depth"]
            ),
            n_splits=_splits(given["splitter"]),
            binary_split=given["binary_split"],
            merit_preprune=given["merit_preprune"],
            remove_poor_attrs=given["remove_poor_attrs"],
            stop_mem_management=given["stop_mem_management"],
            min_branch_fraction=float(given["min_branch_fraction"]),
            max_share_to_split=float(given["max_share_to_split"]),
            zero=classes.get(0, -1),
            one=classes.get(1, -1),
            ranks=ranks_of(classes, self.size.classes),
            category_ranks=category_ranks,
            nominal=self._nominal(),
            max_bytes=given["max_size"] * 2.0**20,
            period=_period(given["memory_estimate_period"]),
            two=2.0,
            half=0.5,
        )

    def _nominal(self) -> Flags:
        nominal = np.zeros(self.size.features, np.bool_)
        nominal[: len(self.names.categories)] = [each is not None for each in self.names.categories]
        return nominal

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _NOT_KEPT}
        return {**kept, "state": without_caches(self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start_caches()
        self._put(with_caches(self.state))

    def encode(self, x: Mapping[Any, Any], *, learns: bool = False) -> tuple[Floats, Layout]:
        """Return an observation as numbers, and the places of its features."""
        names, values = self.names, tuple(x.values())
        layout = names.layout(x)
        if layout is self._last.layout and values == self._last.values:
            return self._last.row, layout  # a model is asked about what it learns then
        row = names.row(values, layout, learns=learns)
        if layout.is_numeric:
            self._last = _Last(layout, values, row)
        if names.n_known != self._known:
            self.make_room()
        return row, layout

    def encode_labelled(self, x: Mapping[Any, Any], y: Any) -> tuple[Floats, Layout, int]:
        """Return an observation as numbers, and its class, with room for what it can add."""
        row, layout = self.encode(x, learns=True)
        c = self.names.label(y)
        if self.names.n_known != self._known:
            self.make_room()
        self._room_for -= 1
        if self._room_for < 0:
            self._reserve()
        return row, layout, c

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
        if learned not in self._sorted:
            known = self.state.trees.classes[tree].nonzero()[0].tolist()
            self._sorted[learned] = sorted(known, key=self.state.settings.ranks.__getitem__)
        return self._sorted[learned]

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
        self._needs = trees * ways, trees * ways, trees * ways, 2 * observers
        self._room_for = 0

    def reserve(self, which: int, need: int) -> None:
        """Enlarge the arrays if less than ``need`` nodes, leaves, edges or entries are free."""
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
            values = self.sets[leaf, feature]
            values.add(self.names.value(feature, category))
            place = int(self.state.leaves.place[leaf, feature])
            if place < 0:  # the leaf observes no longer
                continue
            entries = self.state.entries
            entry = int(self.state.observers.values[leaf, place, 0])
            for value in values:
                entries.category[entry] = self.names.code(feature, value)
                entry = int(entries.following[entry])
        news.n[0] = 0

    def _put(self, state: State) -> None:
        self.state, self.pointer = state, pointer_to(state)

    def _most_observed(self, features: int) -> int:
        chosen: int | None = self.parameters.get("max_features")
        return features if chosen is None else min(features, chosen)

    def _resize(self, size: Size) -> None:
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
        trees.to_measure[tree] = trees.is_large[tree] = False

    def drop_tree(self, tree: int) -> None:
        """Free the places of a tree."""
        root = int(self.state.trees.root[tree])
        if root >= 0:
            places.free_tree(self.pointer, root)
            self.state.trees.root[tree] = -1


def _enlarged(size: int, wanted: int) -> int:
    while size < wanted:
        size *= 2
    return size


def _period(weight: float) -> float:
    """Return after which weight sizes are estimated, or raise ``UnsupportedError``."""
    if not weight > 0:
        raise UnsupportedError(f"memory_estimate_period is {weight}")
    return float(weight)


def _splits(splitter: Any) -> int:
    """Return how many thresholds a splitter tries; raise ``UnsupportedError`` for another one."""
    if splitter is None:
        return DEFAULT_SPLITS
    if type(splitter) is not GaussianSplitter:
        raise UnsupportedError(f"its splitter is a {type(splitter).__name__}")
    n_splits: int = splitter.n_splits
    return n_splits

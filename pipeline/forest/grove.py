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


class Encoded(NamedTuple):
    """An observation as numbers, the places of its features, and its class, -1 without one."""

    row: Floats
    layout: Layout
    label: int


class Grove:
    """The trees of one model. ``parameters`` are River's, of one tree."""

    def __init__(self, parameters: Mapping[str, Any], *, n_trees: int, words: Words) -> None:
        self.parameters = dict(parameters)
        self.names = Names(
            parameters["nominal_attributes"], needs_names=parameters["remove_poor_attrs"]
        )
        self.words = words
        self.size = Size(n_trees, 64, 64, 16, 16, 16, 1, 1, 2)
        self._put(empty_state(self.size)._replace(settings=self._settings()))
        self.sets: dict[tuple[int, int], set[Any]] = {}
        self._labels: list[Any] = []
        self._known = 0
        self._needs = (0, 0, 0, 0)

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
        kept = {name: value for name, value in self.__dict__.items() if name != "pointer"}
        return {**kept, "state": without_caches(self.state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._put(with_caches(self.state))

    def encode(self, x: Mapping[Any, Any], y: Any = None) -> Encoded:
        """Return an observation as numbers, the places of its features, and its class."""
        names = self.names
        layout = names.layout(x)
        row = names.row(x, layout, learns=y is not None)
        c = -1 if y is None else names.label(y)
        self.make_room()
        return Encoded(row, layout, c)

    @property
    def labels(self) -> list[Any]:
        """The classes, by their numbers."""
        return self._labels

    def answer(self, tree: int, shares: Floats) -> dict[Any, float]:
        """Return a tree's prediction as River returns it."""
        return {self._labels[c]: float(shares[c]) for c in self.classes_of(tree)}

    def classes_of(self, tree: int) -> list[int]:
        """Return the classes that a tree has learned, sorted by their labels."""
        known = self.state.trees.classes[tree].nonzero()[0].tolist()
        return sorted(known, key=self.state.settings.ranks.__getitem__)

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

    def split(self, due: Integers) -> bool:
        """Try to split what is due in each tree; return whether to look at their sizes."""
        if self.state.news.n[0]:
            self.take_news()
        is_done, looks = learn.split_due(self.pointer, due)
        if not is_done:
            raise ZeroDivisionError("float division by zero")
        return bool(looks)

    def make_room(self) -> None:
        """Enlarge the arrays for new names, and for what one observation can add."""
        names, size = self.names, self.size
        if names.n_known != self._known:
            self._known = names.n_known
            known = len(names.features), len(names.classes)
            wanted = size._replace(
                news=_enlarged(size.news, size.trees * self._most_observed(known[0])),
                features=_enlarged(size.features, known[0]),
                classes=_enlarged(size.classes, known[1]),
                observed=_enlarged(size.observed, self._most_observed(known[0])),
            )
            self._resize(wanted)
            self._put(self.state._replace(settings=self._settings()))
            self._labels = [*names.classes]
            nominal = [each is not None for each in names.categories]
            ways = max(2, *(len(each) for each in names.categories if each is not None), 2) + 1
            observers = self.size.trees * self.size.observed if any(nominal) else 0
            trees = self.size.trees
            self._needs = trees * ways, trees * ways, trees * ways, 2 * observers
        for which, need in enumerate(self._needs):
            self.reserve(which, need)

    def reserve(self, which: int, need: int) -> None:
        """Enlarge the arrays if less than ``need`` nodes, leaves, edges or entries are free."""
        if self.state.free.n[which] < need:
            name = PLACES[which]
            had = getattr(self.size, name)
            self._resize(self.size._replace(**{name: 2 * had + need}))

    def take_news(self) -> None:
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
        trees.features[tree] = parameters.get("max_features", 0)
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

"""Reads River's objects of a tree into arrays."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from river.proba import Gaussian
from river.tree.nodes.branch import NominalBinaryBranch, NominalMultiwayBranch, NumericBinaryBranch
from river.tree.nodes.leaf import HTLeaf
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from fluxplain.forest.editing import Editor
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.places import LEAVES, NODES
from fluxplain.forest.sets import copy_of
from fluxplain.forest.state import (
    CATEGORIES,
    CATEGORY,
    LEAF,
    LEAST,
    MEAN,
    MEAN_N,
    MOST,
    NUMERIC,
    OFF,
    SQUARES,
)
from fluxplain.forest.summing import ADDED_TYPES
from fluxplain.forest.tree_arrays import TreeArrays


class TreeReader:
    """Writes a classification tree into a model's arrays. Names must have been learned before."""

    def __init__(self, arrays: TreeArrays) -> None:
        self._arrays = arrays
        self._editor = Editor(arrays)

    def read(self, tree: int, river: Any) -> None:
        """Put one of River's trees in a place for a tree."""
        arrays = self._arrays
        trees = arrays.state.trees
        trees.grace_period[tree], trees.delta[tree] = river.grace_period, river.delta
        trees.tau[tree], trees.weight[tree] = river.tau, river._train_weight_seen_by_model
        trees.active[tree], trees.inactive[tree] = river._n_active_leaves, river._n_inactive_leaves
        trees.grows[tree] = river._growth_allowed
        trees.sizes[tree] = (
            river._active_leaf_size_estimate,
            river._inactive_leaf_size_estimate,
            river._size_estimate_overhead_fraction,
        )
        self._classes(tree, river)
        if river._root is not None:
            root = self._root(river._root)  # makes room, which replaces the arrays
            arrays.state.trees.root[tree] = root

    def _classes(self, tree: int, river: Any) -> None:
        for label in river.classes:
            self._arrays.state.trees.classes[tree, self._arrays.names.classes[label]] = True

    def _root(self, river: Any) -> int:
        """Return the place of a root: without recursion, since trees can be deep."""
        order = [river]
        for each in order:
            order += [] if isinstance(each, HTLeaf) else each.children
        places = {id(each): self._node(each) for each in order}
        for each in order:
            if not isinstance(each, HTLeaf):
                self._branch(places[id(each)], each, [places[id(c)] for c in each.children])
        return places[id(river)]

    def _node(self, river: Any) -> int:
        node = self._editor.take(NODES)
        nodes = self._arrays.state.nodes
        nodes.depth[node], nodes.n_classes[node], nodes.below[node] = river.depth, 0, -1
        nodes.known[node], nodes.weight[node], nodes.leaf[node] = False, 0.0, -1
        self._statistics(node, river.stats)
        if isinstance(river, HTLeaf):
            self._leaf(node, river)
        return node

    def _statistics(self, node: int, stats: Any) -> None:
        nodes = self._arrays.state.nodes
        for label, weight in stats.items():
            c = self._arrays.names.classes[label]
            nodes.order[node, nodes.n_classes[node]], nodes.known[node, c] = c, True
            check_weight(weight)
            nodes.weight[node, c], nodes.is_integer[node, c] = weight, type(weight) is int
            nodes.n_classes[node] += 1

    def _branch(self, node: int, river: Any, below: list[int]) -> None:
        feature = self._arrays.names.features[river.feature]
        is_nominal = isinstance(river, NominalBinaryBranch | NominalMultiwayBranch)
        self._check_kind(feature, is_nominal=is_nominal)
        nodes = self._arrays.state.nodes
        nodes.feature[node] = feature
        if isinstance(river, NominalMultiwayBranch):
            nodes.kind[node] = CATEGORIES
            for value, i in river._mapping.items():
                self._editor.add_edge(node, self._code(feature, value), below[i])
            return
        nodes.below[node] = below
        if isinstance(river, NumericBinaryBranch):
            nodes.kind[node], nodes.test[node] = NUMERIC, river.threshold
        elif isinstance(river, NominalBinaryBranch):
            nodes.kind[node], nodes.test[node] = CATEGORY, self._code(feature, river.value)
        else:
            raise UnsupportedError(f"a branch is a {type(river).__name__}")

    def _check_kind(self, feature: int, *, is_nominal: bool) -> None:
        if is_nominal != (self._arrays.names.categories[feature] is not None):
            raise UnsupportedError("a feature is both categorical and numeric")

    def _code(self, feature: int, value: Any) -> int:
        return self._arrays.names.code(feature, value)

    def _leaf(self, node: int, river: Any) -> None:
        leaf = self._editor.take(LEAVES)
        state, features = self._arrays.state, self._arrays.names.features
        leaves = state.leaves
        state.nodes.kind[node], state.nodes.leaf[node] = LEAF, leaf
        leaves.is_active[leaf], leaves.tried[leaf] = river.is_active(), river.last_split_attempt_at
        leaves.correct[leaf] = (
            getattr(river, "_mc_correct_weight", 0.0),
            getattr(river, "_nb_correct_weight", 0.0),
        )
        leaves.n_observed[leaf], leaves.place[leaf] = 0, -1
        chosen = [features[name] for name in getattr(river, "feature_indices", [])]
        leaves.n_chosen[leaf], leaves.chosen[leaf, : len(chosen)] = len(chosen), chosen
        for name in river._disabled_attrs:
            leaves.place[leaf, features[name]] = OFF
        for name, splitter in (river.splitters or {}).items():
            self._observer(leaf, features[name], splitter)

    def _observer(self, leaf: int, feature: int, splitter: Any) -> None:
        self._check_kind(feature, is_nominal=not splitter.is_numeric)
        place = self._editor.add_observer(leaf, feature)
        if type(splitter) is NominalSplitterClassif:
            self._categories(leaf, place, feature, splitter)
        elif type(splitter) is GaussianSplitter:
            self._numbers(leaf, place, splitter)
        else:
            raise UnsupportedError(f"a splitter is a {type(splitter).__name__}")

    def _numbers(self, leaf: int, place: int, splitter: GaussianSplitter) -> None:
        for label, normal in splitter._att_dist_per_class.items():
            c = self._known(leaf, place, label)
            seen = self._arrays.state.observers.gaussian[leaf, place, c]
            _fill(seen, normal)
            ends = splitter._min_per_class[label], splitter._max_per_class[label]
            if not all(isinstance(each, float | int | np.integer) for each in ends):
                raise UnsupportedError(f"a splitter has seen {ends!r}")
            seen[LEAST], seen[MOST] = ends

    def _categories(
        self, leaf: int, place: int, feature: int, splitter: NominalSplitterClassif
    ) -> None:
        for label, weights in splitter._att_dist_per_class.items():
            for weight in weights.values():
                check_weight(weight)
            c = self._known(leaf, place, label)
            coded = {self._code(feature, value): weight for value, weight in weights.items()}
            self._editor.add_weights(leaf, place, c, coded)
        self._editor.put_values(leaf, place, feature, copy_of(splitter._att_values))

    def _known(self, leaf: int, place: int, label: Any) -> int:
        """Let an observer know a class; return its number."""
        c = self._arrays.names.classes[label]
        self._editor.know_class(leaf, place, c)
        return c


def check_weight(weight: Any) -> None:
    """Raise ``UnsupportedError`` if arrays do not add a weight as River does."""
    if type(weight) not in ADDED_TYPES:
        raise UnsupportedError(f"a weight is {weight!r}")


def _fill(seen: Any, normal: Gaussian) -> None:
    var = normal._var
    seen[MEAN_N], seen[MEAN], seen[SQUARES] = var.mean.n, var.mean._mean, var._S


def learn_names(arrays: TreeArrays, trees: list[Any]) -> None:
    """Learn all names that River's trees know, and make room for them."""
    for tree in trees:
        for label in getattr(tree, "classes", ()):
            arrays.names.label(label)
    nodes = [node for tree in trees if tree._root is not None for node in _nodes(tree._root)]
    for learn in (_learn_node, _learn_others):
        for node in nodes:
            learn(arrays, node)
    arrays.make_room()


def _nodes(root: Any) -> Iterable[Any]:
    """Return all nodes of a tree; an adaptive one has alternate trees, too."""
    if isinstance(root, HTLeaf):
        return [root]
    nodes = [*root.iter_dfs()]
    behind = (getattr(node, "_alternate_tree", None) for node in nodes)
    return [*nodes, *(each for each in behind if each is not None)]


def _learn_node(arrays: TreeArrays, node: Any) -> None:
    names = arrays.names
    if not isinstance(node, HTLeaf):
        nominal = isinstance(node, NominalBinaryBranch | NominalMultiwayBranch)
        names.learn_feature(node.feature, is_nominal=nominal)
        return
    for name, splitter in (node.splitters or {}).items():
        names.learn_feature(name, is_nominal=not splitter.is_numeric)
    for label in node.stats if isinstance(node.stats, dict) else ():
        names.label(label)


def _learn_others(arrays: TreeArrays, node: Any) -> None:
    """Learn features that a leaf may not observe.

    Those are chosen ones, those that are switched off, and those of its model.
    """
    chosen, off = getattr(node, "feature_indices", ()), getattr(node, "_disabled_attrs", ())
    model = getattr(node, "_leaf_model", None)
    for name in (*chosen, *off, *(model.weights if model else ())):
        is_named = name in (arrays.parameters["nominal_attributes"] or ())
        arrays.names.learn_feature(name, is_nominal=is_named)

"""Reads River's objects of a classification tree into arrays."""

from collections.abc import Iterable
from copy import copy
from typing import Any

from river.proba import Gaussian
from river.tree.nodes.branch import NominalBinaryBranch, NominalMultiwayBranch, NumericBinaryBranch
from river.tree.nodes.leaf import HTLeaf
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from fluxplain.forest.editing import Editor
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.places import LEAVES, NODES
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
from fluxplain.forest.tree_arrays import TreeArrays


class TreeReader:
    """Writes River's objects into a model's arrays. Names must have been learned before."""

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
        for label in river.classes:
            trees.classes[tree, arrays.names.classes[label]] = True
        if river._root is not None:
            root = self._node(river._root)  # makes room, which replaces the arrays
            arrays.state.trees.root[tree] = root

    def _node(self, river: Any) -> int:
        node = self._editor.take(NODES)
        nodes = self._arrays.state.nodes
        nodes.depth[node], nodes.n_classes[node], nodes.below[node] = river.depth, 0, -1
        nodes.known[node], nodes.weight[node], nodes.leaf[node] = False, 0.0, -1
        for label, weight in river.stats.items():
            c = self._arrays.names.classes[label]
            nodes.order[node, nodes.n_classes[node]], nodes.known[node, c] = c, True
            nodes.weight[node, c] = weight
            nodes.n_classes[node] += 1
        if isinstance(river, HTLeaf):
            self._leaf(node, river)
        else:
            self._branch(node, river)
        return node

    def _branch(self, node: int, river: Any) -> None:
        feature = self._arrays.names.features[river.feature]
        below = [self._node(child) for child in river.children]
        nodes = self._arrays.state.nodes
        nodes.feature[node] = feature
        if type(river) is NominalMultiwayBranch:
            nodes.kind[node] = CATEGORIES
            for value, i in river._mapping.items():
                self._editor.add_edge(node, self._code(feature, value), below[i])
            return
        nodes.below[node] = below
        if type(river) is NumericBinaryBranch:
            nodes.kind[node], nodes.test[node] = NUMERIC, river.threshold
        elif type(river) is NominalBinaryBranch:
            nodes.kind[node], nodes.test[node] = CATEGORY, self._code(feature, river.value)
        else:
            raise UnsupportedError(f"a branch is a {type(river).__name__}")

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
            seen[LEAST] = splitter._min_per_class[label]
            seen[MOST] = splitter._max_per_class[label]

    def _categories(
        self, leaf: int, place: int, feature: int, splitter: NominalSplitterClassif
    ) -> None:
        for label, weights in splitter._att_dist_per_class.items():
            c = self._known(leaf, place, label)
            coded = {self._code(feature, value): weight for value, weight in weights.items()}
            self._editor.add_weights(leaf, place, c, coded)
        self._editor.put_values(leaf, place, feature, copy(splitter._att_values))

    def _known(self, leaf: int, place: int, label: Any) -> int:
        """Let an observer know a class; return its number."""
        c = self._arrays.names.classes[label]
        self._editor.know_class(leaf, place, c)
        return c


def _fill(seen: Any, normal: Gaussian) -> None:
    var = normal._var
    seen[MEAN_N], seen[MEAN], seen[SQUARES] = var.mean.n, var.mean._mean, var._S


def learn_names(arrays: TreeArrays, trees: list[Any]) -> None:
    """Learn all names that River's trees know, and make room for them."""
    for tree in trees:
        for label in tree.classes:
            arrays.names.label(label)
    nodes = [node for tree in trees if tree._root is not None for node in _nodes(tree._root)]
    for learn in (_learn_node, _learn_others):
        for node in nodes:
            learn(arrays, node)
    arrays.make_room()


def _nodes(root: Any) -> Iterable[Any]:
    return [root] if isinstance(root, HTLeaf) else root.iter_dfs()


def _learn_node(arrays: TreeArrays, node: Any) -> None:
    names = arrays.names
    if not isinstance(node, HTLeaf):
        nominal = type(node) in {NominalBinaryBranch, NominalMultiwayBranch}
        names.learn_feature(node.feature, is_nominal=nominal)
        return
    for name, splitter in (node.splitters or {}).items():
        names.learn_feature(name, is_nominal=type(splitter) is NominalSplitterClassif)
    for label in node.stats:
        names.label(label)


def _learn_others(arrays: TreeArrays, node: Any) -> None:
    """Learn features that a leaf does not observe: chosen ones, and those that are switched off."""
    for name in (*getattr(node, "feature_indices", ()), *getattr(node, "_disabled_attrs", ())):
        is_named = name in (arrays.parameters["nominal_attributes"] or ())
        arrays.names.learn_feature(name, is_nominal=is_named)

"""Turns the arrays of a classification tree into River's objects."""

from collections.abc import Iterator, Mapping
from typing import Any

from river.proba import Gaussian
from river.tree.splitter import GaussianSplitter
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from fluxplain.forest.sets import copy_of
from fluxplain.forest.state import (
    CATEGORIES,
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


class TreeWriter:
    """Builds River's objects from the arrays; ``river`` is the tree that they belong to."""

    _attributes: Mapping[str, Any] = {}
    """What else the tree's branches are made with."""

    def __init__(self, arrays: TreeArrays, river: Any) -> None:
        self._arrays, self._state, self._river = arrays, arrays.state, river
        self._features = [*arrays.names.features]
        self._classes = [*arrays.names.classes]

    def write(self, tree: int) -> None:
        """Fill in River's tree with one of the arrays."""
        trees, river = self._state.trees, self._river
        river.grace_period = _whole(trees.grace_period[tree])
        river.delta, river.tau = float(trees.delta[tree]), float(trees.tau[tree])
        self._write_classes(tree)
        river._train_weight_seen_by_model = float(trees.weight[tree])
        river._n_active_leaves = int(trees.active[tree])
        river._n_inactive_leaves = int(trees.inactive[tree])
        river._growth_allowed = bool(trees.grows[tree])
        active, inactive, factor = trees.sizes[tree].tolist()
        river._active_leaf_size_estimate = active
        river._inactive_leaf_size_estimate = inactive
        river._size_estimate_overhead_fraction = factor
        if trees.root[tree] >= 0:
            river._root = self._root(int(trees.root[tree]))

    def _write_classes(self, tree: int) -> None:
        known = self._state.trees.classes[tree].nonzero()[0]
        self._river.classes = {self._classes[c] for c in known}

    def _root(self, root: int) -> Any:
        """Return River's root: without recursion, since trees can be deep."""
        order: list[int] = [root]
        made: dict[int, Any] = {}
        for node in order:
            order += self._below(node)
        for node in reversed(order):
            below = [made.pop(each) for each in self._below(node)]
            made[node] = self._node(node, below)
        return made[root]

    def _node(self, node: int, below: list[Any]) -> Any:
        return self._branch(node, below) if below else self._leaf(node)

    def _below(self, node: int) -> list[int]:
        nodes = self._state.nodes
        if nodes.kind[node] == LEAF:
            return []
        if nodes.kind[node] == CATEGORIES:
            return [way for _, way in self._edges(node)]
        below: list[int] = nodes.below[node].tolist()
        return below

    def _branch(self, node: int, below: list[Any]) -> Any:
        nodes, kind = self._state.nodes, self._state.nodes.kind[node]
        depth, stats = int(nodes.depth[node]), self._stats(node)
        name, test = self._features[nodes.feature[node]], nodes.test[node]
        branch = self._river._branch_selector(kind == NUMERIC, kind == CATEGORIES)
        if kind == CATEGORIES:
            values = [self._value(nodes.feature[node], each) for each, _ in self._edges(node)]
            return branch(stats, name, values, depth, *below, **self._attributes)
        is_number, feature = kind == NUMERIC, nodes.feature[node]
        value = float(test) if is_number else self._value(feature, int(test))
        return branch(stats, name, value, depth, *below, **self._attributes)

    def _edges(self, node: int) -> Iterator[tuple[int, int]]:
        edges, edge = self._state.edges, int(self._state.nodes.below[node, 0])
        while edge >= 0:
            yield int(edges.category[edge]), int(edges.node[edge])
            edge = int(edges.following[edge])

    def _value(self, feature: int, category: int) -> Any:
        return self._arrays.names.value(int(feature), category)

    def _stats(self, node: int) -> Any:
        nodes = self._state.nodes
        order = nodes.order[node, : nodes.n_classes[node]].tolist()
        return {
            self._classes[c]: _number(nodes.weight[node, c], nodes.is_integer[node, c])
            for c in order
        }

    def _leaf(self, node: int) -> Any:
        leaf = self._river._new_leaf(self._stats(node))
        place, leaves = int(self._state.nodes.leaf[node]), self._state.leaves
        leaf.depth = int(self._state.nodes.depth[node])
        leaf.last_split_attempt_at = float(leaves.tried[place])
        if hasattr(leaf, "_mc_correct_weight"):
            leaf._mc_correct_weight, leaf._nb_correct_weight = leaves.correct[place].tolist()
        if hasattr(leaf, "feature_indices"):
            chosen = leaves.chosen[place, : leaves.n_chosen[place]].tolist()
            leaf.feature_indices = [self._features[feature] for feature in chosen]
        off = (leaves.place[place] == OFF).nonzero()[0].tolist()
        leaf._disabled_attrs = {self._features[feature] for feature in off}
        observed = leaves.observed[place, : leaves.n_observed[place]].tolist()
        leaf.splitters = {
            self._features[feature]: self._observer(place, i, feature)
            for i, feature in enumerate(observed)
        }
        if not leaves.is_active[place]:
            leaf.deactivate()
        return leaf

    def _observer(self, leaf: int, place: int, feature: int) -> Any:
        observers = self._state.observers
        order = observers.order[leaf, place, : observers.n_classes[leaf, place]].tolist()
        if not self._state.settings.nominal[feature]:
            return self._numbers(leaf, place, order)
        found = NominalSplitterClassif()
        for c in order:
            first = int(observers.first[leaf, place, c])
            found._att_dist_per_class[self._classes[c]] = {
                self._value(feature, category): weight for category, weight in self._entries(first)
            }
        found._att_values = copy_of(self._arrays.sets[leaf, feature])
        found._total_weight_observed = float(
            sum(weight for each in found._att_dist_per_class.values() for weight in each.values())
        )
        return found

    def _numbers(self, leaf: int, place: int, order: list[int]) -> GaussianSplitter:
        found = self._river.splitter.clone()
        for c in order:
            seen, label = self._state.observers.gaussian[leaf, place, c].tolist(), self._classes[c]
            found._min_per_class[label], found._max_per_class[label] = seen[LEAST], seen[MOST]
            normal = found._att_dist_per_class[label] = Gaussian()
            normal._var.mean.n, normal._var.mean._mean = seen[MEAN_N], seen[MEAN]
            normal._var._S = seen[SQUARES]
        return found

    def _entries(self, first: int) -> Iterator[tuple[int, float]]:
        entries, entry = self._state.entries, first
        while entry >= 0:
            weight = _number(entries.weight[entry], entries.is_integer[entry])
            yield int(entries.category[entry]), weight
            entry = int(entries.following[entry])


def _number(weight: float, is_integer: bool) -> float:
    return int(weight) if is_integer else float(weight)


def _whole(number: float) -> float:
    return int(number) if number == int(number) else float(number)

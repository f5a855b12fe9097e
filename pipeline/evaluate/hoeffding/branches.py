"""The branches of a forest as flat arrays that follow the growing trees.

A tree that has learned is compared with its copy if River's counters say that its branches have
changed; what differs is copied again. Nodes that cannot be copied (alternate trees, custom
branches) are marked: for rows that reach them, the tree itself is evaluated.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier, BaseTreeRegressor
from river.tree.base import Branch
from river.tree.nodes.branch import NominalBinaryBranch, NominalMultiwayBranch, NumericBinaryBranch

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.category_lists import Lists
from fluxplain.evaluate.hoeffding.nodes import Nodes
from fluxplain.evaluate.hoeffding.tree_kernels import LEAF, NOMINAL, NUMERIC, OTHER, Flags, Integers

_kinds: dict[type, int] = {}


def _counters(model: Any) -> Hashable:
    return model._n_active_leaves, model._n_inactive_leaves


def _adaptive_counters(model: Any) -> Hashable:
    alternates = model._n_alternate_trees, model._n_pruned_alternate_trees
    return *alternates, model._n_switch_alternate_trees, _counters(model)


def _all_nodes(model: Any) -> Hashable:
    # a node may replace another one without a change of any counter
    return None if model._root is None else tuple(map(id, _walk(model._root)))


def _walk(root: Any) -> Iterator[Any]:
    nodes = [root]
    while nodes:
        node = nodes.pop()
        yield node
        nodes += getattr(node, "children", ())


GROWTH: dict[type, Callable[[Any], Hashable]] = {
    tree.HoeffdingTreeClassifier: _counters,
    tree.HoeffdingTreeRegressor: _counters,
    BaseTreeClassifier: _counters,
    BaseTreeRegressor: _counters,
    tree.HoeffdingAdaptiveTreeClassifier: _adaptive_counters,
    tree.HoeffdingAdaptiveTreeRegressor: _adaptive_counters,
    tree.ExtremelyFastDecisionTreeClassifier: _all_nodes,
}
"""Class of a tree → version of its branches, which ignores branches for new categories."""

_ADAPTIVE = (tree.HoeffdingAdaptiveTreeClassifier, tree.HoeffdingAdaptiveTreeRegressor)


@dataclass(slots=True, eq=False)
class TreeCopy:
    """The nodes of one tree, by their numbers in the arrays; ``root`` is -1 without any.

    Attributes
    ----------
    children
        Branch → the numbers of the nodes below it.
    weight
        What the tree had learned when it was last compared.
    reached
        The leaf that the last observation itself reached, and what that leaf and the tree had
        learned; None after a change of the branches.
    """

    model: Any
    root: int = -1
    children: dict[int, list[int]] = field(default_factory=dict)
    multiway: list[int] = field(default_factory=list)
    leaves: set[int] = field(default_factory=set)
    growth: Hashable = None
    weight: float = -1.0
    reached: tuple[int, float, float] | None = None


class Branches:
    """The branches of several trees; features and nodes are numbered from 0 on."""

    def __init__(self) -> None:
        self.nodes = Nodes()
        self.copies: list[TreeCopy] = []
        self._edges = Lists()  # of each nominal branch the categories
        self._ways: Integers = np.zeros(0, np.int32)
        self._features: dict[str, int] = {}
        self._roots: Integers = np.zeros(0, np.int32)
        self._layout: tuple[Any, ...] = ()

    def number(self, feature: str) -> int:
        """Return the number of a feature, assigning one if necessary."""
        return self._features.setdefault(feature, len(self._features))

    @property
    def n_features(self) -> int:
        """Number of the numbered features."""
        return len(self._features)

    def numbers(self, observed: Observed) -> Integers:
        """Return the number of each column's feature."""
        return np.array([self.number(feature) for feature in observed.features], np.int32)

    def columns(self, observed: Observed) -> tuple[Integers, Flags]:
        """Return each feature's column, -1 without one, and for each column whether it has codes.

        They are kept until features or encoding change.
        """
        encoding = observed.encoding
        layout = observed.features, encoding.mark, len(self._features)
        if self._layout[:3] != layout:
            numbers = self.numbers(observed)
            columns = np.full(len(self._features), -1, np.int32)
            columns[numbers] = np.arange(len(numbers))
            is_text = np.array([encoding.is_categorical(f) for f in observed.features], np.bool_)
            layout = observed.features, encoding.mark, len(self._features)
            self._layout = *layout, columns, is_text
        return self._layout[3], self._layout[4]

    def follow(self, trees: Sequence[Any]) -> None:
        """Copy what has changed in the trees."""
        if [each.model for each in self.copies] != list(trees):
            known = {id(each.model): each for each in self.copies}
            self.copies = [known.pop(id(model), TreeCopy(model)) for model in trees]
            for gone in known.values():
                self._release(gone, gone.root)
        if self._edges.is_wasteful:
            self._edges = Lists()
            for each in self.copies:
                self._rebuild(each)
        for each in self.copies:
            if each.model._train_weight_seen_by_model != each.weight:
                self._compare(each)
        roots = [each.root for each in self.copies]
        if self._roots.tolist() != roots:
            self._roots = np.array(roots, np.int32)

    def reach(self, observed: Observed, x: Floats, is_current: Flags) -> tuple[Integers, list[int]]:
        """Return the leaf that each row reaches in each tree, and those that are not current.

        The first has the shape (trees, rows); -1 where the tree must be asked.
        """
        nodes = self.nodes
        codes = self._edges.codes(observed.encoding)
        reached = np.empty((len(self._roots), len(x)), np.int32)
        common = np.full(len(nodes.kind), -1, np.int32)
        lost = np.zeros(len(nodes.kind), np.bool_)
        stale = np.empty(len(nodes.kind), np.int32)
        columns, is_text = self.columns(observed)
        while True:
            n_stale, n_lost = tree_kernels.reach(
                x,
                columns,
                is_text,
                self._roots,
                nodes.kind,
                nodes.feature,
                nodes.threshold,
                nodes.below,
                codes,
                self._ways,
                common,
                lost,
                reached,
                is_current,
                stale,
            )
            if not n_lost:
                break
            # only for these nodes: weighing a subtree takes long
            for node in np.flatnonzero(lost & (common < 0)).tolist():
                place, _ = nodes.objects[node].most_common_path()
                common[node] = nodes.owners[node].children[node][int(place)]
        return reached, stale[:n_stale].tolist()

    def _compare(self, copy: TreeCopy) -> None:
        """Copy what has changed in a tree that has learned."""
        model, objects = copy.model, self.nodes.objects
        copy.weight = model._train_weight_seen_by_model
        growth = GROWTH[type(model)](model)
        is_known = copy.root >= 0 and objects[copy.root] is model._root
        if not is_known or (growth != copy.growth and isinstance(model, _ADAPTIVE)):
            copy.growth = growth
            self._rebuild(copy)
            return
        # a new category adds a branch without a change of the counters
        changed = copy.children if growth != copy.growth else copy.multiway
        copy.growth = growth
        for number in list(changed):
            if number in copy.children:  # not released meanwhile
                self._compare_children(copy, number)

    def _compare_children(self, copy: TreeCopy, number: int) -> None:
        known, objects = copy.children[number], self.nodes.objects
        children = objects[number].children
        for child, node in zip(children, known, strict=False):
            if objects[node] is not child:
                copy.reached = None
                self._release(copy, node, is_kept=True)
                self._add(copy, child, node)
        if len(children) > len(known):
            copy.reached = None
            known += [self._add(copy, child) for child in children[len(known) :]]
            self._extend(number, known)

    def _rebuild(self, copy: TreeCopy) -> None:
        """Copy a whole tree again."""
        self._release(copy, copy.root)
        copy.root, copy.reached = -1, None
        if copy.model._root is not None:
            copy.root = self._add(copy, copy.model._root)

    def _release(self, copy: TreeCopy, root: int, *, is_kept: bool = False) -> None:
        """Release the nodes below a root, and the root itself unless its number is kept."""
        waiting = [] if root < 0 else [root]
        while waiting:
            number = waiting.pop()
            waiting += copy.children.pop(number, ())
            copy.leaves.discard(number)
            if self.nodes.kind[number] == NOMINAL:
                self._edges.release(number)
            if not is_kept or number != root:
                self.nodes.release(number)
        copy.multiway = [number for number in copy.multiway if number in copy.children]

    def _add(self, copy: TreeCopy, root: Any, number: int | None = None) -> int:
        """Copy a node and all below it; return its number."""
        nodes = self.nodes
        top = nodes.take() if number is None else number
        waiting = [(root, top)]
        while waiting:
            node, number = waiting.pop()
            nodes.objects[number], nodes.owners[number] = node, copy
            kind = _kind(node)
            if kind != LEAF and getattr(node, "_alternate_tree", None):
                kind = OTHER
            nodes.kind[number] = kind
            if kind == LEAF:
                copy.leaves.add(number)
            if kind in {LEAF, OTHER}:
                continue
            children = copy.children[number] = [nodes.take() for _ in node.children]
            waiting += zip(node.children, children, strict=True)
            nodes.feature[number] = self.number(node.feature)
            if kind == NUMERIC:
                nodes.threshold[number] = node.threshold
                nodes.below[number, :2] = children
                continue
            if isinstance(node, NominalMultiwayBranch):
                copy.multiway.append(number)
            self._extend(number, children)
        return top

    def _extend(self, number: int, children: Sequence[int]) -> None:
        """Write the edges of a nominal branch, old and new ones."""
        node, below = self.nodes.objects[number], self.nodes.below
        is_binary = isinstance(node, NominalBinaryBranch)
        ways = {node.value: 0} if is_binary else node._mapping
        begin, end = self._edges.extend(number, node.feature, ways)
        if len(self._edges) > len(self._ways):
            self._ways = np.pad(self._ways, (0, len(self._edges) - len(self._ways)))
        self._ways[begin:end] = [children[way] for way in ways.values()]
        below[number] = begin, end, children[1] if is_binary else -1


def _kind(node: Any) -> int:
    cls = type(node)
    kind = _kinds.get(cls)
    if kind is None:
        kind = LEAF
        if isinstance(node, Branch):
            # a custom subclass may choose another way
            way = getattr(cls, "branch_no", None)
            kind = _WAYS.get(way, OTHER)
        _kinds[cls] = kind
    return kind


_WAYS: dict[Any, int] = {
    NumericBinaryBranch.branch_no: NUMERIC,
    NominalBinaryBranch.branch_no: NOMINAL,
    NominalMultiwayBranch.branch_no: NOMINAL,
}

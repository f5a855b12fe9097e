"""The branches of a forest as flat arrays that follow the growing trees.

A tree is copied again when its branches have changed, according to River's counters. Nodes that
cannot be copied (alternate trees, custom branches) are marked: for rows that reach them, the tree
itself is evaluated.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from river import tree
from river.forest.adaptive_random_forest import BaseTreeClassifier, BaseTreeRegressor
from river.tree.base import Branch
from river.tree.nodes.branch import NominalBinaryBranch, NominalMultiwayBranch, NumericBinaryBranch

from fluxplain.evaluate.encoding import Encoding, Floats, Observed
from fluxplain.evaluate.evaluator import Value
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.tree_kernels import LEAF, NOMINAL, NUMERIC, OTHER

Integers = NDArray[np.int32]

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


class Names:
    """Numbers the features from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, feature: str) -> int:
        """Return the number of a feature, assigning one if necessary."""
        return self._numbers.setdefault(feature, len(self._numbers))

    def numbers(self, observed: Observed) -> Integers:
        """Return the number of each column."""
        return np.array([self.number(feature) for feature in observed.features], np.int32)

    def columns(self, observed: Observed) -> Integers:
        """Return the column of each feature; -1 if the observation lacks it."""
        numbers = self.numbers(observed)
        columns = np.full(len(self), -1, np.int32)
        columns[numbers] = np.arange(len(numbers))
        return columns


class Edge(NamedTuple):
    """A category and the node that it leads to."""

    feature: str
    value: Value
    node: int


class _Tree:
    """The nodes of one tree, numbered from 0; leaves have slots."""

    def __init__(self, model: Any, names: Names, slots: "Slots") -> None:
        self.model = model
        self.leaves: set[int] = set()  # their slots
        self._names, self._slots = names, slots
        self.copy()

    def is_current(self) -> bool:
        """Return whether the copy is up to date."""
        model = self.model
        return (
            model._root is self._root
            and GROWTH[type(model)](model) == self._growth
            and all(len(branch.children) == n for branch, n in self._multiway)
        )

    def copy(self) -> None:
        """Copy all nodes; existing leaves keep their slots."""
        model = self.model
        before = {id(self._slots.leaves[slot][0]): slot for slot in self.leaves}
        kept, self.leaves = self.leaves, set()
        self._root, self._growth = model._root, GROWTH[type(model)](model)
        self._multiway: list[tuple[Any, int]] = []
        self.branches: dict[int, Any] = {}
        self.children: dict[int, int] = {}  # the number of the first node below
        self.edges: list[Edge] = []
        self._nodes: list[tuple[int, int, float, int, int, int]] = []
        if self._root is not None:
            self._add(self._root, before)
        for slot in kept - self.leaves:
            self._slots.free(slot)
        columns = zip(*self._nodes, strict=True) if self._nodes else [()] * 6
        kind, feature, threshold, first, second, otherwise = columns
        self.kind = np.array(kind, np.int8)
        self.feature = np.array(feature, np.int32)
        self.threshold = np.array(threshold, np.float64)
        self.below = np.array([first, second, otherwise], np.int32).reshape(3, -1)
        self.ways = np.array([edge.node for edge in self.edges], np.int32)
        self._codes: Floats | None = None
        self._mark: object = None
        self._lacks_code = True

    def codes(self, encoding: Encoding) -> Floats:
        """Return the codes of the edges' categories; NaN for a category without one yet."""
        if self._codes is None or self._lacks_code or self._mark is not encoding.mark:
            codes = [encoding.code(feature, value) for feature, value, _ in self.edges]
            self._codes = np.array(codes, np.float64)
            self._mark = encoding.mark
            self._lacks_code = bool(np.isnan(self._codes).any())
        return self._codes

    def _add(self, root: Any, before: dict[int, int]) -> None:
        """Number the nodes below a root, each branch before its children."""
        waiting, numbered = deque([root]), 1
        while waiting:
            node = waiting.popleft()
            kind = _kind(node)
            if kind == LEAF:
                slot = before.get(id(node))
                slot = self._slots.take(node, self.model) if slot is None else slot
                self.leaves.add(slot)
                self._nodes.append((LEAF, -1, 0.0, slot, 0, -1))
                continue
            if kind == OTHER or getattr(node, "_alternate_tree", None):
                self._nodes.append((OTHER, -1, 0.0, 0, 0, -1))
                continue
            feature = self._names.number(node.feature)
            children = range(numbered, numbered + len(node.children))
            self.branches[len(self._nodes)], self.children[len(self._nodes)] = node, numbered
            numbered += len(children)
            waiting += node.children
            if kind == NUMERIC:
                self._nodes.append((NUMERIC, feature, node.threshold, *children, -1))
                continue
            begin = len(self.edges)
            if isinstance(node, NominalBinaryBranch):
                ways, otherwise = {node.value: 0}, children[1]
            else:
                ways, otherwise = node._mapping, -1
                self._multiway.append((node, len(children)))
            self.edges += [Edge(node.feature, v, children[way]) for v, way in ways.items()]
            self._nodes.append((NOMINAL, feature, 0.0, begin, len(self.edges), otherwise))


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


class Slots:
    """Numbers the leaves from 0 on, reusing freed numbers; knows each leaf and its tree."""

    def __init__(self) -> None:
        self.size = 0
        self.leaves: dict[int, tuple[Any, Any]] = {}
        self._free: list[int] = []

    def take(self, leaf: Any, tree: Any) -> int:
        """Give a leaf an unused number."""
        slot = self._free.pop() if self._free else self.size
        self.size = max(self.size, slot + 1)
        self.leaves[slot] = leaf, tree
        return slot

    def free(self, slot: int) -> None:
        """Release a number."""
        del self.leaves[slot]
        self._free.append(slot)


class Branches:
    """The branches of several trees, one after the other; features and leaves are numbered."""

    def __init__(self) -> None:
        self.names = Names()
        self.slots = Slots()
        self._trees: list[_Tree] = []
        self._join()

    def follow(self, trees: Sequence[Any]) -> None:
        """Copy the trees whose branches have changed."""
        known = {id(each.model): each for each in self._trees}
        changed = len(trees) != len(self._trees)
        copies: list[_Tree] = []
        for i, model in enumerate(trees):
            copy = known.pop(id(model), None)
            if copy is None:
                copy = _Tree(model, self.names, self.slots)
                changed = True
            elif not copy.is_current():
                copy.copy()
                changed = True
            changed = changed or self._trees[i] is not copy
            copies.append(copy)
        if changed:
            for gone in known.values():
                for slot in gone.leaves:
                    self.slots.free(slot)
            self._trees = copies
            self._join()

    def leaf(self, slot: int) -> tuple[Any, Any]:
        """Return a leaf, and its tree."""
        return self.slots.leaves[slot]

    def reach(self, observed: Observed, x: Floats) -> Integers:
        """Return the slot of the leaf that each row reaches in each tree.

        Returns
        -------
        Shape (trees, rows); -1 where the tree must be asked.
        """
        none = np.zeros(0)
        codes = np.concatenate([none, *(each.codes(observed.encoding) for each in self._trees)])
        reached = np.empty((len(self._roots), len(x)), np.int32)
        common = np.full(len(self._kind), -1, np.int32)
        lost = np.zeros(len(self._kind), np.bool_)
        columns, texts = self.names.columns(observed), is_text(observed)
        while True:
            tree_kernels.reach(
                x,
                columns,
                texts,
                self._roots,
                self._kind,
                self._feature,
                self._threshold,
                self._below,
                codes,
                self._ways,
                common,
                lost,
                reached,
            )
            new = np.flatnonzero(lost & (common < 0))
            if not len(new):
                return reached
            # only for these nodes: weighing a subtree takes long
            for node in new.tolist():
                common[node] = self._common(node)

    def _common(self, node: int) -> int:
        """Return the child that most observations went to."""
        t = int(np.searchsorted(self._starts, node, side="right")) - 1
        start, tree = int(self._starts[t]), self._trees[t]
        place, _ = tree.branches[node - start].most_common_path()
        return start + tree.children[node - start] + int(place)

    def _join(self) -> None:
        """Concatenate the trees' arrays."""
        trees = self._trees
        sizes = [len(each.kind) for each in trees]
        starts = self._starts = np.cumsum([0, *sizes], dtype=np.int32)
        none = np.zeros(0, np.int32)
        self._roots = np.where(np.array(sizes, np.int32) > 0, starts[:-1], -1).astype(np.int32)
        self._kind = np.concatenate([none.astype(np.int8), *(each.kind for each in trees)])
        self._feature = np.concatenate([none, *(each.feature for each in trees)])
        self._threshold = np.concatenate([none.astype(float), *(each.threshold for each in trees)])
        self._below = np.concatenate([none.reshape(3, 0), *(each.below for each in trees)], axis=1)
        shift = np.repeat(starts[:-1], sizes)
        edges = np.repeat(
            np.cumsum([0, *(len(each.edges) for each in trees)])[:-1].astype(np.int32), sizes
        )
        numeric, nominal = self._kind == NUMERIC, self._kind == NOMINAL
        self._below[:2] += shift * numeric + edges * nominal
        self._below[2] += shift * (self._below[2] >= 0)
        ways = [each.ways + start for each, start in zip(trees, starts.tolist(), strict=False)]
        self._ways = np.concatenate([none, *ways], dtype=np.int32)


def is_text(observed: Observed) -> NDArray[np.bool_]:
    """Return for each column whether its numbers are codes."""
    return np.array([observed.encoding.is_categorical(f) for f in observed.features], np.bool_)

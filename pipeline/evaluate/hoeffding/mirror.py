"""The branches of a forest as flat arrays, that follow the trees as they learn.

Only trees whose structure tells when it changed are mirrored: the leaves of River's plain Hoeffding
tree are counted, and a split makes them more.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from river.forest.adaptive_random_forest import BaseTreeClassifier
from river.tree import HoeffdingTreeClassifier
from river.tree.splitter import GaussianSplitter

from pipeline.evaluate.hoeffding import kernels
from pipeline.evaluate.hoeffding.bayes import BayesLeaves, BayesPlace
from pipeline.evaluate.hoeffding.routing import NUMERIC, node_kind
from pipeline.evaluate.inputs import Floats, Inputs, Rows

MIRRORED = (HoeffdingTreeClassifier, BaseTreeClassifier)


Voter = tuple[Any, float]
"""A tree, and what its vote counts."""


class UnmirroredError(Exception):
    """A tree or a leaf is of a kind that has no place in the arrays."""


class _Tree:
    """The nodes of one tree, numbered from 0."""

    def __init__(self, tree: Any, leaves: BayesLeaves) -> None:
        self.tree = tree
        self.root = tree._root
        self.version = _version(tree)
        self.leaves: dict[int, tuple[BayesPlace, Any, Any]] = {}  # index → place, leaf, tree
        self._table = leaves
        self._ends: list[_End] = []
        self._feature = [-1]
        self._threshold = [0.0]
        self._children = [(0, 0)]
        self._add(_End(None, 0, 0, self.root))
        self._make_arrays()

    def follow(self) -> None:
        """Take over what has grown in place of leaves."""
        ends, self._ends = self._ends, []
        for end in ends:
            node = end.node()
            if node is end.leaf:
                self._ends.append(end)
            else:
                del self.leaves[self._children[end.number][0]]
                self._add(_End(end.branch, end.side, end.number, node))
        self.version = _version(self.tree)
        self._make_arrays()

    def _add(self, end: "_End") -> None:
        """Number a node, and what is below it."""
        node, number = end.leaf, end.number
        kind = node_kind(node)
        if not kind:
            place = self._table.reserved(node)
            self.leaves[place.index] = (place, node, self.tree)
            self._feature[number] = -1
            self._children[number] = (place.index, place.index)
            self._ends.append(end)
            return
        if kind != NUMERIC:
            raise UnmirroredError("a branch tests no number")
        columns, below = self._table.columns, len(self._feature)
        self._feature[number] = columns.setdefault(node.feature, len(columns) + 1)
        self._threshold[number] = node.threshold
        self._children[number] = (below, below + 1)
        self._feature += [-1, -1]
        self._threshold += [0.0, 0.0]
        self._children += [(0, 0), (0, 0)]
        for side, child in enumerate(node.children):
            self._add(_End(node, side, below + side, child))

    def _make_arrays(self) -> None:
        self.feature = np.array(self._feature, dtype=np.int32)
        self.threshold = np.array(self._threshold)
        self.children = np.array(self._children, dtype=np.int32)


class _End(NamedTuple):
    """Where a leaf hangs: below which branch, on which side; and the number of its node."""

    branch: Any
    side: int
    number: int
    leaf: Any

    def node(self) -> Any:
        return self.leaf if self.branch is None else self.branch.children[self.side]


def _fits(tree: Any) -> bool:
    return (
        type(tree) in MIRRORED
        and type(tree.splitter) is GaussianSplitter
        and not tree.nominal_attributes
        and tree._root is not None
    )


def _version(tree: Any) -> tuple[int, int]:
    return tree._n_active_leaves, tree._n_inactive_leaves


class Mirror:
    """A forest as arrays.

    Parameters
    ----------
    leaves
        What the leaves have learned.
    """

    def __init__(self, leaves: BayesLeaves) -> None:
        self._leaves = leaves
        self._trees: list[_Tree] = []
        self._reached: dict[int, tuple[BayesPlace, Any, Any]] = {}
        self._roots = self._feature = np.zeros(0, dtype=np.int32)
        self._threshold = np.zeros(0)
        self._children = np.zeros((0, 2), dtype=np.int32)

    def votes(self, voting: Sequence[Voter], inputs: Inputs | Rows) -> tuple[Floats, list[int]]:
        """Return the weighted sums of the trees' answers.

        Which way a row is answered depends on the row, the observation and the model alone, so
        that its bits do not depend on what else is asked.

        Returns
        -------
        votes
            Shape (inputs + 1, labels): the last row is that of the observation itself, and labels
            have the columns of the leaves'.
        unknown
            The rows that are not answered.

        Raises
        ------
        UnmirroredError
            If the trees must be asked in another way.
        NoNumberError
            If a value should be a number and is none.
        """
        leaves = self._leaves
        trees, weights = zip(*voting, strict=True)
        if not all(isinstance(value, float | int) for value in inputs.x.values()):
            raise UnmirroredError("a feature is no number")
        leaves.begin(inputs.x)
        try:
            self._follow(trees)
        except UnmirroredError:
            self._trees = []  # some may have been followed half-way
            raise
        x = inputs.matrix(leaves.columns)
        reached = np.empty((len(trees), len(x)), dtype=np.int32)
        seen = np.zeros(leaves.size, dtype=np.bool_)
        unknown = np.zeros(len(x), dtype=np.bool_)
        branches = self._roots, self._feature, self._threshold, self._children
        kernels.reach(x, *branches, reached, seen, unknown)
        columns = len(leaves.columns)
        for index in np.flatnonzero(seen).tolist():
            place, leaf, tree = self._reached[index]
            leaves.refresh(place, leaf, tree)
            if place.asked or place.nominal:
                unknown[(reached == index).any(axis=0)] = True
        if len(leaves.columns) > columns:
            # a leaf uses a feature that no branch tested
            x = inputs.matrix(leaves.columns)
        votes = np.zeros((len(x), len(leaves.labels)))
        kernels.vote(x, reached, np.array(weights), *leaves.arrays(), 2.0, votes, unknown)
        if unknown[-1]:
            raise UnmirroredError("the observation itself lacks a feature")
        return votes, np.flatnonzero(unknown).tolist()

    def _follow(self, trees: Sequence[Any]) -> None:
        """Number the nodes anew where a tree has changed."""
        known = {id(mirrored.tree): mirrored for mirrored in self._trees}
        changed = len(trees) != len(self._trees)
        mirrors: list[_Tree] = []
        for i, tree in enumerate(trees):
            mirrored = known.get(id(tree))
            if mirrored is None or mirrored.root is not tree._root:
                if not _fits(tree):
                    raise UnmirroredError(f"{type(tree).__name__} is not mirrored")
                mirrored = _Tree(tree, self._leaves)
                changed = True
            elif mirrored.version != _version(tree):
                mirrored.follow()
                changed = True
            changed = changed or self._trees[i] is not mirrored
            mirrors.append(mirrored)
        if changed:
            self._trees = mirrors
            self._join()

    def _join(self) -> None:
        """Put the trees' arrays behind one another."""
        trees = self._trees
        sizes = [len(tree.feature) for tree in trees]
        self._roots = np.cumsum([0, *sizes[:-1]], dtype=np.int32)
        self._feature = np.concatenate([tree.feature for tree in trees])
        self._threshold = np.concatenate([tree.threshold for tree in trees])
        children = np.concatenate([tree.children for tree in trees])
        self._children = children + (np.repeat(self._roots, sizes) * (self._feature >= 0))[:, None]
        self._reached = {}
        for tree in trees:
            self._reached.update(tree.leaves)

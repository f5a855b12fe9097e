"""The statistics of a forest's leaves, in flat arrays by node."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.evaluator import Label
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.tree_kernels import Flags, Integers

ROUNDING = 8 * np.finfo(np.float64).eps
"""Tolerance, as a share of a tree's weight, within which only the reached leaf has learned."""


class Leaves(ABC):
    """The leaves of several trees; a leaf's statistics are copied when it is reached.

    ``labels`` maps a class, or None for a regressor's number, to the column of the predictions.
    """

    def __init__(self, branches: Branches) -> None:
        self.labels: dict[Label | None, int] = {}
        self._branches = branches
        self._filled: dict[int, tuple[Any, Hashable]] = {}  # node → leaf, version
        self._unknown: set[int] = set()  # nodes whose kind of leaf cannot be copied
        self._is_current: Flags = np.zeros(0, np.bool_)  # of each node

    def answers(
        self, trees: Sequence[Any], observed: Observed, x: Floats
    ) -> tuple[Floats, Integers, bool]:
        """Return the predictions, the reached leaves, and whether all rows have a prediction.

        ``x`` has the shape (rows, features); its last row is the observation itself. The
        predictions have the shape (trees, rows, labels), the leaves the shape (trees, rows); -1
        where River must evaluate the tree.
        """
        self._branches.follow(trees)
        if len(self._is_current) < len(self._branches.nodes.kind):
            self.forget()
        self._expire()
        reached, stale = self._branches.reach(observed, x, self._is_current)
        self._note_reached(reached[:, -1].tolist())
        for node in stale:
            self._refresh(node)
        if self._unknown:
            reached[np.isin(reached, list(self._unknown))] = -1
        given, is_complete = self._given(observed, x, reached)
        return given, reached, is_complete

    def forget(self) -> None:
        """Copy the statistics of all leaves again when they are reached."""
        self._is_current = np.zeros(len(self._branches.nodes.kind), np.bool_)
        self._filled = {}

    def _expire(self) -> None:
        """Mark the leaves that may have learned.

        If a tree has learned as much as the leaf that the last observation reached, then only this
        leaf has.
        """
        for copy in self._branches.copies:
            # among inactive leaves, some may become active for others that no longer are
            if copy.reached is None or copy.model._n_inactive_leaves:
                self._is_current[list(copy.leaves)] = False
                continue
            leaf, leaf_weight, tree_weight = copy.reached
            if copy.weight == tree_weight:
                continue
            grown = self._weight(self._branches.nodes.objects[leaf]) - leaf_weight
            # the weights of a leaf that was split off are no integers, so their sum is rounded
            if abs(grown - (copy.weight - tree_weight)) <= ROUNDING * copy.weight:
                self._is_current[leaf] = False
            else:
                self._is_current[list(copy.leaves)] = False

    def _note_reached(self, leaves: Sequence[int]) -> None:
        """Note which leaf of each tree the observation itself has reached."""
        objects = self._branches.nodes.objects
        for copy, leaf in zip(self._branches.copies, leaves, strict=True):
            copy.reached = None
            if leaf >= 0:
                copy.reached = leaf, self._weight(objects[leaf]), copy.weight

    def _refresh(self, node: int) -> None:
        """Copy a leaf's statistics if it has learned."""
        leaf = self._branches.nodes.objects[node]
        version = self._version(leaf)
        before = self._filled.get(node)
        if before is None or before[0] is not leaf or before[1] != version:
            self._filled[node] = leaf, version
            owner = self._branches.nodes.owners[node].model
            self._unknown.discard(node)
            if not self._fill(node, leaf, owner):
                self._unknown.add(node)
        self._is_current[node] = True

    @abstractmethod
    def _weight(self, leaf: Any) -> float:
        """Return how much a leaf has learned."""

    @abstractmethod
    def _version(self, leaf: Any) -> Hashable:
        """Return a version that changes when the leaf learns."""

    @abstractmethod
    def _fill(self, node: int, leaf: Any, tree: Any) -> bool:
        """Copy a leaf's statistics; return False for a kind that cannot be copied."""

    @abstractmethod
    def _given(self, observed: Observed, x: Floats, reached: Integers) -> tuple[Floats, bool]:
        """Return the reached leaves' predictions, and whether there is one of each.

        Sets ``reached`` to -1 where there is none.
        """

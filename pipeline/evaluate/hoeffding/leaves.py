"""The statistics of a forest's leaves, in flat arrays by node."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.evaluator import Label
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.tree_kernels import Flags, Integers


class Leaves(ABC):
    """The leaves of several trees; a leaf's statistics are copied when it is reached.

    ``labels`` maps a class, or None for a regressor's number, to the column of the predictions.
    """

    def __init__(self, branches: Branches) -> None:
        self.labels: dict[Label | None, int] = {}
        self._branches = branches
        self._filled: dict[int, tuple[Any, Hashable]] = {}  # node → leaf, version
        # of each node
        self._is_current: Flags = np.zeros(0, np.bool_)
        self._is_unknown: Flags = np.zeros(0, np.bool_)

    def answers(
        self, trees: Sequence[Any], observed: Observed, x: Floats
    ) -> tuple[Floats, Integers]:
        """Return the predictions, shape (trees, rows, labels), and the reached leaves.

        ``x`` has the shape (rows, features); its last row is the observation itself. The leaves
        have the shape (trees, rows); -1 where River must evaluate the tree.
        """
        self._branches.follow(trees)
        if len(self._is_current) < len(self._branches.nodes.kind):
            self._is_unknown = np.zeros(len(self._branches.nodes.kind), np.bool_)
            self.forget()
        self._expire()
        reached, seen = self._branches.reach(observed, x)
        self._note_reached(reached[:, -1].tolist())
        for node in np.flatnonzero(seen & ~self._is_current).tolist():
            self._refresh(node)
        unknown = np.flatnonzero(seen & self._is_unknown)
        if len(unknown):
            reached[np.isin(reached, unknown)] = -1
        return self._given(observed, x, reached), reached

    def forget(self) -> None:
        """Copy the statistics of all leaves again when they are reached."""
        self._is_current = np.zeros(len(self._is_unknown), np.bool_)
        self._filled = {}

    def _expire(self) -> None:
        """Mark the leaves that may have learned.

        If a tree has learned as much as the leaf that the last observation reached, then only this
        leaf has.
        """
        for copy in self._branches.copies:
            if copy.reached is None:
                self._is_current[list(copy.leaves)] = False
                continue
            leaf, leaf_weight, tree_weight = copy.reached
            if copy.weight == tree_weight:
                continue
            grown = self._weight(self._branches.nodes.objects[leaf]) - leaf_weight
            if grown == copy.weight - tree_weight:
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
            self._is_unknown[node] = not self._fill(node, leaf, owner)
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
    def _given(self, observed: Observed, x: Floats, reached: Integers) -> Floats:
        """Return the reached leaves' predictions; set ``reached`` to -1 where there is none."""

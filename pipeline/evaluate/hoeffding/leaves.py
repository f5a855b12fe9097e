"""The statistics of a forest's leaves, in slots of flat arrays."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.evaluator import Label
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.tree_kernels import Integers


class Leaves(ABC):
    """The leaves of several trees; a leaf's statistics are copied when it is reached.

    ``labels`` maps a class, or None for a regressor's number, to the column of the predictions.
    """

    def __init__(self, branches: Branches) -> None:
        self.labels: dict[Label | None, int] = {}
        self._branches = branches
        self._filled: dict[int, tuple[Any, Hashable, bool]] = {}  # slot → leaf, version, is known

    def answers(
        self, trees: Sequence[Any], observed: Observed, x: Floats
    ) -> tuple[Floats, Integers]:
        """Return the predictions, shape (trees, rows, labels), and the reached slots.

        ``x`` has the shape (rows, features); its last row is the observation itself. The slots have
        the shape (trees, rows); -1 where River must evaluate the tree.
        """
        self._branches.follow(trees)
        reached = self._branches.reach(observed, x)
        unknown = []
        for slot in set(reached.ravel().tolist()) - {-1}:
            leaf, tree = self._branches.leaf(slot)
            version = self._version(leaf)
            filled = self._filled.get(slot)
            if filled is None or filled[0] is not leaf or filled[1] != version:
                filled = self._filled[slot] = leaf, version, self._fill(slot, leaf, tree)
            if not filled[2]:
                unknown.append(slot)
        if unknown:
            reached[np.isin(reached, unknown)] = -1
        return self._given(observed, x, reached), reached

    @abstractmethod
    def _version(self, leaf: Any) -> Hashable:
        """Return a version that changes when the leaf learns."""

    @abstractmethod
    def _fill(self, slot: int, leaf: Any, tree: Any) -> bool:
        """Copy a leaf's statistics; return False for a kind that cannot be copied."""

    @abstractmethod
    def _given(self, observed: Observed, x: Floats, reached: Integers) -> Floats:
        """Return the reached leaves' predictions; set ``reached`` to -1 where there is none."""

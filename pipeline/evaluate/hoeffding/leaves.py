"""What the leaves of a forest have learned, in slots of flat arrays."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from fluxplain.evaluate.base import Label
from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.kernels import Integers


class Leaves(ABC):
    """The leaves of several trees; what one has learned is copied when it is reached.

    Parameters
    ----------
    branches
        What gives the leaves their slots.

    Attributes
    ----------
    labels
        What is answered → column of the answers: a class, or None for the number of a regressor.
    """

    def __init__(self, branches: Branches) -> None:
        self.labels: dict[Label | None, int] = {}
        self._branches = branches
        self._filled: dict[int, tuple[Any, Hashable, bool]] = {}  # slot → leaf, version, is known

    def answers(
        self, trees: Sequence[Any], observed: Observed, x: Floats
    ) -> tuple[Floats, Integers]:
        """Return what each tree answers on each row.

        Parameters
        ----------
        trees
            The trees.
        observed
            The observation.
        x
            Inputs, shape (rows, features); the last row is the observation itself.

        Returns
        -------
        given
            Shape (trees, rows, labels).
        reached
            Shape (trees, rows); -1 where the tree must be asked.
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
        """Return what differs as soon as the leaf has learned."""

    @abstractmethod
    def _fill(self, slot: int, leaf: Any, tree: Any) -> bool:
        """Copy what a leaf has learned; return whether it is of a kind that can be copied."""

    @abstractmethod
    def _given(self, observed: Observed, x: Floats, reached: Integers) -> Floats:
        """Return what the reached leaves answer; set -1 where one has no answer here."""

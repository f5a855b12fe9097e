"""The nodes of trees in flat arrays, which grow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.hoeffding.tree_kernels import Integers


class Nodes:
    """Nodes in flat arrays; see :func:`~fluxplain.evaluate.hoeffding.tree_kernels.reach`.

    ``objects`` and ``owners`` are each node of River, and the copy of its tree.
    """

    def __init__(self) -> None:
        self.kind: NDArray[np.int8] = np.zeros(0, np.int8)
        self.feature: Integers = np.zeros(0, np.int32)
        self.threshold: Floats = np.zeros(0)
        self.below: Integers = np.zeros((0, 3), np.int32)
        self.objects: list[Any] = []
        self.owners: list[Any] = []
        self._free: list[int] = []

    def take(self) -> int:
        """Return an unused number."""
        if not self._free:
            size = len(self.kind)
            more = (0, max(size, 64))
            self.kind, self.feature = np.pad(self.kind, more), np.pad(self.feature, more)
            self.threshold = np.pad(self.threshold, more)
            self.below = np.pad(self.below, (more, (0, 0)))
            self.objects += [None] * more[1]
            self.owners += [None] * more[1]
            self._free = list(range(len(self.kind) - 1, size - 1, -1))
        return self._free.pop()

    def release(self, number: int) -> None:
        """Make a number unused."""
        self.objects[number] = self.owners[number] = None
        self._free.append(number)

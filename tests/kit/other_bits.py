"""A model whose numbers depend on the installation, as those of a library may."""

import os
from typing import Any

from river.tree import HoeffdingTreeClassifier

VARIABLE = "TEST_WEIGHT"
"""The variable with the weight of each observation: 1 by default."""


class Tree(HoeffdingTreeClassifier):
    """A tree that learns with the weight of the variable."""

    def learn_one(self, x: dict[str, Any], y: Any, *, w: float = 1.0) -> None:
        super().learn_one(x, y, w=w * float(os.environ.get(VARIABLE, "1")))

"""Turns the arrays of a regression tree into River's objects."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from river.stats import Mean, Var
from river.tree.splitter import EBSTSplitter
from river.tree.splitter.ebst_splitter import EBSTNode
from river.tree.splitter.nominal_splitter_reg import NominalSplitterReg
from river.utils import VectorDict

from fluxplain.forest.to_objects import TreeWriter


class RegressionWriter(TreeWriter):
    """Builds River's objects from the arrays of a regression tree."""

    def _write_classes(self, tree: int) -> None:
        """Write no classes: there are none."""

    def _stats(self, node: int) -> Var:
        nodes = self._state.nodes
        found = var_of([nodes.weight[node, 0], *nodes.moments[node]])
        # below a branch, River has copies, which take more bytes
        return deepcopy(found) if nodes.depth[node] else found

    def _leaf(self, node: int) -> Any:
        leaf = super()._leaf(node)
        place, models = int(self._state.nodes.leaf[node]), self._state.models
        if hasattr(leaf, "_leaf_model"):
            known = models.known[place].nonzero()[0].tolist()
            weights = {self._features[f]: float(models.weight[place, f]) for f in known}
            leaf._leaf_model._weights = VectorDict(weights)
            leaf._leaf_model.intercept = float(models.intercept[place])
            leaf._leaf_model.optimizer.n_iterations = int(models.steps[place])
        if hasattr(leaf, "_fmse_mean"):
            leaf._fmse_mean, leaf._fmse_model = models.errors[place].tolist()
        return leaf

    def _observer(self, leaf: int, place: int, feature: int) -> Any:
        point = int(self._state.observers.point[leaf, place])
        if self._state.settings.nominal[feature]:
            found = NominalSplitterReg()
            while point >= 0:
                value = self._value(feature, int(self._state.points.value[point]))
                found._statistics[value] = var_of(self._state.points.moments[point])
                point = int(self._state.points.right[point])
            return found
        numbers: EBSTSplitter = self._river.splitter.clone()
        numbers._root = self._tree(point)
        return numbers

    def _tree(self, first: int) -> EBSTNode | None:
        """Return a search tree, which can be too deep for recursion."""
        if first < 0:
            return None
        points, root = self._state.points, self._point(first)
        due = [(first, root)]
        while due:
            point, river = due.pop()
            for name in ("left", "right"):
                below = int(getattr(points, name)[point])
                if below >= 0:
                    child = self._point(below)
                    setattr(river, f"_{name}", child)
                    due.append((below, child))
        return root

    def _point(self, point: int) -> EBSTNode:
        found = EBSTNode(float(self._state.points.value[point]), 0.0, 1.0)
        found.estimator = var_of(self._state.points.moments[point])
        return found


def var_of(moments: Sequence[float]) -> Var:
    """Return River's statistics of weight, mean and sum of squares."""
    found = Var()
    n, mean, found._S = map(float, moments)
    found.mean = Mean._from_state(n, mean)
    return found

"""Reads River's objects of a regression tree into arrays."""

from typing import Any

from river.stats import Var
from river.tree.nodes.htr_nodes import LeafModel
from river.tree.splitter import EBSTSplitter
from river.tree.splitter.nominal_splitter_reg import NominalSplitterReg

from fluxplain.forest.from_objects import TreeReader, check_weight
from fluxplain.forest.names import UnsupportedError
from fluxplain.forest.places import POINTS


class RegressionReader(TreeReader):
    """Writes a regression tree into a model's arrays. Names must have been learned before."""

    def _classes(self, tree: int, river: Any) -> None:
        """Learn no classes: there are none."""

    def _statistics(self, node: int, stats: Var) -> None:
        nodes = self._arrays.state.nodes
        nodes.order[node, 0], nodes.known[node, 0], nodes.n_classes[node] = 0, True, 1
        check_weight(stats.mean.n)
        nodes.weight[node, 0] = stats.mean.n
        nodes.moments[node] = stats.mean._mean, stats._S

    def _leaf(self, node: int, river: Any) -> None:
        super()._leaf(node, river)
        leaf, models = self._arrays.state.nodes.leaf[node], self._arrays.state.models
        models.weight[leaf], models.known[leaf], models.errors[leaf] = 0.0, False, 0.0
        if isinstance(river, LeafModel):
            model, features = river._leaf_model, self._arrays.names.features
            models.intercept[leaf] = model.intercept
            models.steps[leaf] = model.optimizer.n_iterations
            for name, weight in model.weights.items():
                models.weight[leaf, features[name]] = weight
                models.known[leaf, features[name]] = True
            models.errors[leaf] = (
                getattr(river, "_fmse_mean", 0.0),
                getattr(river, "_fmse_model", 0.0),
            )

    def _observer(self, leaf: int, feature: int, splitter: Any) -> None:
        self._check_kind(feature, is_nominal=not splitter.is_numeric)
        place = self._editor.add_observer(leaf, feature)
        if type(splitter) is NominalSplitterReg:
            first = self._list(feature, splitter._statistics)
        elif isinstance(splitter, EBSTSplitter):
            first = self._tree(splitter._root)
        else:
            raise UnsupportedError(f"a splitter is a {type(splitter).__name__}")
        self._arrays.state.observers.point[leaf, place] = first

    def _list(self, feature: int, statistics: dict[Any, Var]) -> int:
        """Return the first point of a list of categories."""
        first = -1
        for value, stats in reversed(statistics.items()):
            point = self._point(self._code(feature, value), stats)
            self._arrays.state.points.right[point] = first
            first = point
        return first

    def _tree(self, root: Any) -> int:
        """Return the root of a search tree, which can be too deep for recursion."""
        if root is None:
            return -1
        first = self._point(root.att_val, root.estimator)
        due = [(root, first)]
        while due:
            river, point = due.pop()
            for name, child in (("left", river._left), ("right", river._right)):
                if child is not None:
                    below = self._point(child.att_val, child.estimator)
                    getattr(self._arrays.state.points, name)[point] = below
                    due.append((child, below))
        return first

    def _point(self, value: float, stats: Var) -> int:
        point = self._editor.take(POINTS)
        points = self._arrays.state.points
        points.value[point], points.left[point], points.right[point] = value, -1, -1
        points.moments[point] = stats.mean.n, stats.mean._mean, stats._S
        return point

"""Predictions of regression trees' leaves, for a whole forest at once.

A leaf predicts the mean of its targets, or by its own linear model.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np
from river import linear_model
from river.tree.nodes.htr_nodes import LeafAdaptive, LeafMean, LeafModel

from fluxplain.evaluate.encoding import Floats, Observed
from fluxplain.evaluate.hoeffding import tree_kernels
from fluxplain.evaluate.hoeffding.branches import Branches
from fluxplain.evaluate.hoeffding.leaves import Leaves
from fluxplain.evaluate.hoeffding.tree_kernels import Flags, Integers
from fluxplain.evaluate.linear import is_linear


class RegressionLeaves(Leaves):
    """The leaves of regression trees."""

    def __init__(self, branches: Branches) -> None:
        super().__init__(branches)
        self.labels = {None: 0}
        self._fixed: Flags = np.zeros(0, np.bool_)
        self._means: Floats = np.zeros(0)
        self._weights: Floats = np.zeros((0, 0))
        self._intercepts: Floats = np.zeros(0)

    def _weight(self, leaf: Any) -> float:
        weight: float = leaf.stats.mean.n
        return weight

    def _version(self, leaf: Any) -> Hashable:
        return self._weight(leaf)

    def _fill(self, node: int, leaf: Any, tree: Any) -> bool:  # noqa: ARG002
        prediction = type(leaf).prediction
        if prediction is LeafAdaptive.prediction:
            better = leaf._fmse_mean < leaf._fmse_model
            prediction = (LeafMean if better else LeafModel).prediction
        is_mean = prediction is LeafMean.prediction
        is_model = prediction is LeafModel.prediction and _is_linear(leaf._leaf_model)
        numbers = {}
        if is_model:
            weights = leaf._leaf_model.weights
            numbers = {self._branches.number(f): w for f, w in weights.items()}
        self._reserve()
        self._fixed[node] = is_mean
        if is_mean:
            self._means[node] = leaf.stats.mean.get()
        elif is_model:
            self._weights[node] = 0.0
            self._weights[node, list(numbers)] = list(numbers.values())
            self._intercepts[node] = leaf._leaf_model.intercept
        return is_mean or is_model

    def _reserve(self) -> None:
        """Make room for all nodes and features."""
        nodes, features = len(self._branches.nodes.kind), self._branches.n_features
        old = self._weights.shape
        if nodes <= old[0] and features <= old[1]:
            return
        more = (0, max(nodes - old[0], 0))
        self._fixed = np.pad(self._fixed, more)
        self._means, self._intercepts = np.pad(self._means, more), np.pad(self._intercepts, more)
        self._weights = np.pad(self._weights, (more, (0, max(features - old[1], 0))))

    def _given(self, observed: Observed, x: Floats, reached: Integers) -> tuple[Floats, bool]:
        features = self._branches.numbers(observed)
        given = np.zeros(reached.shape)
        self._reserve()
        any_text = bool(self._branches.columns(observed)[1].any())
        linear = self._fixed, self._means, self._weights, self._intercepts
        is_complete = tree_kernels.regress(x, features, any_text, reached, *linear, given)
        return given[:, :, None], is_complete


def _is_linear(model: Any) -> bool:
    return isinstance(model, linear_model.LinearRegression) and is_linear(model)

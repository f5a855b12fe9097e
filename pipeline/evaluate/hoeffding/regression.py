"""What the leaves of regression trees answer, of a whole forest at once.

A leaf answers the mean of its targets, or asks a linear model of its own.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from river import linear_model
from river.tree.nodes.htr_nodes import LeafAdaptive, LeafMean, LeafModel

from pipeline.evaluate.base import Observation
from pipeline.evaluate.hoeffding.leaves import Leaves, Place
from pipeline.evaluate.inputs import Floats, Inputs
from pipeline.evaluate.linear import is_linear


class RegressionLeaves(Leaves[Place]):
    """The leaves of a forest's regression trees, as arrays."""

    def __init__(self) -> None:
        super().__init__(Place)
        self.labels = {None: 0}
        self._columns: dict[str, int] = {}
        self._features: list[str] = []
        self._weights: Floats = np.zeros((1, 0))  # (features + 1, leaves), the first row is unused
        self._intercepts: Floats = np.zeros(0)

    def begin(self, x: Observation) -> None:
        """Take the next observation; see :class:`Leaves`."""
        super().begin(x)
        for feature in x:
            if feature not in self._columns:
                self._features.append(feature)
                self._columns[feature] = len(self._features)

    def ask(self, inputs: Inputs, rows: Sequence[int], places: Sequence[Place]) -> Floats:
        """Return the outputs of linear models; see :class:`Leaves`."""
        order = [self._columns[feature] for feature in dict.fromkeys((*inputs.x, *self._columns))]
        at = np.array([place.index for place in places])
        matrix = inputs.matrix(self._columns).T[order]
        terms = matrix[:, rows] * self._weights[order][:, at]
        # one after the other in the order of the input, as River does; what is missing has none
        sums = np.where(np.isnan(terms), 0.0, terms).cumsum(axis=0)[-1]
        return (sums + self._intercepts[at])[:, None]  # type: ignore[no-any-return]

    def ask_itself(self, tree: Any, leaf: Any, x: Observation) -> Mapping[Any, float]:
        """Return River's answer; see :class:`Leaves`."""
        return {None: tree.predict_one(x) if leaf is None else leaf.prediction(x, tree=tree)}

    def _version(self, leaf: Any) -> Hashable:
        return (leaf.stats.mean.n, len(self._features))

    def _fill(self, place: Place, leaf: Any, tree: Any) -> None:  # noqa: ARG002
        prediction = type(leaf).prediction
        if prediction is LeafAdaptive.prediction:
            better = leaf._fmse_mean < leaf._fmse_model
            prediction = (LeafMean if better else LeafModel).prediction
        if prediction is LeafMean.prediction:
            place.answer = [leaf.stats.mean.get()]
        elif prediction is LeafModel.prediction and _is_linear(leaf._leaf_model):
            self._fill_linear(place, leaf._leaf_model)
        else:
            place.asked = True

    def _fill_linear(self, place: Place, model: Any) -> None:
        size = (len(self._features) + 1, self.size)
        if size[0] > self._weights.shape[0] or size[1] > self._weights.shape[1]:
            old, intercepts = self._weights, self._intercepts
            self._weights = np.zeros((size[0], 2 * size[1]))
            self._weights[: old.shape[0], : old.shape[1]] = old
            self._intercepts = np.zeros(2 * size[1])
            self._intercepts[: len(intercepts)] = intercepts
        weights = model.weights
        column = [0.0, *(weights.get(feature, 0.0) for feature in self._features)]
        self._weights[:, place.index] = column
        self._intercepts[place.index] = model.intercept
        place.uses = self._features


def _is_linear(model: Any) -> bool:
    return isinstance(model, linear_model.LinearRegression) and is_linear(model)

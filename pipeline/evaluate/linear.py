"""The evaluator for linear models."""

import math
from itertools import repeat
from typing import Any

import numpy as np
from river import base, linear_model, optim

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.compiled import Direct, compiled
from fluxplain.evaluate.encoding import Floats, Inputs, Places
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.linear_attribution import linear_attribution
from fluxplain.evaluate.sigmoid import sigmoid
from fluxplain.evaluate.table import Table


class LinearEvaluator(FastEvaluator):
    """Multiplies all inputs at once; :func:`is_linear` is true for the model."""

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        if observed.has_categories:
            return None
        return linear_table(self.model, rows, self._weights(observed.features))

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        (_, features, numbers, _), rows = inputs
        answers = self._table(inputs)
        if answers is None:
            return None
        weights, intercept = self._weights(features), float(self.model.intercept)
        return linear_attribution(answers, rows * weights, numbers * weights, intercept, players)

    def _weights(self, features: tuple[str, ...]) -> Floats:
        weights = map(self.model.weights.get, features, repeat(0.0))
        return np.fromiter(weights, np.float64, len(features))


def linear_table(model: Any, rows: Floats, weights: Floats) -> Table:
    """Return the outputs of a linear model with these weights."""
    is_class = isinstance(model, base.Classifier)
    outputs = np.empty((len(rows), 2 if is_class else 1))
    _PREDICT.call(rows, weights, float(model.intercept), is_class, outputs)
    return Table((False, True) if is_class else (None,), outputs)


def is_linear(model: Any) -> bool:
    """Return whether :class:`LinearEvaluator` supports a model."""
    if type(model) in {linear_model.PAClassifier, linear_model.PARegressor}:
        return True
    kind = _LOSSES.get(type(model))
    return kind is not None and type(model.loss).mean_func is kind.mean_func


_LOSSES: dict[type, type[optim.losses.RegressionLoss | optim.losses.BinaryLoss]] = {
    linear_model.LinearRegression: optim.losses.RegressionLoss,
    linear_model.LogisticRegression: optim.losses.BinaryLoss,
    linear_model.Perceptron: optim.losses.BinaryLoss,
}
"""Models, and the losses whose output is the sum itself, or its sigmoid."""


@compiled
def _predict(
    rows: Floats, weights: Floats, intercept: float, is_class: bool, outputs: Floats
) -> None:
    """Add up the weighted features of each row, in their order, as River does.

    Fills ``outputs``: the sums, shape (rows, 1), or if ``is_class`` the probabilities of False and
    True, shape (rows, 2); NaN where a sum is not finite.
    """
    outputs[:] = 0.0
    for column in range(rows.shape[1]):
        for row in range(rows.shape[0]):
            outputs[row, 0] += rows[row, column] * weights[column]
    for row in range(rows.shape[0]):
        total = outputs[row, 0] + intercept
        outputs[row, 0] = total
        if is_class:
            p = sigmoid(total) if math.isfinite(total) else math.nan
            outputs[row, 0], outputs[row, 1] = 1.0 - p, p


_PREDICT = Direct(_predict)

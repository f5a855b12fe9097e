"""The evaluator for linear models."""

import math
from itertools import repeat
from typing import Any

import numpy as np
from river import linear_model, optim

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.table import Table

LARGE = 30.0
"""Limit of the exponent beyond which River's sigmoid is 0 or 1."""


class LinearEvaluator(FastEvaluator):
    """Multiplies all inputs at once; :func:`is_linear` is true for the model."""

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        if observed.has_categories:
            return None
        weights = map(self.model.weights.get, observed.features, repeat(0.0))
        given = np.fromiter(weights, np.float64, len(observed.features))
        return linear_table(self.model, rows, given)


def linear_table(model: Any, rows: Floats, weights: Floats) -> Table:
    """Return the outputs of a linear model with these weights."""
    is_class = isinstance(model, linear_model.LogisticRegression)
    outputs = np.empty((len(rows), 2 if is_class else 1))
    _predict(rows, weights, float(model.intercept), is_class, outputs)
    return Table((False, True) if is_class else (None,), outputs)


def is_linear(model: Any) -> bool:
    """Return whether :class:`LinearEvaluator` supports a model."""
    if type(model) is linear_model.LinearRegression:
        return type(model.loss) is optim.losses.Squared
    return type(model) is linear_model.LogisticRegression and type(model.loss) is optim.losses.Log


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
            p = _sigmoid(total) if math.isfinite(total) else math.nan
            outputs[row, 0], outputs[row, 1] = 1.0 - p, p


@compiled
def _sigmoid(total: float) -> float:
    """Return the sigmoid as River computes it."""
    if total > LARGE:
        return 1.0
    return 0.0 if total < -LARGE else 1.0 / (1.0 + math.exp(-total))

"""The evaluator for linear models."""

import math
from itertools import repeat
from typing import Any

import numpy as np
from river import linear_model, optim

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.generic import GenericEvaluator
from fluxplain.evaluate.table import Table

LARGE = 30.0
"""Limit of the exponent beyond which River's sigmoid is 0 or 1."""


class LinearEvaluator:
    """Multiplies all inputs at once; :func:`is_linear` is true for ``model``."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._one_by_one = GenericEvaluator(model)

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        observed, rows = inputs
        if not observed.has_categories:
            weights = map(self.model.weights.get, observed.features, repeat(0.0))
            given = np.fromiter(weights, np.float64, len(observed.features))
            is_class = isinstance(self.model, linear_model.LogisticRegression)
            outputs = np.empty((len(rows), 2 if is_class else 1))
            if _predict(rows, given, float(self.model.intercept), is_class, outputs):
                return Table((False, True) if is_class else (None,), outputs)
        return self._one_by_one(inputs)  # River raises, or has its own answer


def is_linear(model: Any) -> bool:
    """Return whether :class:`LinearEvaluator` supports a model."""
    if type(model) is linear_model.LinearRegression:
        return type(model.loss) is optim.losses.Squared
    return type(model) is linear_model.LogisticRegression and type(model.loss) is optim.losses.Log


@compiled
def _predict(
    rows: Floats, weights: Floats, intercept: float, is_class: bool, outputs: Floats
) -> bool:
    """Add up the weighted features of each row, in their order, as River does.

    Fills ``outputs``: the sums, shape (rows, 1), or if ``is_class`` the probabilities of False and
    True, shape (rows, 2). Returns whether all numbers are finite.
    """
    outputs[:] = 0.0
    for column in range(rows.shape[1]):
        for row in range(rows.shape[0]):
            outputs[row, 0] += rows[row, column] * weights[column]
    for row in range(rows.shape[0]):
        total = outputs[row, 0] + intercept
        if not math.isfinite(total):
            return False
        outputs[row, 0] = total
        if is_class:
            outputs[row, 1] = p = _sigmoid(total)
            outputs[row, 0] = 1.0 - p
    return True


@compiled
def _sigmoid(total: float) -> float:
    """Return the sigmoid as River computes it."""
    if total > LARGE:
        return 1.0
    return 0.0 if total < -LARGE else 1.0 / (1.0 + math.exp(-total))

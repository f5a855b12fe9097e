"""The evaluator for softmax regression."""

import math
from itertools import repeat

import numpy as np
from river import linear_model

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Table


class SoftmaxEvaluator(FastEvaluator):
    """Multiplies all inputs with the weights of all classes at once."""

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports a model."""
        return type(model) is linear_model.SoftmaxRegression

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        weights = self.model.weights
        if observed.has_categories or not weights:
            return None
        given = np.array(
            [[*map(each.get, observed.features, repeat(0.0))] for each in weights.values()]
        )
        outputs = np.empty((len(rows), len(weights)))
        _predict(rows, given, outputs)
        return Table(tuple(map(plain_label, weights)), outputs)


@compiled
def _predict(rows: Floats, weights: Floats, outputs: Floats) -> None:
    """Fill in the probabilities, shape (rows, classes); ``weights`` is (classes, columns)."""
    for row in range(rows.shape[0]):
        largest, total = -math.inf, 0.0
        for k in range(weights.shape[0]):
            score = 0.0
            for column in range(rows.shape[1]):
                score += rows[row, column] * weights[k, column]
            outputs[row, k] = score
            largest = max(largest, score)
        for k in range(weights.shape[0]):
            outputs[row, k] = math.exp(outputs[row, k] - largest)
            total += outputs[row, k]
        for k in range(weights.shape[0]):
            outputs[row, k] /= total

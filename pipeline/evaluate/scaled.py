"""The evaluator for a model behind scalers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from river import preprocessing

from fluxplain.evaluate.encoding import Encoding, Inputs
from fluxplain.evaluate.evaluator import Evaluator, Observation
from fluxplain.evaluate.table import Table

FEATURE_WISE = (
    preprocessing.AdaptiveStandardScaler,
    preprocessing.Binarizer,
    preprocessing.MaxAbsScaler,
    preprocessing.MinMaxScaler,
    preprocessing.RobustScaler,
    preprocessing.StandardScaler,
)
"""Transformers that transform each feature independently of the others."""


class ScaledEvaluator:
    """Scales only the replaced values, and calls the evaluator of the model behind the scalers.

    ``model`` is the explained pipeline; each of its ``scalers`` is of a class in
    :data:`FEATURE_WISE`, and ``evaluator`` is that of the model behind them.
    """

    def __init__(self, model: Any, scalers: Sequence[Any], evaluator: Evaluator) -> None:
        self.model = model
        self.evaluator = evaluator
        self._scalers = list(scalers)

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        observed, rows = inputs
        scaled = Encoding().observe(self._scaled(observed.x))
        if scaled.features != observed.features:
            raise ValueError(f"a scaler gives {scaled.features} for {observed.features}")
        numbers = np.empty_like(rows)
        for column, feature in enumerate(observed.features):
            decode = observed.encoding.decoder(feature)
            values, where = np.unique(rows[:, column], return_inverse=True)
            replaced = [
                self._scaled({feature: decode(value)})[feature] for value in values.tolist()
            ]
            numbers[:, column] = np.array(replaced, np.float64)[where]
        return self.evaluator(Inputs(scaled, numbers))

    def _scaled(self, x: Observation) -> Observation:
        for scaler in self._scalers:
            x = scaler.transform_one(x)
        return x

"""The evaluator for a model behind scalers."""

from collections.abc import Mapping, Sequence
from typing import Any

from river import preprocessing

from pipeline.evaluate.base import Evaluator, Observation, Output, Value

FEATURE_WISE = (
    preprocessing.AdaptiveStandardScaler,
    preprocessing.Binarizer,
    preprocessing.MaxAbsScaler,
    preprocessing.MinMaxScaler,
    preprocessing.RobustScaler,
    preprocessing.StandardScaler,
)
"""Transformers in which each feature's result depends on this feature alone."""


class ScaledEvaluator:
    """Scales the replaced values only, and asks the evaluator of the model behind.

    Parameters
    ----------
    model
        What is explained: the pipeline.
    scalers
        Its transformers, each of a class in :data:`FEATURE_WISE`.
    evaluator
        Of the model behind them.
    """

    def __init__(self, model: Any, scalers: Sequence[Any], evaluator: Evaluator) -> None:
        self.model = model
        self.evaluator = evaluator
        self._scalers = list(scalers)

    def __call__(
        self, x: Observation, replacements: Sequence[Mapping[str, Value]]
    ) -> Sequence[Output]:
        """Return one output per replacement; see :class:`Evaluator`."""
        for scaler in self._scalers:
            x = scaler.transform_one(x)
            replacements = [scaler.transform_one(replacement) for replacement in replacements]
        return self.evaluator(x, replacements)

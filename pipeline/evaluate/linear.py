"""The evaluator for linear models, also behind standard scalers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from river import linear_model, optim, preprocessing

from pipeline.evaluate.base import Observation, Output, Value
from pipeline.evaluate.generic import GenericEvaluator
from pipeline.evaluate.inputs import Floats, Inputs, NoNumberError

LINEAR = (linear_model.LinearRegression, linear_model.LogisticRegression)

LARGE = 30.0
"""Beyond it, River's sigmoid is 0 or 1."""


class LinearEvaluator:
    """Scales and multiplies all inputs at once.

    Parameters
    ----------
    model
        What is explained: ``final``, or a pipeline of ``scalers`` and ``final``.
    scalers
        For each of them :func:`is_standard` must be true.
    final
        The linear model; :func:`is_linear` must be true.
    """

    def __init__(self, model: Any, scalers: Sequence[Any], final: Any) -> None:
        self._one_by_one = GenericEvaluator(model)
        self._scalers = list(scalers)
        self._final = final

    def __call__(
        self, x: Observation, replacements: Sequence[Mapping[str, Value]]
    ) -> Sequence[Output]:
        """Return one output per replacement; see :class:`Evaluator`."""
        inputs = Inputs(x, replacements)
        features = dict.fromkeys((*x, *inputs.singles))
        for row in inputs.several:
            features.update(dict.fromkeys(replacements[row]))
        columns = {feature: column for column, feature in enumerate(features, start=1)}
        try:
            with np.errstate(over="raise", divide="raise", invalid="ignore", under="ignore"):
                outputs = self._outputs(inputs.matrix(columns)[:-1, 1:].T, list(features))
        except (NoNumberError, FloatingPointError):
            # River raises for some of these inputs, and answers others
            return self._one_by_one(x, replacements)
        return outputs if outputs is not None else self._one_by_one(x, replacements)

    def _outputs(self, matrix: Floats, features: list[str]) -> list[Output] | None:
        """Return the outputs for inputs of shape (features, rows); None if one is not finite."""
        for scaler in self._scalers:
            matrix = _scaled(scaler, matrix, features)
        final = self._final
        weights = final.weights
        terms = matrix * np.array([weights.get(feature, 0.0) for feature in features])[:, None]
        # one after the other in the order of the input, as River does; what is missing has none
        sums = np.where(np.isnan(matrix), 0.0, terms).cumsum(axis=0)[-1] + final.intercept
        if not np.isfinite(sums).all():
            return None
        if isinstance(final, linear_model.LinearRegression):
            return sums.tolist()  # type: ignore[no-any-return]
        shares = 1.0 / (1.0 + np.exp(-np.clip(sums, -LARGE, LARGE)))
        shares[sums > LARGE] = 1.0
        shares[sums < -LARGE] = 0.0
        return [{False: 1.0 - p, True: p} for p in shares.tolist()]


def is_linear(model: Any) -> bool:
    """Return whether a model is one that :class:`LinearEvaluator` computes as River does."""
    if type(model) is linear_model.LinearRegression:
        return type(model.loss) is optim.losses.Squared
    return type(model) is linear_model.LogisticRegression and type(model.loss) is optim.losses.Log


def is_standard(transformer: Any) -> bool:
    """Return whether a transformer is a standard scaler over all of the past."""
    return type(transformer) is preprocessing.StandardScaler and transformer.window_size is None


def _scaled(scaler: Any, matrix: Floats, features: list[str]) -> Floats:
    means, variances = scaler.means, scaler.vars
    matrix = matrix - np.array([means.get(feature, 0.0) for feature in features])[:, None]
    if not scaler.with_std:
        return matrix
    deviations = [variances.get(feature, 0.0) ** 0.5 for feature in features]
    constant = np.array([deviation == 0.0 for deviation in deviations])
    matrix /= np.where(constant, 1.0, deviations)[:, None]
    matrix[constant] *= 0.0  # and what is missing stays missing
    return matrix

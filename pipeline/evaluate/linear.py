"""The evaluator for linear models, also behind standard scalers."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from river import linear_model, optim, preprocessing

from pipeline.evaluate.base import Observation, Output, Value
from pipeline.evaluate.compiled import compiled
from pipeline.evaluate.generic import GenericEvaluator
from pipeline.evaluate.inputs import Floats, Inputs, NoNumberError
from pipeline.evaluate.table import Table

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
            rows = np.ascontiguousarray(inputs.matrix(columns)[:-1, 1:])
        except NoNumberError:
            table = None
        else:
            table = self._table(features, rows)
        # River raises for some of the inputs that have no answer here, and answers others
        return self._one_by_one(x, replacements) if table is None else table.outputs()

    def table(self, x: Observation, rows: Floats) -> Table | None:
        """Return the outputs on whole inputs; see :class:`TableEvaluator`."""
        return self._table(x, rows)

    def _table(self, features: Collection[str], rows: Floats) -> Table | None:
        """Return the outputs; None if a number on the way to one is too large."""
        final = self._final
        scales = [number for scaler in self._scalers for number in _scale(scaler, features)]
        of_scalers = np.array(scales).reshape(len(self._scalers), 2, len(features))
        weights = final.weights
        factors = np.array([weights.get(feature, 0.0) for feature in features])
        sums = np.empty((len(rows), 1))
        if not _add(rows, of_scalers, factors, float(final.intercept), sums):
            return None
        if isinstance(final, linear_model.LinearRegression):
            return Table((None,), sums)
        _flatten(sums)
        shares = np.empty((len(rows), 2))
        _share(np.exp(sums), shares)
        return Table((False, True), shares)


def is_linear(model: Any) -> bool:
    """Return whether a model is one that :class:`LinearEvaluator` computes as River does."""
    if type(model) is linear_model.LinearRegression:
        return type(model.loss) is optim.losses.Squared
    return type(model) is linear_model.LogisticRegression and type(model.loss) is optim.losses.Log


def is_standard(transformer: Any) -> bool:
    """Return whether a transformer is a standard scaler over all of the past."""
    return type(transformer) is preprocessing.StandardScaler and transformer.window_size is None


def _scale(scaler: Any, features: Collection[str]) -> list[float]:
    """Return the mean of each feature, then what its distance from it is divided by."""
    means, variances = scaler.means, scaler.vars
    centres = [means.get(feature, 0.0) for feature in features]
    if not scaler.with_std:
        return [*centres, *[1.0] * len(centres)]
    return [*centres, *[variances.get(feature, 0.0) ** 0.5 for feature in features]]


@compiled
def _add(rows: Floats, scales: Floats, weights: Floats, intercept: float, sums: Floats) -> bool:
    """Add up the weighted features of each row, one after the other, as River does.

    Parameters
    ----------
    rows
        Shape (rows, features); NaN where a feature is missing, which adds nothing.
    scales
        Of each scaler the features' means and deviations, shape (scalers, 2, features); what has
        no deviation becomes 0.
    weights, intercept
        Of the model.
    sums
        Filled, shape (rows, 1).

    Returns
    -------
    Whether all numbers are finite.
    """
    for row in range(rows.shape[0]):
        total = 0.0
        for column in range(rows.shape[1]):
            value = rows[row, column]
            for scaler in range(scales.shape[0]):
                value -= scales[scaler, 0, column]
                deviation = scales[scaler, 1, column]
                if deviation == 0.0:
                    value *= 0.0
                else:
                    value /= deviation
            if math.isinf(value):
                return False
            if not math.isnan(value):
                total += value * weights[column]
        sums[row, 0] = total + intercept
        if not math.isfinite(sums[row, 0]):
            return False
    return True


@compiled
def _flatten(sums: Floats) -> None:
    """Make sums the exponents of the sigmoid, infinite where it is 0 or 1."""
    for row in range(sums.shape[0]):
        total = sums[row, 0]
        if total > LARGE:
            sums[row, 0] = -math.inf
        elif total < -LARGE:
            sums[row, 0] = math.inf
        else:
            sums[row, 0] = -total


@compiled
def _share(powers: Floats, shares: Floats) -> None:
    """Fill in the probabilities of False and True, from the powers of e in the sigmoid."""
    for row in range(powers.shape[0]):
        p = 1.0 / (1.0 + powers[row, 0])
        shares[row, 0] = 1.0 - p
        shares[row, 1] = p

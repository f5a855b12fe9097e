"""The evaluator for linear models, also behind standard scalers."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from river import linear_model, optim, preprocessing

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import NUMBERS, Floats, Inputs
from fluxplain.evaluate.generic import GenericEvaluator
from fluxplain.evaluate.table import Table

LARGE = 30.0
"""Limit of the exponent beyond which River's sigmoid is 0 or 1."""


class LinearEvaluator:
    """Scales and multiplies all inputs at once.

    ``model`` is the explained one: ``final``, or a pipeline of ``scalers`` and ``final``, for which
    :func:`is_standard` and :func:`is_linear` are true.
    """

    def __init__(self, model: Any, scalers: Sequence[Any], final: Any) -> None:
        self._one_by_one = GenericEvaluator(model)
        self._scalers = list(scalers)
        self._final = final

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        observed, rows = inputs
        encoding = observed.encoding
        is_text = encoding.mark is not NUMBERS and any(
            map(encoding.is_categorical, observed.features)
        )
        table = None if is_text else self._table(observed.features, rows)
        # for inputs without a result here, River raises or has its own answer
        return self._one_by_one(inputs) if table is None else table

    def _table(self, features: Collection[str], rows: Floats) -> Table | None:
        """Return the outputs; None if a number on the way to one is too large."""
        final = self._final
        sources = [of for scaler in self._scalers for of in _scale(scaler, features)]
        sources.append(final.weights)
        numbers = [number for of in sources for number in map(of.get, features, repeat(0.0))]
        given = np.array(numbers, np.float64).reshape(len(sources), len(features))
        is_class = isinstance(final, linear_model.LogisticRegression)
        outputs = np.empty((len(rows), 2 if is_class else 1))
        if not _predict(rows, given, float(final.intercept), 0.5, is_class, outputs):
            return None
        return Table((False, True) if is_class else (None,), outputs)


def is_linear(model: Any) -> bool:
    """Return whether :class:`LinearEvaluator` supports a model."""
    if type(model) is linear_model.LinearRegression:
        return type(model.loss) is optim.losses.Squared
    return type(model) is linear_model.LogisticRegression and type(model.loss) is optim.losses.Log


def is_standard(transformer: Any) -> bool:
    """Return whether a transformer is a standard scaler over the whole past."""
    return type(transformer) is preprocessing.StandardScaler and transformer.window_size is None


def _scale(
    scaler: Any, features: Collection[str]
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return the mean and the variance of each feature."""
    return scaler.means, scaler.vars if scaler.with_std else dict.fromkeys(features, 1.0)


@compiled
def _predict(  # noqa: PLR0917  compiled functions take arrays
    rows: Floats, given: Floats, intercept: float, half: float, is_class: bool, outputs: Floats
) -> bool:
    """Add up the weighted features of each row, in their order, as River does.

    Fills ``outputs``: the sums, shape (rows, 1), or if ``is_class`` the probabilities of False and
    True, shape (rows, 2). Returns whether all numbers on the way are finite.

    Parameters
    ----------
    rows
        Shape (rows, features); NaN where a feature is missing, which adds nothing.
    given
        Each scaler's means and variances, then the model's weights. A feature without variance
        becomes 0.
    half
        0.5: as a constant, the compiler would compute the root differently from Python.
    """
    scalers = given.shape[0] // 2
    deviations = np.empty(scalers)
    outputs[:] = 0.0
    for column in range(rows.shape[1]):
        for scaler in range(scalers):
            deviations[scaler] = math.pow(given[2 * scaler + 1, column], half)
        last, term = math.nan, 0.0
        for row in range(rows.shape[0]):
            if rows[row, column] != last:  # most rows share the observation's value
                last = value = rows[row, column]
                for scaler in range(scalers):
                    value -= given[2 * scaler, column]
                    if deviations[scaler] == 0.0:
                        value *= 0.0
                    else:
                        value /= deviations[scaler]
                if math.isinf(value):
                    return False
                term = 0.0 if math.isnan(value) else value * given[2 * scalers, column]
            outputs[row, 0] += term
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

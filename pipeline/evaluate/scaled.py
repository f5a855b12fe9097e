"""The evaluator for a model behind scalers."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np
from river import preprocessing

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Encoding, Floats, Inputs, Observed, Places
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.table import Table

Features = tuple[str, ...]

Numbers = list[float | None]
"""One for each feature; None where a scaler has none yet, and fails or gives no number."""

Scaling = tuple[Numbers, Numbers]
"""What a scaler subtracts, and by what it divides; divided by 0, a value becomes 0."""


class ScaledEvaluator(FastEvaluator):
    """Scales all inputs at once, and calls the evaluator of the model behind the scalers.

    ``model`` is the explained pipeline; :func:`is_scaler` is true for each of its ``scalers``, and
    ``evaluator`` is that of the model behind them.
    """

    def __init__(self, model: Any, scalers: Sequence[Any], evaluator: Evaluator) -> None:
        super().__init__(model)
        self.evaluator = evaluator
        self._scalers = list(scalers)
        self._encoding = Encoding()  # scaled values are numbers

    def _table(self, inputs: Inputs) -> Table | None:
        if inputs.observed.has_categories:
            return None
        scaled, lost = self._scaled(inputs)
        if not lost:
            return self.evaluator(scaled)
        without = np.unique(np.concatenate(lost))
        return None if without[0] == 0 else self._usable(scaled, without - 1)

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        if inputs.observed.has_categories or not isinstance(self.evaluator, FastEvaluator):
            return None
        if not all(map(is_by_feature, self._scalers)):
            return None  # a replaced value changes all others
        scaled, lost = self._scaled(inputs)
        return None if lost else self.evaluator.attributed(scaled, players)

    def _scaled(self, inputs: Inputs) -> tuple[Inputs, list[Places]]:
        """Return the scaled inputs, and which were lost: 0 is the observation, then the rows."""
        observed, rows = inputs
        features = observed.features
        numbers = np.concatenate((observed.numbers[None, :], rows))
        lost: list[Places] = []
        for scaler in self._scalers:
            if type(scaler) is preprocessing.Binarizer:
                np.greater(numbers, scaler.threshold, out=numbers)
            elif type(scaler) is preprocessing.Normalizer:
                if not _normalize(numbers, scaler.order):
                    lost.append(np.flatnonzero(~np.isfinite(numbers).all(axis=1)))
            else:
                given = np.array(_SCALINGS[type(scaler)](scaler, features), np.float64)
                if not _scale(numbers, given):
                    lost.append(np.flatnonzero(~np.isfinite(numbers).all(axis=1)))
        x = dict(zip(features, numbers[0].tolist(), strict=True))
        return Inputs(Observed(x, features, numbers[0], self._encoding), numbers[1:]), lost

    def _usable(self, scaled: Inputs, without: Places) -> Table:
        """Return the outputs on the rows; NaN on those ``without`` numbers."""
        n = len(scaled.rows)
        usable = np.delete(np.arange(n), without)
        labels, outputs, _ = self.evaluator(scaled.some(usable))
        whole = np.full((n, len(labels)), math.nan)
        whole[usable] = outputs
        return Table(labels, whole)


def is_scaler(transformer: Any) -> bool:
    """Return whether a :class:`ScaledEvaluator` supports a transformer."""
    return type(transformer) is preprocessing.Normalizer or is_by_feature(transformer)


def is_by_feature(transformer: Any) -> bool:
    """Return whether a transformer scales each feature by itself, in a way known here."""
    if type(transformer) is preprocessing.Binarizer:
        return transformer.dtype in {bool, int, float}
    return type(transformer) in _SCALINGS


def _standard(scaler: Any, features: Features) -> Scaling:
    if scaler.window_size is None:
        means = list(map(scaler.means.get, features, repeat(0.0)))
        variances = list(map(scaler.vars.get, features, repeat(0.0)))
    else:  # a window without values has the mean 0
        means = [mean or 0.0 for mean in _read(scaler.means, features)]
        variances = [variance or 0.0 for variance in _read(scaler.vars, features)]
    if not scaler.with_std:
        return means, [1.0] * len(features)
    # rounding may leave a window with a negative variance, and River with a complex number
    return means, [v**0.5 if v >= 0.0 else None for v in variances]


def _adaptive(scaler: Any, features: Features) -> Scaling:
    variances = _read(scaler.vars, features)
    return _read(scaler.means, features), [v**0.5 if v and v > 0 else 0.0 for v in variances]


def _min_max(scaler: Any, features: Features) -> Scaling:
    low, high = _read(scaler.min, features), _read(scaler.max, features)
    return low, [None if a is None or b is None else b - a for a, b in zip(low, high, strict=True)]


def _max_abs(scaler: Any, features: Features) -> Scaling:
    return [0.0] * len(features), [v or 0.0 for v in _read(scaler.abs_max, features)]


def _robust(scaler: Any, features: Features) -> Scaling:
    centres = _read(scaler.median, features) if scaler.with_centering else [0.0] * len(features)
    ranges = _read(scaler.iqr, features) if scaler.with_scaling else [1.0] * len(features)
    return [v or 0.0 for v in centres], [v or 0.0 for v in ranges]


def _read(statistics: Mapping[str, Any], features: Features) -> Numbers:
    # a feature that was never learned has none, and River makes it when it is asked
    found = map(statistics.get, features)
    return [None if each is None else each.get() for each in found]


_SCALINGS: dict[type, Callable[[Any, Features], Scaling]] = {
    preprocessing.AdaptiveStandardScaler: _adaptive,
    preprocessing.MaxAbsScaler: _max_abs,
    preprocessing.MinMaxScaler: _min_max,
    preprocessing.RobustScaler: _robust,
    preprocessing.StandardScaler: _standard,
}


def scale(scaler: Any, features: Features, numbers: Floats) -> Floats:
    """Return scaled numbers, shape (inputs, features); not finite where River has none."""
    scaled = numbers.copy()
    if type(scaler) is preprocessing.Binarizer:
        np.greater(numbers, scaler.threshold, out=scaled)
        return scaled
    _scale(scaled, np.array(_SCALINGS[type(scaler)](scaler, features), np.float64))
    return scaled


def _normalize(numbers: Floats, order: Any) -> bool:
    """Divide each row by its norm; return whether all numbers are finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers /= np.linalg.norm(numbers, ord=order, axis=1, keepdims=True)
    return bool(np.isfinite(numbers).all())


@compiled
def _scale(numbers: Floats, given: Floats) -> bool:
    """Subtract ``given[0]`` and divide by ``given[1]``; return whether all numbers are finite.

    ``numbers`` has the shape (inputs, features), ``given`` (2, features).
    """
    is_finite = True
    for column in range(numbers.shape[1]):
        centre, divisor = given[0, column], given[1, column]
        last = scaled = math.nan
        for row in range(numbers.shape[0]):
            if numbers[row, column] != last:  # most rows share the observation's value
                last = numbers[row, column]
                scaled = 0.0 if divisor == 0.0 else (last - centre) / divisor
                is_finite &= math.isfinite(scaled)
            numbers[row, column] = scaled
    return is_finite

"""The evaluator for a model in a wrapper, which selects what is learned or changes the target."""

import math
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
from river import compose, imblearn, preprocessing

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.encoding import Floats, Inputs, Places
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.table import Table

Line = tuple[float, float]
"""By what an output is multiplied, and what is then added."""


class WrappedEvaluator(FastEvaluator):
    """Asks the evaluator of the model without the wrapper, and changes outputs as River does.

    ``model`` is the explained model; ``wrapper`` is what :func:`without_wrapper` returned with the
    model of the ``evaluator``.
    """

    def __init__(self, model: Any, wrapper: Any, evaluator: Evaluator) -> None:
        super().__init__(model)
        self.evaluator = evaluator
        self._wrapper = wrapper

    def _table(self, inputs: Inputs) -> Table:
        table = self.evaluator(inputs)
        if type(self._wrapper) in _SAMPLERS:
            return table
        return table._replace(numbers=self._changed(table.numbers))

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        line_of = _LINES.get(type(self._wrapper))
        is_sampler = type(self._wrapper) in _SAMPLERS
        if not (line_of or is_sampler) or not isinstance(self.evaluator, FastEvaluator):
            return None
        found = self.evaluator.attributed(inputs, players)
        if found is None or line_of is None:
            return found
        factor, shift = line_of(self._wrapper)
        return Attribution(found.labels, found.base * factor + shift, found.contributions * factor)

    def _changed(self, outputs: Floats) -> Floats:
        wrapper = self._wrapper
        if (line_of := _LINES.get(type(wrapper))) is not None:
            factor, shift = line_of(wrapper)
            return outputs * factor + shift
        if type(wrapper) is preprocessing.PredClipper:
            return np.clip(outputs, wrapper.y_min, wrapper.y_max)
        changed = map(wrapper.inverse_func, chain.from_iterable(outputs.tolist()))
        return np.fromiter(changed, np.float64, outputs.size).reshape(outputs.shape)


def without_wrapper(model: Any) -> tuple[Any, Any] | None:
    """Return the wrapper at the end of a model, and the model without it; None without one.

    Examples
    --------
    >>> from river import linear_model, preprocessing
    >>> target = preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    >>> wrapper, inner = without_wrapper(preprocessing.StandardScaler() | target)
    >>> wrapper is target, list(inner.steps)
    (True, ['StandardScaler', 'LinearRegression'])
    """
    *transformers, final = _steps(model)
    if type(final) not in WRAPPERS:
        return None
    steps = [*transformers, *_steps(getattr(final, WRAPPERS[type(final)]))]
    # the steps themselves, which learn on
    return final, compose.Pipeline(*steps) if len(steps) > 1 else steps[0]


def _steps(model: Any) -> list[Any]:
    if type(model) is compose.Pipeline and model.steps:
        return list(model.steps.values())
    return [model]


def _standard(wrapper: Any) -> Line:
    return wrapper.var.get() ** 0.5, wrapper.var.mean.get()


def _min_max(wrapper: Any) -> Line:
    low, high = wrapper.min.get(), wrapper.max.get()
    return (1.0, 0.0) if low == math.inf else (high - low, low)  # inf: nothing learned yet


_LINES: dict[type, Callable[[Any], Line]] = {
    preprocessing.TargetMinMaxScaler: _min_max,
    preprocessing.TargetStandardScaler: _standard,
}

_SAMPLERS: Mapping[type, str] = {
    imblearn.ChebyshevOverSampler: "regressor",
    imblearn.ChebyshevUnderSampler: "regressor",
    imblearn.HardSamplingClassifier: "model",
    imblearn.HardSamplingRegressor: "model",
    imblearn.RandomOverSampler: "classifier",
    imblearn.RandomSampler: "classifier",
    imblearn.RandomUnderSampler: "classifier",
}

WRAPPERS: Mapping[type, str] = {
    **_SAMPLERS,
    **dict.fromkeys(_LINES, "regressor"),
    compose.TargetTransformRegressor: "regressor",
    preprocessing.PredClipper: "regressor",
}
"""River's wrappers, and the attribute with the wrapped model."""

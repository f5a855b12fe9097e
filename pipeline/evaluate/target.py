"""The evaluator for a regressor that learns a transformed target."""

import math
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from river import compose, preprocessing

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.encoding import Floats, Inputs, Places
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.table import Table

Line = tuple[float, float]
"""By what an output is multiplied, and what is then added."""


class TargetEvaluator(FastEvaluator):
    """Asks the regressor's evaluator, and transforms its outputs back as River does.

    ``model`` is the explained model; ``wrapper`` transforms the target, and :func:`without_target`
    returned it; ``evaluator`` is that of the model without it.
    """

    def __init__(self, model: Any, wrapper: Any, evaluator: Evaluator) -> None:
        super().__init__(model)
        self.evaluator = evaluator
        self._wrapper = wrapper

    def _table(self, inputs: Inputs) -> Table:
        labels, outputs, _ = self.evaluator(inputs)
        return Table(labels, self._back(outputs))

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        line_of = _LINES.get(type(self._wrapper))
        if line_of is None or not isinstance(self.evaluator, FastEvaluator):
            return None
        found = self.evaluator.attributed(inputs, players)
        if found is None:
            return None
        factor, shift = line_of(self._wrapper)
        return Attribution(found.labels, found.base * factor + shift, found.contributions * factor)

    def _back(self, outputs: Floats) -> Floats:
        wrapper = self._wrapper
        if (line_of := _LINES.get(type(wrapper))) is not None:
            factor, shift = line_of(wrapper)
            return outputs * factor + shift
        if type(wrapper) is preprocessing.PredClipper:
            return np.clip(outputs, wrapper.y_min, wrapper.y_max)
        back = map(wrapper.inverse_func, chain.from_iterable(outputs.tolist()))
        return np.fromiter(back, np.float64, outputs.size).reshape(outputs.shape)


def without_target(model: Any) -> tuple[Any, Any] | None:
    """Return what transforms a model's target, and the model without it; None if nothing does."""
    *transformers, final = _steps(model)
    if type(final) not in WRAPPERS:
        return None
    steps = [*transformers, *_steps(final.regressor)]
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

WRAPPERS = {*_LINES, preprocessing.PredClipper, compose.TargetTransformRegressor}
"""River's classes that change the target of their ``regressor``, or its output."""

"""The evaluator for any model: one call per input."""

import math
from collections.abc import Mapping
from typing import Any, cast

from river import base, compose

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.evaluator import Label, NoOutputError, Observation, Output
from fluxplain.evaluate.foreign_models import advice
from fluxplain.evaluate.table import Table, table_of


class GenericEvaluator:
    """Evaluates a model one input at a time.

    ``predict_proba_one`` is used when the model has it, else ``predict_one``. A class that
    ``predict_one`` returns (``bool`` or ``str``) counts as probability 1 for that class; a number
    stays a number.

    The model is never changed. Raises ``TypeError`` if it has neither method.

    Examples
    --------
    >>> from fluxplain.evaluate import Encoding
    >>> class Rule:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"] + x["b"]
    >>> observed = Encoding().observe({"a": 1.0, "b": 3.0})
    >>> GenericEvaluator(Rule())(Inputs.replacing(observed, [{}, {"a": 0.0}])).outputs()
    [5.0, 3.0]
    """

    def __init__(self, model: object) -> None:
        self.model = model
        final = final_step(model)
        self._probabilistic = has_probabilities(final)
        self._classifier = isinstance(final, base.Classifier)
        has_either = self._probabilistic or callable(getattr(final, "predict_one", None))
        if not has_either or isinstance(model, type):
            raise TypeError(advice(final))

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        return table_of([self.output(x) for x in inputs.dicts()])

    def output(self, x: Observation) -> Output:
        """Return the output on one input dictionary, which the model may modify."""
        model = cast(Any, self.model)
        ask = model.predict_proba_one if self._probabilistic else model.predict_one
        return read_output(ask(x), classifier=self._classifier)


def read_output(answer: object, *, classifier: bool) -> Output:
    """Return a model's answer in plain Python numbers.

    Raises ``NoOutputError`` for None, unless from a River classifier, and ``ValueError`` for
    anything else than a finite number, a class or probabilities.
    """
    if isinstance(answer, Mapping):
        return {plain_label(label): _finite(p) for label, p in answer.items()}
    if classifier:
        # a River classifier returns None before it has learned a class
        return {} if answer is None else {plain_label(answer): 1.0}
    answer = _plain(answer)
    return {answer: 1.0} if isinstance(answer, bool | str) else _finite(answer)


def model_kind(model: object) -> str:
    """Return ``"classifier"`` or ``"regressor"`` for a River model, else ``"unknown"``."""
    final = final_step(model)
    if isinstance(final, compose.Pipeline):  # River asks its last step, and it has none
        return "unknown"
    if isinstance(final, base.Classifier):
        return "classifier"
    return "regressor" if isinstance(final, base.Regressor) else "unknown"


def final_step(model: object) -> object:
    """Return the model at the end of a pipeline; any other model itself, and an empty pipeline."""
    # a River pipeline has all methods, whatever its last step supports
    while isinstance(model, compose.Pipeline) and model.steps:
        model = list(model.steps.values())[-1]
    return model


def has_probabilities(model: object) -> bool:
    """Return whether a model predicts probabilities."""
    method = getattr(type(model), "predict_proba_one", None) or getattr(
        model, "predict_proba_one", None
    )
    # the method of River's base class only raises
    return callable(method) and method is not base.Classifier.predict_proba_one


def plain_label(label: object) -> Label:
    """Return a label as a JSON type."""
    return cast(Label, _plain(label))


def _plain(value: object) -> object:
    # NumPy scalars are not JSON, and compare like arrays
    return value.item() if hasattr(value, "item") else value


def _finite(value: object) -> float:
    if value is None:
        raise NoOutputError("the model gave no output (None)")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"the model's output {value!r} is neither a number nor a class") from None
    if not math.isfinite(number):
        raise ValueError(f"the model's output is not finite: {number}")
    return number

"""The evaluator for any model: one call per input."""

import math
from collections.abc import Mapping
from typing import Any, cast

from river import base, compose

from fluxplain.evaluate.base import Label, NoOutputError, Observation, Output
from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.table import Table, table_of


class GenericEvaluator:
    """Asks a model one input at a time.

    ``predict_proba_one`` is used when the model has it, else ``predict_one``. A class that
    ``predict_one`` returns (``bool`` or ``str``) counts as probability 1 for that class; a number
    stays a number.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` or ``predict_one``. It is asked, never changed.

    Raises
    ------
    TypeError
        If the model has neither method.

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
        if not self._probabilistic and not callable(getattr(final, "predict_one", None)):
            raise TypeError(
                f"{type(model).__name__} cannot be asked: "
                "a model needs predict_proba_one or predict_one"
            )

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        return table_of([self.output(x) for x in inputs.dicts()])

    def output(self, x: Observation) -> Output:
        """Return the output on one input, which the model may change."""
        model = cast(Any, self.model)
        ask = model.predict_proba_one if self._probabilistic else model.predict_one
        return read_output(ask(x), classifier=self._classifier)


def read_output(answer: object, *, classifier: bool) -> Output:
    """Return a model's answer in plain Python numbers, refusing what cannot be explained.

    Raises
    ------
    NoOutputError
        If it is None, and the model no River classifier.
    ValueError
        If it is neither a finite number, nor a class, nor probabilities.
    """
    if isinstance(answer, Mapping):
        return {plain_label(label): _finite(p) for label, p in answer.items()}
    if classifier:
        # a River classifier that has not learned yet answers None: it knows no class
        return {} if answer is None else {plain_label(answer): 1.0}
    answer = _plain(answer)
    return {answer: 1.0} if isinstance(answer, bool | str) else _finite(answer)


def model_kind(model: object) -> str:
    """Return ``"classifier"`` or ``"regressor"`` for a River model, else ``"unknown"``."""
    final = final_step(model)
    if isinstance(final, base.Classifier):
        return "classifier"
    return "regressor" if isinstance(final, base.Regressor) else "unknown"


def final_step(model: object) -> object:
    """Return the model at the end of a pipeline; other models as they are."""
    # a River pipeline has every method, whatever its last step supports
    while isinstance(model, compose.Pipeline):
        model = list(model.steps.values())[-1]
    return model


def has_probabilities(model: object) -> bool:
    """Return whether a model gives probabilities, and not only classes or numbers."""
    method = getattr(type(model), "predict_proba_one", None) or getattr(
        model, "predict_proba_one", None
    )
    # River's base class has one that only raises
    return callable(method) and method is not base.Classifier.predict_proba_one


def plain_label(label: object) -> Label:
    """Return a label as JSON knows it."""
    return cast(Label, _plain(label))


def _plain(value: object) -> object:
    # numpy scalars are no JSON, and compare as arrays
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

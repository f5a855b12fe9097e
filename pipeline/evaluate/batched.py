"""The evaluator for models that take many inputs in one call."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from river import base

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.evaluator import Value
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.generic import has_probabilities, plain_label, read_output
from fluxplain.evaluate.table import Labels, Table, table_of

Row = dict[str, Value]
Many = Callable[[list[Row]], Sequence[Any]]
"""Inputs → one answer each, like those of ``predict_proba_one`` or ``predict_one``."""


class BatchEvaluator(FastEvaluator):
    """Evaluates all inputs in one call, of one of three kinds of models.

    - A model of your own with ``predict_proba_many`` or ``predict_many``, which take a list of
      inputs (feature → value) and return one answer each: class → probability, or a number.
    - A scikit-learn estimator in River's ``compat.convert_sklearn_to_river``.
    - A River model with ``predict_proba_many`` or ``predict_many``, which take a pandas DataFrame;
      pandas must be installed.

    Raises ``TypeError`` if the model is none of these.

    Examples
    --------
    >>> class Network:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    ...     def predict_many(self, rows):
    ...         return [2.0 * x["a"] for x in rows]
    >>> from fluxplain.evaluate import Encoding
    >>> observed = Encoding().observe({"a": 1.0})
    >>> BatchEvaluator(Network())(Inputs.replacing(observed, [{}, {"a": 3.0}])).outputs()
    [2.0, 6.0]
    """

    def __init__(self, model: object) -> None:
        super().__init__(model)
        self._classifier = isinstance(model, base.Classifier)
        if not self.covers(model) and not _is_frame_model(model):
            raise TypeError(
                f"the model, {type(model).__name__}, cannot be evaluated on many inputs at once: "
                "it has neither predict_proba_many nor predict_many"
            )

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether ``"auto"`` chooses this evaluator."""
        return _is_sklearn(model) or (not isinstance(model, base.Base) and _many(model) is not None)

    def _table(self, inputs: Inputs) -> Table | None:
        rows, model = inputs.dicts(), self.model
        if _is_sklearn(model):
            return _ask_sklearn(model, [model._align_dict(row) for row in rows])
        many = _many(model)
        answers = _ask_frame(many, rows) if isinstance(model, base.Base) else cast(Many, many)(rows)
        if len(answers) != len(rows):
            return None
        return table_of([read_output(answer, classifier=self._classifier) for answer in answers])


def _ask_sklearn(model: Any, values: list[list[Value]]) -> Table | None:
    if isinstance(model, base.Classifier):
        labels: Labels = tuple(map(plain_label, model.classes))
        numbers = np.asarray(model.estimator.predict_proba(values), np.float64)
    else:
        labels = (None,)
        numbers = np.asarray(model.estimator.predict(values), np.float64).reshape(len(values), -1)
    return Table(labels, numbers) if numbers.shape == (len(values), len(labels)) else None


def _is_sklearn(model: object) -> bool:
    # by name: importing them would import scikit-learn
    return type(model).__name__ in {"SKL2RiverClassifier", "SKL2RiverRegressor"}


def _many(model: object) -> Many | None:
    name = "predict_proba_many" if has_probabilities(model) else "predict_many"
    method = getattr(model, name, None)
    return method if callable(method) else None


def _is_frame_model(model: object) -> bool:
    return isinstance(model, base.MiniBatchClassifier | base.MiniBatchRegressor)


def _ask_frame(many: Many | None, rows: list[Row]) -> Sequence[Any]:
    import pandas  # noqa: PLC0415  most users have no such model

    answers: Any = cast(Any, many)(pandas.DataFrame(rows))
    if isinstance(answers, pandas.DataFrame):
        answers = answers.to_dict("records")
    return list(answers)

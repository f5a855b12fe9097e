"""The evaluator of scikit-learn's fitted estimators, and of others with its interface."""

import sys
from typing import Any, cast

import numpy as np

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.evaluator import Value
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Labels, Table

ADAPTER = "fluxplain.models.from_sklearn(model, features={'age': 'numeric'}, label="
"""Begin of the call that makes a model of an estimator."""


class EstimatorEvaluator:
    """Evaluates a scikit-learn classifier or regressor that was fitted to a data frame.

    Each call passes all inputs as one data frame, whose columns are found by their names. The
    estimator may learn on, by ``partial_fit``.

    Raises ``TypeError`` if it is not fitted, has no names of features, or predicts something else;
    the message has the call of the adapter that fits.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from fluxplain.evaluate import Encoding
    >>> model = LinearRegression().fit(pd.DataFrame({"a": [0.0, 1.0]}), [0.0, 2.0])
    >>> observed = Encoding().observe({"note": "no feature", "a": 3.0})
    >>> table = EstimatorEvaluator(model)(Inputs.replacing(observed, [{}, {"a": 1.0}]))
    >>> table.numbers.round(6).tolist()
    [[6.0], [2.0]]
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        if reason := _unsuitable(model):
            raise TypeError(reason)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether the model is an estimator, fitted or not, without River's interface."""
        sklearn = sys.modules.get("sklearn.base")  # else nobody has made one
        return (
            sklearn is not None
            and isinstance(model, sklearn.BaseEstimator)
            and not hasattr(model, "predict_one")
            and not hasattr(model, "predict_proba_one")
        )

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        model, frame = self.model, self._frame(inputs.dicts())
        labels: Labels = (None,)
        if not hasattr(model, "classes_"):
            found = model.predict(frame)
        else:
            labels = tuple(map(plain_label, model.classes_))
            if hasattr(model, "predict_proba"):
                found = model.predict_proba(frame)
            else:
                found = model.predict(frame)[:, None] == model.classes_
        numbers = np.asarray(found, np.float64).reshape(len(frame), -1)
        if numbers.shape[1] != len(labels):
            raise ValueError(
                f"{type(model).__name__} predicts {numbers.shape[1]} numbers at once: only one can "
                "be explained"
            )
        if not np.isfinite(numbers).all():
            raise ValueError("the model's output is not finite")
        return Table(labels, numbers)

    def _frame(self, rows: list[dict[str, Value]]) -> Any:
        import pandas  # noqa: PLC0415  only for estimators that were fitted with it

        names = [*map(str, self.model.feature_names_in_)]
        for name in names:
            if rows and name not in rows[0]:
                raise ValueError(
                    f"the observation lacks the feature {name!r}, to which "
                    f"{type(self.model).__name__} was fitted"
                )
        return pandas.DataFrame(rows, columns=names)


def _unsuitable(model: Any) -> str:
    """Return why an estimator cannot be evaluated, and what to give instead; empty if it can."""
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor  # noqa: PLC0415

    name = type(model).__name__
    if is_outlier_detector(model):
        return (
            f"{name} gives a score: give fluxplain.models.as_asked({ADAPTER}'none', learn=False), "
            "'none'), with loss=fluxplain.models.minus_score"
        )
    if not is_classifier(model) and not is_regressor(model):
        return f"{name} predicts neither classes nor a number: give a classifier or a regressor"
    if isinstance(getattr(model, "classes_", None), list):
        return f"{name} predicts several classes at once: only one can be explained"
    return _unready(model, name)


def _unready(model: Any, name: str) -> str:
    """Return what a classifier or regressor lacks; empty if it is fitted with names."""
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415  optional
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    try:
        check_is_fitted(model)
    except NotFittedError:
        if not hasattr(model, "partial_fit"):
            return f"{name} is not fitted: fit it to a data frame"
        return (
            f"{name} is not fitted: fit it to a data frame, or give {ADAPTER}{_label(model)}), "
            "which learns record by record"
        )
    if not hasattr(model, "feature_names_in_"):
        return (
            f"{name} was fitted without names of features: fit it to a data frame, or give "
            f"{ADAPTER}{_label(model)}, learn=False) with all features in the order of its columns"
        )
    return ""


def _label(model: Any) -> str:
    """Return the label type for a message."""
    from sklearn.base import is_regressor  # noqa: PLC0415  optional

    if is_regressor(model):
        return "'number'"
    classes = getattr(model, "classes_", None)
    if classes is None or len(classes) == 0:
        return "'boolean'"
    kinds = {bool: "'boolean'", int: "'integer'"}
    return kinds.get(type(plain_label(cast(Any, classes)[0])), "'string'")

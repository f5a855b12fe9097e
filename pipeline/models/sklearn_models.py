"""scikit-learn's estimators: those that learn one record at a time, and fitted ones.

River's ``compat.convert_sklearn_to_river`` is not used: it takes no categories, passes features by
position where a fitted pipeline needs names, does not sort classes as scikit-learn does, and
requires ``predict_proba`` or ``partial_fit``. Models that it has made work like any River model.
"""

import copy
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, cast

import numpy as np

from fluxplain.evaluate import Label, Observation
from fluxplain.evaluate.encoding import Floats
from fluxplain.models.adapters import (
    CLASS_TYPES,
    Adapter,
    Classifier,
    Detector,
    adapter,
    check_label,
    classes_of,
    output_count,
)
from fluxplain.models.encoder import Encoder, Rows
from fluxplain.models.factories import make

NEEDED = {
    "number": "a regressor",
    "none": "an outlier detector, or a regressor that becomes an autoencoder",
}
"""Label type → required estimator; a classifier for all others."""


def from_sklearn(
    estimator: Any,
    *,
    features: Mapping[str, str],
    label: str = "boolean",
    classes: Sequence[Label] | None = None,
    scale: bool = True,
    categories: int = 20,
    learn: bool = True,
    seed: int | None = None,
) -> Adapter:
    """Return a scikit-learn estimator as a model that learns and predicts one record at a time.

    The label type decides which estimators fit: a classifier, a regressor, or without labels
    (``"none"``) an outlier detector, whose score is minus its ``score_samples``, or a regressor of
    many outputs, which becomes an autoencoder.

    To learn, it must have ``partial_fit``. An unfitted estimator gets rows of an
    :class:`~fluxplain.models.Encoder`. A fitted one gets the raw values, in a data frame if it was
    fitted with names, otherwise in the order of ``features``.

    Parameters
    ----------
    estimator
        As ``"module:name"``, a table with a ``factory`` and its arguments, or an estimator; see
        :func:`~fluxplain.models.factories.make`.
    features
        Feature → ``"numeric"`` or ``"categorical"``.
    label
        ``"boolean"``, ``"integer"`` or ``"string"`` (classes), ``"number"``, or ``"none"``.
    classes
        All classes, for ``"integer"`` and ``"string"``. A fitted estimator knows its own.
    scale, categories
        See :class:`~fluxplain.models.Encoder`.
    learn
        Whether it learns, or only predicts.
    seed
        Passed to a factory that takes a ``random_state`` and has none.

    Raises
    ------
    ValueError
        If it cannot be made, predicts something else, or cannot learn or predict.

    Examples
    --------
    >>> model = from_sklearn(
    ...     {"factory": "sklearn.linear_model:SGDClassifier", "loss": "log_loss"},
    ...     features={"age": "numeric", "car": "categorical"},
    ...     seed=1,
    ... )
    >>> model.predict_proba_one({"age": 30.0, "car": "a"})
    {False: 0.5, True: 0.5}
    >>> model.learn_one({"age": 30.0, "car": "a"}, True)
    """
    if not find_spec("sklearn"):
        raise ValueError("scikit-learn is not installed: pip install 'fluxplain[sklearn]'")
    check_label(label)
    made = make(estimator, seed=seed)
    name = type(made).__name__
    if not callable(getattr(made, "predict", None)):
        raise ValueError(f"estimator gives a {name}, which is not an estimator: it has no predict")
    is_fitted = _is_fitted(made)
    if not hasattr(made, "partial_fit") and (learn or not is_fitted):
        raise ValueError(
            f"{name} has no partial_fit, so it cannot learn record by record: give a fitted one, "
            "and set model.learn to false"
        )
    if is_fitted:
        return _adapter(made, _values(made, features), label, classes)
    model = _adapter(made, Encoder(features, scale=scale, categories=categories), label, classes)
    _try(model, {f: 0.0 if kind == "numeric" else "" for f, kind in features.items()})
    return model


class Estimator:
    """A learner; before its first fit, its outputs are equal probabilities, or zeros."""

    def __init__(
        self, estimator: Any, method: str, outputs: int, classes: Sequence[Label] = ()
    ) -> None:
        self.estimator = estimator
        self._method = method
        self._outputs = outputs
        self._classes = np.array(classes) if classes else None
        self._is_fitted = _is_fitted(estimator)

    def learn(self, row: Any, target: Any) -> None:
        """Learn one row."""
        if self._classes is not None:
            self.estimator.partial_fit(row, np.array([target]), classes=self._classes)
        elif target is None:
            self.estimator.partial_fit(row)
        else:
            self.estimator.partial_fit(row, np.array([target]))
        self._is_fitted = True

    def outputs(self, rows: Any) -> Floats:
        """Return the outputs."""
        if not self._is_fitted:
            share = 0.0 if self._classes is None else 1.0 / len(self._classes)
            return np.full((len(rows), self._outputs), share)
        found = getattr(self.estimator, self._method)(rows)
        if self._method == "predict_proba":
            return cast(Floats, found)
        if self._classes is not None:
            return cast(Floats, (found[:, None] == self._classes).astype(np.float64))
        if self._method == "score_samples":
            found = -found
        return np.asarray(found, np.float64).reshape(len(found), self._outputs)


class Values:
    """Rows of a fitted estimator: the raw values, in a data frame if it was fitted with names."""

    def __init__(self, features: Sequence[str], *, named: bool) -> None:
        self._features = list(features)
        self._named = named
        self.width = len(features)

    def learn(self, x: Observation) -> None:
        """Learn nothing."""

    def rows(self, xs: Sequence[Observation]) -> Any:
        """Return the observations as rows."""
        rows = [[x[feature] for feature in self._features] for x in xs]
        if not self._named:
            has_text = any(isinstance(value, str) for row in rows for value in row)
            return np.array(rows, object if has_text else np.float64)
        import pandas  # noqa: PLC0415  only for estimators that were fitted with it

        return pandas.DataFrame(rows, columns=self._features)


def _adapter(estimator: Any, rows: Rows, label: str, classes: Sequence[Label] | None) -> Adapter:
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor  # noqa: PLC0415

    name = type(estimator).__name__
    if label == "none" and is_outlier_detector(estimator):
        return Detector(name, rows, Estimator(estimator, "score_samples", 1))
    if not (is_regressor if label in NEEDED else is_classifier)(estimator):
        needed = NEEDED.get(label, "a classifier")
        raise ValueError(f"{name} is not {needed}, as label.type = {label!r} needs")
    known = _classes(estimator, label, classes)
    method = "predict_proba" if known and hasattr(estimator, "predict_proba") else "predict"
    learner = Estimator(estimator, method, output_count(label, rows, known), known)
    return adapter(label, name, rows, learner, known)


def _classes(estimator: Any, label: str, classes: Sequence[Label] | None) -> list[Label]:
    fitted = getattr(estimator, "classes_", None)
    if fitted is None:
        return classes_of(label, classes)
    own: list[Label] = np.asarray(fitted).tolist()
    if any(type(each) is not CLASS_TYPES[label] for each in own):
        name = type(estimator).__name__
        raise ValueError(f"{name} was fitted to the classes {own}, but label.type is {label!r}")
    return own


def _values(estimator: Any, features: Mapping[str, str]) -> Values:
    name, known = type(estimator).__name__, ", ".join(features)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        expected = getattr(estimator, "n_features_in_", len(features))
        if expected != len(features):
            raise ValueError(
                f"{name} was fitted to {expected} features, but there are {len(features)}: {known}"
            )
        return Values(list(features), named=False)
    missing = [each for each in names if each not in features]
    if missing:
        raise ValueError(
            f"{name} was fitted to the feature {missing[0]!r}, but there are only {known}"
        )
    return Values([str(each) for each in names], named=True)


def _try(model: Any, x: Observation) -> None:
    """Let a copy learn and predict once, so that an unsuitable estimator is refused at once."""
    trial, y = copy.deepcopy(model), model.classes[0] if isinstance(model, Classifier) else 0.0
    try:
        with np.errstate(all="ignore"):
            trial.learn_one(*((x,) if isinstance(model, Detector) else (x, y)))
            outputs = trial.outputs([x])[0].tolist()
    except Exception as error:
        raise ValueError(
            f"{model} cannot learn and predict record by record: {type(error).__name__}: {error}"
        ) from error
    if not np.isfinite(outputs).all():
        raise ValueError(
            f"{model} gives {outputs} after one record: it cannot learn record by record"
        )


def _is_fitted(estimator: Any) -> bool:
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415  optional
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True

"""Estimators of scikit-learn: those that learn one record at a time, and fitted ones.

Why not River's ``compat.convert_sklearn_to_river``: it takes numbers only, no categories; it asks
by position, where a fitted pipeline wants columns by name; it takes the classes in any order, where
scikit-learn sorts them; and what has no ``predict_proba`` or no ``partial_fit`` it does not take.
What it has made may be used as any model of River.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from pipeline.evaluate import Label, Observation
from pipeline.evaluate.inputs import Floats
from pipeline.models.encoder import Encoder, Rows
from pipeline.models.fronts import Autoencoder, Classifier, Detector, Front, Regressor
from pipeline.models.making import make
from pipeline.models.targets import KINDS, check_label, classes_of


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
) -> Front:
    """Return an estimator of scikit-learn as a model that learns and is asked by observation.

    What is predicted decides what is taken: a classifier, a regressor, or without labels
    (``"none"``) an outlier detector, whose score is minus its ``score_samples``, or a regressor of
    many outputs, which becomes an autoencoder.

    What is to learn must have ``partial_fit``. An estimator that is not fitted gets rows of an
    :class:`~pipeline.models.Encoder`. A fitted one gets the values as they are, by name in a data
    frame if it was fitted with names, else in the order of ``features``.

    Parameters
    ----------
    estimator
        As ``"module:name"``, as a table with a ``factory`` and its arguments, or made already; see
        :func:`~pipeline.models.making.make`.
    features
        Feature → ``"numeric"`` or ``"categorical"``.
    label
        ``"boolean"``, ``"integer"`` or ``"string"`` (classes), ``"number"``, or ``"none"``.
    classes
        All that there are, for ``"integer"`` and ``"string"``. A fitted estimator knows its own.
    scale, categories
        Of the encoder.
    learn
        Whether it is to learn, and not only to be asked.
    seed
        For what takes a ``random_state``, and has none.

    Raises
    ------
    ValueError
        If it cannot be made, predicts something else, or cannot learn or be asked.

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
    _check_installed()
    check_label(label)
    made = make(estimator, seed=seed)
    name = type(made).__name__
    if not callable(getattr(made, "predict", None)):
        raise ValueError(f"estimator gives a {name}, which is no estimator: it has no predict")
    is_fitted = _is_fitted(made)
    if not hasattr(made, "partial_fit") and (learn or not is_fitted):
        raise ValueError(
            f"{name} has no partial_fit, so it cannot learn record by record: give a fitted one, "
            "and set model.learn to false"
        )
    if is_fitted:
        return _front(made, _rows_of_fitted(made, features), label, classes)
    front = _front(made, Encoder(features, scale=scale, categories=categories), label, classes)
    _try(front, {f: 0.0 if kind == "numeric" else "" for f, kind in features.items()})
    return front


class Estimator:
    """What an estimator says, as an array; before it is fitted, nothing: equal shares, or zeros.

    Parameters
    ----------
    estimator
        The estimator.
    method
        How it is asked.
    outputs
        How many numbers it gives for each row.
    classes
        Of a classifier.
    """

    def __init__(
        self, estimator: Any, method: str, outputs: int, classes: Sequence[Label] = ()
    ) -> None:
        self.estimator = estimator
        self._method = method
        self._outputs = outputs
        self._classes = np.array(classes) if classes else None
        self._is_fitted = _is_fitted(estimator)

    def learn(self, row: Any, target: Any) -> None:
        """Learn one row; see :class:`~pipeline.models.fronts.Learner`."""
        if self._classes is not None:
            self.estimator.partial_fit(row, np.array([target]), classes=self._classes)
        elif target is None:
            self.estimator.partial_fit(row)
        else:
            self.estimator.partial_fit(row, np.array([target]))
        self._is_fitted = True

    def outputs(self, rows: Any) -> Floats:
        """Return what it says; see :class:`~pipeline.models.fronts.Learner`."""
        if not self._is_fitted:
            before = 0.0 if self._classes is None else 1.0 / len(self._classes)
            return np.full((len(rows), self._outputs), before)
        given = getattr(self.estimator, self._method)(rows)
        if self._method == "predict_proba":
            return cast(Floats, given)
        if self._classes is not None:
            return cast(Floats, (given[:, None] == self._classes).astype(np.float64))
        if self._method == "score_samples":
            given = -given
        numbers: Floats = np.asarray(given, np.float64).reshape(len(given), self._outputs)
        return numbers


class Values:
    """Observations as a fitted estimator takes them: their values, as they are.

    Parameters
    ----------
    features
        Their order.
    named
        Whether it wants columns by name, in a data frame of pandas.
    """

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
            return np.array(rows, object if _has_text(rows) else np.float64)
        import pandas  # noqa: PLC0415  only for estimators that were fitted with it

        return pandas.DataFrame(rows, columns=self._features)


def _has_text(rows: Sequence[Sequence[object]]) -> bool:
    return any(isinstance(value, str) for row in rows for value in row)


def _front(estimator: Any, rows: Rows, label: str, classes: Sequence[Label] | None) -> Front:
    from sklearn.base import is_classifier, is_outlier_detector, is_regressor  # noqa: PLC0415

    name = type(estimator).__name__
    fits = is_regressor(estimator) if label in {"number", "none"} else is_classifier(estimator)
    if label == "none" and is_outlier_detector(estimator):
        return Detector(name, rows, Estimator(estimator, "score_samples", 1))
    if not fits:
        needed = "a classifier"
        if label == "number":
            needed = "a regressor"
        elif label == "none":
            needed = "an outlier detector, or a regressor that becomes an autoencoder"
        raise ValueError(f"{name} is not {needed}, as label.type = {label!r} needs")
    if label == "none":
        return Autoencoder(name, rows, Estimator(estimator, "predict", rows.width))
    if label == "number":
        return Regressor(name, rows, Estimator(estimator, "predict", 1))
    known = _classes(name, estimator, label, classes)
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
    return Classifier(name, rows, Estimator(estimator, method, len(known), known), known)


def _classes(name: str, estimator: Any, label: str, classes: Sequence[Label] | None) -> list[Label]:
    fitted = getattr(estimator, "classes_", None)
    if fitted is None:
        return classes_of(label, classes)
    own: list[Label] = np.asarray(fitted).tolist()
    if any(type(each) is not KINDS[label] for each in own):
        raise ValueError(f"{name} was fitted to the classes {own}, but label.type is {label!r}")
    return own


def _rows_of_fitted(estimator: Any, features: Mapping[str, str]) -> Rows:
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        expected = getattr(estimator, "n_features_in_", len(features))
        if expected != len(features):
            raise ValueError(
                f"{type(estimator).__name__} was fitted to {expected} features, but there are "
                f"{len(features)}: {', '.join(features)}"
            )
        return Values(list(features), named=False)
    missing = [name for name in names if name not in features]
    if missing:
        raise ValueError(
            f"{type(estimator).__name__} was fitted to the feature {missing[0]!r}, but there are "
            f"only {', '.join(features)}"
        )
    return Values([str(name) for name in names], named=True)


def _try(front: Front, x: Observation) -> None:
    """Let a copy learn and be asked, so that what cannot be done is said at once."""
    try:
        with np.errstate(all="ignore"):
            numbers = _answers(copy.deepcopy(front), x)
    except Exception as error:
        raise ValueError(
            f"{front} cannot learn and be asked record by record: {type(error).__name__}: {error}"
        ) from error
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"{front} gives {numbers} after one record: it cannot learn record by record"
        )


def _answers(model: Any, x: Observation) -> list[float]:
    """Return what a model says after it has learned one observation."""
    if isinstance(model, Classifier):
        model.learn_one(x, model.classes[0])
        return list(model.predict_proba_one(x).values())
    if isinstance(model, Regressor):
        model.learn_one(x, 0.0)
        return [model.predict_one(x)]
    model.learn_one(x)
    return [model.score_one(x)]


def _is_fitted(estimator: Any) -> bool:
    from sklearn.exceptions import NotFittedError  # noqa: PLC0415  not everybody has it
    from sklearn.utils.validation import check_is_fitted  # noqa: PLC0415

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _check_installed() -> None:
    try:
        import sklearn  # noqa: F401, PLC0415
    except ImportError:
        raise ValueError(
            "scikit-learn is not installed: pip install 'fluxplain[sklearn]'"
        ) from None

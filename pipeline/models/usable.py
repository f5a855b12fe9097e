"""Whether a model can be explained: said at once, and not of each record."""

import inspect
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from river import active, base

from pipeline.evaluate import model_kind
from pipeline.evaluate.generic import final_step

SEVERAL = base.MultiLabelClassifier | base.MultiTargetRegressor | base.Clusterer
QUESTIONS = active.base.ActiveLearningClassifier


def check_usable(model: Any, make: Callable[[], Any], *, label: str, learns: bool) -> None:
    """Raise ``ValueError`` if a model cannot be explained.

    Parameters
    ----------
    model
        A new one.
    make
        Returns another new one.
    label
        ``"boolean"``, ``"integer"``, ``"string"``, ``"number"`` or ``"none"``.
    learns
        Whether it is to learn.

    Raises
    ------
    ValueError
        If it cannot be asked, taught or pickled, answers something else than one class, number or
        score, or has random numbers without a seed. The text goes on behind "it is a Model".
    """
    try:
        final: Any = final_step(model)  # a pipeline has every method, whatever its last step has
    except Exception as error:  # as of a pipeline without steps
        raise ValueError(f" that cannot be asked what it is: {error}") from error
    if isinstance(final, SEVERAL | QUESTIONS):
        raise ValueError(
            ", whose answer is not one class, number or score: neither clusters, nor several "
            "labels, nor questions for labels can be explained"
        )
    _check_methods(final, label, learns=learns)
    try:
        drawn = _generators(model)
    except Exception as error:
        raise ValueError(
            f" that cannot be pickled, so it could not be checkpointed: {error}"
        ) from error
    if drawn and drawn != _generators(make()):
        raise ValueError(
            " that draws other random numbers each time it is made, so results could not be "
            "repeated: seed them; a factory that takes a `seed` gets the pipeline's"
        )


def check_kind(model: Any, label: str) -> None:
    """Raise ``ValueError`` if a model is a classifier or regressor, and labels want the other.

    The text goes on behind "it is a".
    """
    kind = model_kind(model)
    fits = {"classifier": label != "number", "regressor": label == "number"}
    if not fits.get(kind, True):
        raise ValueError(
            f"{kind}, but label.type is {label!r}: 'number' is for regressors, the others are for "
            "classifiers"
        )


class _Collector(pickle.Pickler):
    """Takes note of all generators of random numbers that it pickles."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.found: list[bytes] = []

    def persistent_id(self, obj: object) -> None:
        if isinstance(obj, random.Random | np.random.RandomState | np.random.Generator):
            self.found.append(pickle.dumps(obj))


def _generators(model: object) -> list[bytes]:
    collector = _Collector()
    collector.dump(model)
    return collector.found


def _check_methods(final: Any, label: str, *, learns: bool) -> None:
    answers = ["score_one"] if label == "none" else ["predict_one", "predict_proba_one"]
    asked = [name for name in answers if callable(getattr(final, name, None))]
    if not asked:
        detects = callable(getattr(final, "score_one", None))
        hint = "; for an anomaly detector set label.type to 'none'" if detects else ""
        if callable(getattr(final, "partial_fit", None)):
            hint = "; for scikit-learn's model.factory is 'pipeline.models:from_sklearn'"
        raise ValueError(
            f", which has no {' and no '.join(answers)}: it needs {' or '.join(answers)}{hint}"
        )
    _check_takes(final, asked[-1], ["x"], label)
    if not learns:
        return
    if not callable(getattr(final, "learn_one", None)):
        raise ValueError(
            ", which has no learn_one: it needs learn_one, or model.learn = false if it is never "
            "to learn"
        )
    _check_takes(final, "learn_one", ["x"] if label == "none" else ["x", "y"], label)


def _check_takes(final: Any, method: str, names: list[str], label: str) -> None:
    try:
        signature = inspect.signature(getattr(final, method))
    except ValueError:  # built-in functions do not tell
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        raise ValueError(
            f", whose {method} must take ({', '.join(names)}) for label.type = {label!r}: {error}"
        ) from None

"""Checks whether a model can be explained, before the first record."""

import inspect
import io
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
from river import active, base

from fluxplain.errors import UserError
from fluxplain.evaluate import model_kind
from fluxplain.evaluate.generic import final_step
from fluxplain.models.scores import as_asked

SEVERAL = base.MultiLabelClassifier | base.MultiTargetRegressor | base.Clusterer
QUESTIONS = active.base.ActiveLearningClassifier


def checked(model: Any, make: Callable[[], Any], *, label: str, learns: bool) -> Any:
    """Return a new model in its pipeline form; raise ValueError if it cannot be explained.

    The text continues "it is a". The model must predict, learn and pickle, and its output must be
    one class, number or score. `make` returns another new one, which must draw the same random
    numbers. `label` is the label's type.
    """
    try:
        _check_usable(model, make, label=label, learns=learns)
    except UserError:  # of `make`
        raise
    except ValueError as error:
        raise ValueError(f"{type(model).__name__}{error}") from error
    kind = model_kind(model)
    fits = {"classifier": label != "number", "regressor": label == "number"}
    if not fits.get(kind, True):
        raise ValueError(
            f"{kind}, but label.type is {label!r}: 'number' is for regressors, the others are for "
            "classifiers"
        )
    return as_asked(model, label)


def taking_over(model: Any, *, label: str, learns: bool) -> Any:
    """Check a model that replaces another one; raise ValueError if it cannot take over."""
    try:
        # not made again: it contains its random numbers
        return checked(model, lambda: model, label=label, learns=learns)
    except ValueError as error:
        raise ValueError(f"it is a {error}") from error


def _check_usable(model: Any, make: Callable[[], Any], *, label: str, learns: bool) -> None:
    try:
        final: Any = final_step(model)  # a pipeline has all methods, its last step may not
    except Exception as error:  # for example a pipeline without steps
        raise ValueError(f" whose kind cannot be determined: {error}") from error
    if isinstance(final, SEVERAL | QUESTIONS):
        raise ValueError(
            ", whose output is not one class, number or score: clustering, multi-label models and "
            "active learning cannot be explained"
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
            "repeated: set its seed; a factory that takes a `seed` gets the pipeline's"
        )


class _Collector(pickle.Pickler):
    """Collects the random number generators that it pickles."""

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
    asked = [name for name in answers if _has(final, name)]
    if not asked:
        hint = "; for an anomaly detector set label.type to 'none'"
        if _has(final, "partial_fit"):
            hint = "; for scikit-learn's model.factory is 'fluxplain.models:from_sklearn'"
        elif not _has(final, "score_one"):
            hint = ""
        raise ValueError(
            f", which has no {' and no '.join(answers)}: it needs {' or '.join(answers)}{hint}"
        )
    _check_takes(final, asked[-1], ["x"], label)
    if not learns:
        return
    if not _has(final, "learn_one"):
        raise ValueError(
            ", which has no learn_one: it needs learn_one, or model.learn = false if it shall "
            "never learn"
        )
    _check_takes(final, "learn_one", ["x"] if label == "none" else ["x", "y"], label)


def _has(final: Any, method: str) -> bool:
    return callable(getattr(final, method, None))


def _check_takes(final: Any, method: str, names: list[str], label: str) -> None:
    try:
        signature = inspect.signature(getattr(final, method))
    except ValueError:  # built-in functions have none
        return
    try:
        signature.bind(*names)
    except TypeError as error:
        raise ValueError(
            f", whose {method} must take ({', '.join(names)}) for label.type = {label!r}: {error}"
        ) from None

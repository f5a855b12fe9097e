"""What to give instead of something that is no model here."""

import sys
from inspect import isroutine

INTERFACE = "a model needs predict_proba_one or predict_one"


def advice(model: object) -> str:
    """Return why something cannot be evaluated, and what to give instead of it.

    Examples
    --------
    >>> print(advice(lambda x: 2.0 * x["a"]))
    a function is no model: give types.SimpleNamespace(predict_one=function)
    """
    if isinstance(model, type):
        return f"{model.__name__} is a class: give an object of it, such as {model.__name__}()"
    if isroutine(model):
        return "a function is no model: give types.SimpleNamespace(predict_one=function)"
    name = type(model).__name__
    if _is_torch(model):
        return (
            f"{name} is a module of torch, whose inputs are tensors: give an object with "
            "predict_one(x) and, for speed, predict_many(rows), which turns dictionaries (feature "
            "→ value) into a tensor, or "
            "fluxplain.models.from_torch(factory, features={'age': 'numeric'}), which learns"
        )
    if callable(getattr(model, "score_one", None)):
        return (
            f"{name} gives a score: {INTERFACE}, which fluxplain.models.as_asked(model, 'none') "
            "adds; the loss for it is fluxplain.models.minus_score"
        )
    if callable(getattr(model, "predict", None)):
        return (
            f"{name} takes arrays: {INTERFACE}; give an object with predict_many(rows), which "
            "turns dictionaries (feature → value) into an array and calls predict"
        )
    return f"{name} cannot be evaluated: {INTERFACE}"


def _is_torch(model: object) -> bool:
    torch = sys.modules.get("torch")  # else nobody has made a module
    return torch is not None and isinstance(model, torch.nn.Module)

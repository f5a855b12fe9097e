"""Chooses the evaluator of a model."""

from typing import Any, NamedTuple, get_args
from weakref import WeakValueDictionary

from river import compose

from fluxplain.evaluate.batched import BatchEvaluator
from fluxplain.evaluate.encoded import EncodedLinearEvaluator, are_by_feature
from fluxplain.evaluate.ensemble import EnsembleEvaluator
from fluxplain.evaluate.evaluator import Evaluator, Kind
from fluxplain.evaluate.generic import GenericEvaluator, final_step
from fluxplain.evaluate.hoeffding import TreeClassifierEvaluator, TreeRegressorEvaluator
from fluxplain.evaluate.linear import LinearEvaluator, is_linear
from fluxplain.evaluate.mondrian import MondrianEvaluator
from fluxplain.evaluate.naive_bayes import NaiveBayesEvaluator
from fluxplain.evaluate.rows import AnswersRows, RowsEvaluator
from fluxplain.evaluate.scaled import ScaledEvaluator, is_scaler

_evaluators: "WeakValueDictionary[tuple[int, str], Evaluator]" = WeakValueDictionary()
"""Evaluators by model id and kind: explainers of one model share its copied trees. An evaluator
keeps its model alive, so that no other model can have its id."""


class Choice(NamedTuple):
    """An evaluator, its kind, and the displayed reason for it."""

    evaluator: Evaluator
    kind: str
    reason: str


def evaluator_for(model: object, kind: str = "auto") -> Evaluator:
    """Return the evaluator for ``model``.

    ``kind`` is ``"hoeffding"`` (Hoeffding trees and their ensembles), ``"mondrian"`` (aggregated
    Mondrian forests), ``"linear"``, ``"naive-bayes"``, ``"batch"`` (one call for all inputs),
    ``"generic"`` (one call per input), or ``"auto"``: the fastest that fits.
    Raises ``TypeError`` if the model cannot be evaluated that way.

    Examples
    --------
    >>> from river import forest
    >>> type(evaluator_for(forest.ARFClassifier())).__name__
    'TreeClassifierEvaluator'
    """
    key = (id(model), kind)
    evaluator = _evaluators.get(key)
    if evaluator is None:
        evaluator = _evaluators[key] = choose(model, kind).evaluator
    return evaluator


def as_evaluator(model: object, evaluator: Evaluator | str) -> Evaluator:
    """Return the evaluator itself, or that of this kind; see :func:`evaluator_for`."""
    return evaluator_for(model, evaluator) if isinstance(evaluator, str) else evaluator


def choose(model: object, kind: str = "auto") -> Choice:
    """Return the evaluator for ``model``, with the reason; see :func:`evaluator_for`."""
    if kind not in get_args(Kind):
        raise ValueError(f"unknown evaluator {kind!r}: use one of {', '.join(get_args(Kind))}")
    one_by_one = GenericEvaluator(model)
    if kind == "generic":
        return Choice(one_by_one, kind, "one call per input, as configured")
    choice = _faster(model)
    if choice is not None and kind in {"auto", choice.kind}:
        return choice
    name = type(final_step(model)).__name__
    if kind == "auto":
        return Choice(one_by_one, "generic", f"one call per input: no faster way for {name}")
    if kind == "batch":
        return Choice(BatchEvaluator(model), kind, "one call for all inputs, as configured")
    raise TypeError(f"the model, {name}, cannot be evaluated that way")


def _faster(model: object) -> Choice | None:
    """Return the way that is faster than one call per input, if there is one for the model."""
    if (choice := _encoded_linear(model)) is not None:
        return choice
    scalers, final = _split(model)
    if is_linear(final):
        kind, reason = "linear", "all inputs multiplied at once"
        evaluator: Evaluator = LinearEvaluator(final)
    elif BatchEvaluator.covers(final):
        kind, reason = "batch", "one call for all inputs"
        evaluator = BatchEvaluator(final)
    elif NaiveBayesEvaluator.covers(final):
        kind, reason = "naive-bayes", "all likelihoods at once"
        evaluator = NaiveBayesEvaluator(final)
    elif MondrianEvaluator.covers(final):
        kind, reason = "mondrian", "all trees at once"
        evaluator = MondrianEvaluator(final)
    else:
        kind, reason = "hoeffding", "all trees at once, where a replaced feature matters"
        if isinstance(final, AnswersRows):
            evaluator, reason = RowsEvaluator(final), "the model's own arrays, all inputs at once"
        elif TreeClassifierEvaluator.covers(final):
            evaluator = TreeClassifierEvaluator(final)
        elif TreeRegressorEvaluator.covers(final):
            evaluator = TreeRegressorEvaluator(final)
        elif (member := _faster_member(final)) is not None:
            evaluator, kind = EnsembleEvaluator(final, _evaluator_of), member.kind
            reason = f"member by member: {member.reason}"
        else:
            return None
    return Choice(
        ScaledEvaluator(model, scalers, evaluator) if scalers else evaluator, kind, reason
    )


def _encoded_linear(model: Any) -> Choice | None:
    """Return the way for a linear model behind more than scalers."""
    if type(model) is not compose.Pipeline or not model.steps:
        return None
    *transformers, final = model.steps.values()
    if all(map(is_scaler, transformers)) or not (is_linear(final) and are_by_feature(transformers)):
        return None
    return Choice(EncodedLinearEvaluator(model), "linear", "each value encoded once")


def _faster_member(model: Any) -> Choice | None:
    return _faster(model.model) if EnsembleEvaluator.covers(model) else None


def _evaluator_of(member: object) -> Evaluator:
    return choose(member).evaluator


def _split(model: Any) -> tuple[list[Any], Any]:
    """Return a pipeline's scalers and its model; no scalers if it cannot be split."""
    if type(model) is not compose.Pipeline:
        return [], model
    *scalers, final = model.steps.values()
    return (scalers, final) if all(map(is_scaler, scalers)) else ([], model)

"""Chooses the evaluator of a model."""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args
from weakref import WeakValueDictionary

from river import compose

from fluxplain.evaluate.batched import BatchEvaluator
from fluxplain.evaluate.encoded import EncodedLinearEvaluator, are_by_feature
from fluxplain.evaluate.ensemble import EnsembleEvaluator
from fluxplain.evaluate.estimators import EstimatorEvaluator
from fluxplain.evaluate.evaluator import Evaluator, Kind
from fluxplain.evaluate.generic import GenericEvaluator, final_step
from fluxplain.evaluate.hoeffding import TreeClassifierEvaluator, TreeRegressorEvaluator
from fluxplain.evaluate.linear import LinearEvaluator, is_linear
from fluxplain.evaluate.mondrian import MondrianEvaluator
from fluxplain.evaluate.naive_bayes import NaiveBayesEvaluator
from fluxplain.evaluate.one_vs_rest import OneVsRestEvaluator
from fluxplain.evaluate.rows import AnswersRows, RowsEvaluator
from fluxplain.evaluate.scaled import ScaledEvaluator, is_scaler
from fluxplain.evaluate.softmax import SoftmaxEvaluator
from fluxplain.evaluate.wrapped import WrappedEvaluator, without_wrapper

_evaluators: "WeakValueDictionary[tuple[int, str], Evaluator]" = WeakValueDictionary()
"""Evaluators by model id and kind: explainers of one model share its copied trees. An evaluator
keeps its model alive, so that no other model can have its id."""


class Choice(NamedTuple):
    """An evaluator, its kind, and the displayed reason for it."""

    evaluator: Evaluator
    kind: str
    reason: str


class _Way(NamedTuple):
    """A way to evaluate models on all inputs at once."""

    covers: Callable[[Any], bool]
    kind: str
    reason: str
    evaluator: Callable[[Any], Evaluator]

    def choice(self, model: object) -> Choice:
        return Choice(self.evaluator(model), self.kind, self.reason)


def _answers_rows(model: object) -> bool:
    return isinstance(model, AnswersRows)


_MULTIPLIED = "all inputs multiplied at once"
_TREES = "all trees at once, where a replaced feature matters"

_WAYS = (
    _Way(is_linear, "linear", _MULTIPLIED, LinearEvaluator),
    _Way(SoftmaxEvaluator.covers, "linear", _MULTIPLIED, SoftmaxEvaluator),
    _Way(BatchEvaluator.covers, "batch", "one call for all inputs", BatchEvaluator),
    _Way(NaiveBayesEvaluator.covers, "naive-bayes", "all likelihoods at once", NaiveBayesEvaluator),
    _Way(MondrianEvaluator.covers, "mondrian", "all trees at once", MondrianEvaluator),
    _Way(_answers_rows, "hoeffding", "the model's own arrays, all inputs at once", RowsEvaluator),
    _Way(TreeClassifierEvaluator.covers, "hoeffding", _TREES, TreeClassifierEvaluator),
    _Way(TreeRegressorEvaluator.covers, "hoeffding", _TREES, TreeRegressorEvaluator),
)


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
    if EstimatorEvaluator.covers(model):
        if kind not in {"auto", "batch"}:
            raise TypeError(_cannot(model))
        return Choice(EstimatorEvaluator(model), "batch", "one data frame for all inputs")
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
    raise TypeError(_cannot(final_step(model)))


def _cannot(final: object) -> str:
    return f"the model, {type(final).__name__}, cannot be evaluated that way"


def _faster(model: object) -> Choice | None:
    """Return the way that is faster than one call per input, if there is one for the model."""
    if (found := without_wrapper(model)) is not None:
        wrapper, inner = found
        choice = _faster(inner)
        return choice and choice._replace(
            evaluator=WrappedEvaluator(model, wrapper, choice.evaluator)
        )
    if (choice := _encoded_linear(model)) is not None:
        return choice
    scalers, final = _split(model)
    choice = next((way.choice(final) for way in _WAYS if way.covers(final)), None)
    if choice is None and (member := _faster_member(final)) is not None:
        is_ensemble = EnsembleEvaluator.covers(final)
        evaluator = EnsembleEvaluator if is_ensemble else OneVsRestEvaluator
        reason = f"{'member by member' if is_ensemble else 'class by class'}: {member.reason}"
        choice = Choice(evaluator(final, _evaluator_of), member.kind, reason)
    if choice is None or not scalers:
        return choice
    return choice._replace(evaluator=ScaledEvaluator(model, scalers, choice.evaluator))


def _encoded_linear(model: Any) -> Choice | None:
    """Return the way for a linear model behind more than scalers."""
    if type(model) is not compose.Pipeline or not model.steps:
        return None
    *transformers, final = model.steps.values()
    if all(map(is_scaler, transformers)) or not (is_linear(final) and are_by_feature(transformers)):
        return None
    return Choice(EncodedLinearEvaluator(model), "linear", "each value encoded once")


def _faster_member(model: Any) -> Choice | None:
    if OneVsRestEvaluator.covers(model):
        return _faster(model.classifier)
    return _faster(model.model) if EnsembleEvaluator.covers(model) else None


def _evaluator_of(member: object) -> Evaluator:
    return choose(member).evaluator


def _split(model: Any) -> tuple[list[Any], Any]:
    """Return a pipeline's scalers and its model; no scalers if it cannot be split."""
    if type(model) is not compose.Pipeline:
        return [], model
    *scalers, final = model.steps.values()
    return (scalers, final) if all(map(is_scaler, scalers)) else ([], model)

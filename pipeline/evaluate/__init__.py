"""Ways to ask a model for its outputs on perturbed inputs.

An evaluator answers all perturbed inputs of one observation in one call and gives the same
numbers as asking the model one by one.
"""

from pipeline.evaluate.base import Evaluator, Label, NoOutputError, Observation, Output, Value
from pipeline.evaluate.generic import GenericEvaluator, model_kind

__all__ = [
    "Evaluator",
    "GenericEvaluator",
    "Label",
    "NoOutputError",
    "Observation",
    "Output",
    "Value",
    "evaluator_for",
    "model_kind",
]


def evaluator_for(model: object) -> Evaluator:
    """Return the evaluator for ``model``.

    Raises
    ------
    TypeError
        If the model has neither ``predict_proba_one`` nor ``predict_one``.
    """
    return GenericEvaluator(model)

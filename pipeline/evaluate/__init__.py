"""Evaluators: a model's outputs on perturbed inputs.

An evaluator takes all perturbed inputs of one observation in one call, and gives the same numbers
as evaluating the model one by one.
"""

from typing import TYPE_CHECKING

from fluxplain.evaluate.evaluator import (
    Evaluator,
    Kind,
    Label,
    NoOutputError,
    Observation,
    Output,
    Value,
)
from fluxplain.loading.lazy import lazy

if TYPE_CHECKING:
    from fluxplain.evaluate.choice import Choice, as_evaluator, choose, evaluator_for
    from fluxplain.evaluate.encoding import Encoding, Inputs, Observed
    from fluxplain.evaluate.generic import GenericEvaluator, model_kind
    from fluxplain.evaluate.observations import as_observation
    from fluxplain.evaluate.table import Table
else:
    __getattr__, __dir__ = lazy(
        __name__,
        choice=["Choice", "as_evaluator", "choose", "evaluator_for"],
        encoding=["Encoding", "Inputs", "Observed"],
        generic=["GenericEvaluator", "model_kind"],
        observations=["as_observation"],
        table=["Table"],
    )

__all__ = [
    "Choice",
    "Encoding",
    "Evaluator",
    "GenericEvaluator",
    "Inputs",
    "Kind",
    "Label",
    "NoOutputError",
    "Observation",
    "Observed",
    "Output",
    "Table",
    "Value",
    "as_evaluator",
    "as_observation",
    "choose",
    "evaluator_for",
    "model_kind",
]

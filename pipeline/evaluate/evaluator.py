"""The interface of an evaluator, and the types that pass through it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from fluxplain.evaluate.encoding import Inputs
    from fluxplain.evaluate.table import Table

Value = bool | int | float | str
"""The value of one feature."""

Observation = Mapping[str, Value]
"""One observation: feature → value."""

Label = bool | int | str
"""A class. Regression targets are ``float``."""

Output = float | dict[Label, float]
"""A model's output on one input: a number (regression), or class → probability.

The probabilities may be empty or lack a class: River's models know only classes that they have
seen.
"""

Kind = Literal["auto", "hoeffding", "mondrian", "linear", "naive-bayes", "batch", "generic"]
"""Kinds of evaluators; ``"auto"`` takes the first that fits the model."""


class NoOutputError(ValueError):
    """The model has no output yet: it returned None, as some do before they have learned."""


class Evaluator(Protocol):
    """Evaluates a model on all perturbed inputs of one observation in one call."""

    def __call__(self, inputs: "Inputs") -> "Table":
        """Return the outputs, one row for each input, in order.

        Raises ``NoOutputError`` if the model returns None, and ``ValueError`` if an output is not
        finite.
        """
        ...

"""The interface of an evaluator, and the types that pass through it."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

Value = bool | int | float | str
"""The value of one feature."""

Observation = Mapping[str, Value]
"""One observation: feature → value."""

Label = bool | int | str
"""A class. Regression targets are ``float``."""

Output = float | dict[Label, float]
"""What a model says of one input: a number (regression), or class → probability.

The probabilities may be empty or lack a class: River's models know only classes that they have
seen.
"""


Kind = Literal["auto", "hoeffding", "linear", "batch", "generic"]
"""How a model may be asked; ``"auto"`` takes the first that fits."""


class NoOutputError(ValueError):
    """The model has nothing to say yet: it gave None, as some do before they have learned."""


class Evaluator(Protocol):
    """Answers all perturbed inputs of one observation in one call."""

    def __call__(
        self, x: Observation, replacements: Sequence[Mapping[str, Value]]
    ) -> Sequence[Output]:
        """Return one output per replacement, in order.

        Parameters
        ----------
        x
            The observation.
        replacements
            For each input to evaluate, the features that differ from ``x`` and their values.
            An empty mapping asks for the output on ``x`` itself.

        Raises
        ------
        NoOutputError
            If the model gives None.
        ValueError
            If it gives an output that is not finite.
        """
        ...

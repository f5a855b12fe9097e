"""Outputs as an array, for models and explanations of numbers."""

from typing import NamedTuple, Protocol, cast

from pipeline.evaluate.base import Evaluator, Label, Observation, Output
from pipeline.evaluate.inputs import Floats


class Table(NamedTuple):
    """What a model says of several inputs.

    Attributes
    ----------
    labels
        The classes that it knows, in its order; ``(None,)`` for the number of a regressor.
    numbers
        Probabilities or numbers, all finite; shape (inputs, labels).
    """

    labels: tuple[Label | None, ...]
    numbers: Floats

    def outputs(self) -> list[Output]:
        """Return the outputs as :class:`Evaluator` gives them.

        Examples
        --------
        >>> import numpy as np
        >>> Table(("no", "yes"), np.array([[0.25, 0.75]])).outputs()
        [{'no': 0.25, 'yes': 0.75}]
        >>> Table((None,), np.array([[1.5]])).outputs()
        [1.5]
        """
        if self.labels == (None,):
            return self.numbers[:, 0].tolist()  # type: ignore[no-any-return]
        rows: list[list[float]] = self.numbers.tolist()
        return [dict(zip(cast(tuple[Label, ...], self.labels), row, strict=True)) for row in rows]


class TableEvaluator(Evaluator, Protocol):
    """An evaluator that also takes and returns arrays, which costs less.

    It says the same as when it is called, bit for bit.
    """

    def evaluate_rows(self, x: Observation, rows: Floats) -> Table | None:
        """Return what the model says of whole inputs; None if it must be called instead.

        Parameters
        ----------
        x
            The observation; all of its values are numbers.
        rows
            Shape (inputs, features): in the order of ``x``, with what is replaced.
        """
        ...

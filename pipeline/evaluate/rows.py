"""The evaluator of models that answer about encoded inputs themselves."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from fluxplain.evaluate.encoding import NUMBERS, Floats, Inputs
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Table


@runtime_checkable
class AnswersRows(Protocol):
    """The interface of such models; those of :mod:`fluxplain.forest` have it."""

    def answer_rows(
        self, features: tuple[str, ...], own: Floats, rows: Floats
    ) -> tuple[list[Any], Floats] | None:
        """Return the classes, and their probabilities on changed inputs of one observation.

        ``own`` are the observation's numbers, shape (features,), ``rows`` those of the inputs,
        shape (inputs, features), both with the codes of :meth:`code`. Returns None where the model
        must be asked input by input.
        """
        ...

    def code(self, feature: str, value: Any) -> float:
        """Return the number of a value; -1 for a category that was never learned.

        NaN if the value must be a number and is none.
        """
        ...


class RowsEvaluator(FastEvaluator):
    """Evaluates a model that :class:`AnswersRows` on all inputs at once, without a copy of it."""

    def _table(self, inputs: Inputs) -> Table | None:
        observed, rows = inputs
        own: Floats | None = observed.numbers
        if observed.encoding.mark is not NUMBERS:
            own, rows = self._translated(inputs)
        answers = None if own is None else self.model.answer_rows(observed.features, own, rows)
        if answers is None:
            return None
        labels, numbers = answers
        return Table(tuple(map(plain_label, labels)), numbers)

    def _translated(self, inputs: Inputs) -> tuple[Floats | None, Floats]:
        """Return the observation's numbers and the rows, with the model's codes.

        The former are None if a value of a numeric feature is no number.
        """
        observed, rows = inputs
        translated = np.vstack([observed.numbers, rows])
        for column, feature in enumerate(observed.features):
            if observed.encoding.is_categorical(feature):
                codes = translated[:, column].astype(np.intp)
                counts = np.bincount(codes)  # faster than sorting them
                decode, given = observed.encoding.decoder(feature), np.empty(len(counts))
                for code in counts.nonzero()[0].tolist():
                    given[code] = self.model.code(feature, decode(code))
                translated[:, column] = given[codes]
        if np.isnan(translated).any():
            return None, rows
        return translated[0], translated[1:]

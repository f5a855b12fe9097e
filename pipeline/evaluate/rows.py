"""The evaluator of models that answer about encoded inputs themselves."""

from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

import numpy as np

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import NUMBERS, Floats, Inputs, Places
from fluxplain.evaluate.fast import CopyingEvaluator
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

    def attribute_rows(
        self, features: tuple[str, ...], own: Floats, rows: Floats, players: Places
    ) -> tuple[list[Any], Floats, Floats] | None:
        """Return the classes, the mean answer, and interventional Shapley values.

        ``own`` and the background ``rows`` are as for :meth:`answer_rows`; ``players`` has of each
        feature its player, -1 if it keeps the observation's value. The answer's mean over the rows,
        shape (classes,), is that on inputs whose players all have a row's values. The values are
        means over the rows, shape (players, classes). Returns None where they would not be exact.
        """
        ...

    def code(self, feature: str, value: Any) -> float:
        """Return the number of a value; -1 for a category that was never learned.

        NaN if the value must be a number and is none.
        """
        ...

    @property
    def categorical(self) -> Collection[Any]:
        """The features that the model has learned as categorical, whatever their values are."""
        ...


class RowsEvaluator(CopyingEvaluator):
    """Evaluates a model that :class:`AnswersRows` on all inputs at once, without a copy of it.

    It remembers the model's codes of categories, by their codes here.
    """

    def _forget(self) -> None:
        self._of: tuple[object, tuple[str, ...], int] = (None, (), 0)
        self._columns: Places = np.zeros(0, np.intp)  # those of categories
        self._numbered: list[int] = []  # those of numbers that are categories for the model
        self._codes: Floats = np.zeros((0, 0))  # shape (columns of categories, codes)

    def _table(self, inputs: Inputs) -> Table | None:
        own, rows = self._coded(inputs)
        features = inputs.observed.features
        answers = None if own is None else self.model.answer_rows(features, own, rows)
        if answers is None:
            return None
        labels, numbers = answers
        return Table(tuple(map(plain_label, labels)), numbers)

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        own, rows = self._coded(inputs)
        features = inputs.observed.features
        found = None if own is None else self.model.attribute_rows(features, own, rows, players)
        if found is None:
            return None
        labels, base, contributions = found
        return Attribution(tuple(map(plain_label, labels)), base, contributions)

    def _coded(self, inputs: Inputs) -> tuple[Floats | None, Floats]:
        """Return the observation's numbers and the rows, as the model takes them.

        The former are None if a value of a numeric feature is no number.
        """
        observed, rows = inputs
        if observed.encoding.mark is not NUMBERS or self.model.categorical:
            return self._translated(inputs)
        return observed.numbers, rows

    def _translated(self, inputs: Inputs) -> tuple[Floats | None, Floats]:
        """Return the observation's numbers and the rows, with the model's codes."""
        observed, rows = inputs
        of = observed.encoding.mark, observed.features, len(self.model.categorical)
        if self._of[0] is not of[0] or self._of[1:] != of[1:]:
            self._of = of
            encoded = [*map(observed.encoding.is_categorical, observed.features)]
            self._columns = np.flatnonzero(encoded)
            self._codes = np.zeros((len(self._columns), 0))
            self._numbered = [
                place
                for place, feature in enumerate(observed.features)
                if feature in self.model.categorical and not encoded[place]
            ]
        translated = np.empty((1 + len(rows), len(observed.features)))
        given = observed.numbers, rows, self._columns
        if not translate(*given, self._codes, translated):
            self._ask(inputs)
            translate(*given, self._codes, translated)
            if np.isnan(translated).any():
                return None, rows
        for column in self._numbered:
            values = translated[:, column].tolist()
            feature = observed.features[column]
            codes = {value: self.model.code(feature, value) for value in {*values}}
            translated[:, column] = [codes[value] for value in values]
        return translated[0], translated[1:]

    def _ask(self, inputs: Inputs) -> None:
        """Ask for the model's codes that are new, or that it did not know."""
        (_, features, numbers, encoding), rows = inputs
        for place, column in enumerate(self._columns.tolist()):
            codes = {int(code) for code in (numbers[column], *rows[:, column].tolist())}
            missing = max(codes) + 1 - self._codes.shape[1]
            if missing > 0:
                grown = (0, 0), (0, 2 * missing)
                self._codes = np.pad(self._codes, grown, constant_values=np.nan)
            decode = encoding.decoder(features[column])
            for code in codes:
                if not self._codes[place, code] >= 0.0:
                    self._codes[place, code] = self.model.code(features[column], decode(code))


@compiled
def translate(
    numbers: Floats, rows: Floats, columns: Places, codes: Floats, translated: Floats
) -> bool:
    """Fill in an observation and rows with the model's codes; return whether all are known.

    ``columns`` have categories, whose codes are those of ``codes``, shape (columns, categories).
    Numbers are not known if they are NaN.
    """
    known = True
    for row in range(translated.shape[0]):
        for column in range(translated.shape[1]):
            number = rows[row - 1, column] if row > 0 else numbers[column]
            translated[row, column] = number
            known &= number == number  # noqa: PLR0124  false for NaN
        for place in range(len(columns)):
            code = int(translated[row, columns[place]])
            number = codes[place, code] if 0 <= code < codes.shape[1] else np.nan
            translated[row, columns[place]] = number
            known &= number >= 0.0
    return bool(known)

"""Base of the evaluators that compute the outputs on all inputs at once."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from fluxplain.evaluate.attribution import Attribution
from fluxplain.evaluate.compiled import Direct, compiled
from fluxplain.evaluate.encoding import Floats, Inputs, Places
from fluxplain.evaluate.generic import GenericEvaluator
from fluxplain.evaluate.table import Table


class FastEvaluator(ABC):
    """Computes the outputs, and asks the model itself about what it cannot compute.

    It asks about rows whose outputs are not finite, and about all of them if computing fails or
    gives nothing: then the model raises its own error, or has its own answer.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._one_by_one = GenericEvaluator(model)

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        table = None
        if len(inputs.rows):
            try:
                table = self._table(inputs)
            except MemoryError:
                raise
            except Exception:
                self._forget()
        return self._one_by_one(inputs) if table is None else self._completed(table, inputs)

    def attributed(self, inputs: Inputs, players: Places) -> Attribution | None:
        """Return the Shapley values of the output on the observation, from the model's structure.

        ``inputs.rows`` are the background, shape (inputs, columns), and ``players`` the player of
        each column, counted from 0. A column of no player is -1, and has the observation's value in
        each row. Returns None where the values are not exact, or not finite.
        """
        try:
            found = self._attributed(inputs, players)
        except MemoryError:
            raise
        except Exception:
            self._forget()
            return None
        if found is None or not _are_finite(found.base[None]):
            return None
        return found if _are_finite(found.contributions) else None

    def _attributed(self, inputs: Inputs, players: Places) -> Attribution | None:  # noqa: ARG002
        """Return Shapley values; see :meth:`attributed`. Raises anything if it cannot compute."""
        return None

    @abstractmethod
    def _table(self, inputs: Inputs) -> Table | None:
        """Return the outputs, not finite where the model must be asked; None if it must be always.

        Raises anything where it cannot compute.
        """

    def _forget(self) -> None:  # noqa: B027  few evaluators have any
        """Forget all copies of the model: one may be incomplete."""

    def _completed(self, table: Table, inputs: Inputs) -> Table:
        if _are_finite(table.numbers):
            return table
        lost = np.flatnonzero(~np.isfinite(table.numbers).all(axis=1))
        asked = self._one_by_one(inputs.some(lost))
        if asked.labels != table.labels or not asked.is_regular:
            return self._one_by_one(inputs)
        numbers = table.numbers.copy()
        numbers[lost] = asked.numbers
        return Table(table.labels, numbers)


class CopyingEvaluator(FastEvaluator):
    """Keeps copies of the model, which are not pickled: they are made again when needed."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"])  # type: ignore[misc]


@compiled
def _are_contiguous_finite(numbers: Floats) -> bool:
    for row in range(numbers.shape[0]):
        for column in range(numbers.shape[1]):
            if not math.isfinite(numbers[row, column]):
                return False
    return True


_ARE_FINITE = Direct(_are_contiguous_finite)


def _are_finite(numbers: Floats) -> bool:
    """Return whether all numbers are finite, in less time than NumPy for a few."""
    # models may return any layout
    return bool(_ARE_FINITE.call(np.ascontiguousarray(numbers, np.float64)))

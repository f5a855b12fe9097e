"""The evaluator for ensembles whose members have a fast evaluator each."""

from collections.abc import Callable
from typing import Any

import numpy as np
from river import ensemble

from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.generic import GenericEvaluator
from fluxplain.evaluate.hoeffding.combinations import COMBINATIONS
from fluxplain.evaluate.hoeffding.votes import VOTES
from fluxplain.evaluate.table import Table, aligned


class EnsembleEvaluator:
    """Evaluates each member on all inputs, and combines the outputs as River does.

    ``model`` is one for which :meth:`covers` is true, ``evaluator_of`` makes a member's evaluator.
    """

    def __init__(self, model: Any, evaluator_of: Callable[[Any], Evaluator]) -> None:
        self.model = model
        self._one_by_one = GenericEvaluator(model)
        self._evaluator_of = evaluator_of
        self._evaluators: dict[int, Evaluator] = {}  # by a member's id, which they keep alive

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self._evaluator_of)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports an ensemble, whatever its members are."""
        return type(model) in _ENSEMBLES

    def __call__(self, inputs: Inputs) -> Table:
        """Return the outputs; see :class:`Evaluator`."""
        members = list(self.model)
        known = self._evaluators
        self._evaluators = {
            id(each): known.get(id(each)) or self._evaluator_of(each) for each in members
        }
        tables = [evaluate(inputs) for evaluate in self._evaluators.values()]
        if type(self.model) in COMBINATIONS:
            return self._mean(np.hstack([table.numbers for table in tables]))
        if any(table.n_first is not None for table in tables):
            return self._one_by_one(inputs)  # the order of the classes is not the same everywhere
        return self._voted(tables)

    def _mean(self, numbers: Floats) -> Table:
        combined = COMBINATIONS[type(self.model)].combine(self.model, numbers)
        return Table((None,), np.array(combined, np.float64)[:, None])

    def _voted(self, tables: list[Table]) -> Table:
        vote = VOTES[type(self.model)]
        weighted = zip(tables, vote.weights(self.model), strict=True)
        voting = [(table, weight) for table, weight in weighted if weight]
        labels = tuple(dict.fromkeys(label for table, _ in voting for label in table.labels))
        votes = np.zeros((len(tables[0].numbers), len(labels)))
        for table, weight in voting:
            votes += aligned(table, labels) * weight
        return Table(labels, vote.shares(votes))


_ENSEMBLES = {
    ensemble.ADWINBaggingClassifier,
    ensemble.ADWINBoostingClassifier,
    ensemble.AdaBoostClassifier,
    ensemble.BOLEClassifier,
    ensemble.BaggingClassifier,
    ensemble.BaggingRegressor,
    ensemble.LeveragingBaggingClassifier,
}

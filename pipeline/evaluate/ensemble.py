"""The evaluator for ensembles whose members have a fast evaluator each."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import ensemble
from river.ensemble.streaming_random_patches import BaseSRPEstimator

from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.hoeffding.combinations import COMBINATIONS
from fluxplain.evaluate.hoeffding.votes import VOTES
from fluxplain.evaluate.table import Table, aligned, in_order


class EnsembleEvaluator(FastEvaluator):
    """Evaluates each member on all inputs, and combines the outputs as River does.

    ``model`` is one for which :meth:`covers` is true, ``evaluator_of`` makes a member's evaluator.
    """

    def __init__(self, model: Any, evaluator_of: Callable[[Any], Evaluator]) -> None:
        super().__init__(model)
        self._evaluator_of = evaluator_of
        self._evaluators: dict[int, Evaluator] = {}  # by a member's id, which they keep alive

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self._evaluator_of)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports an ensemble, whatever its members are."""
        return type(model) in _ENSEMBLES

    def _table(self, inputs: Inputs) -> Table | None:
        asked = list(_asked(self.model, inputs))
        if not asked:
            return None
        known = self._evaluators
        self._evaluators = {
            id(each): known.get(id(each)) or self._evaluator_of(each) for each, _ in asked
        }
        tables = [self._evaluators[id(each)](part) for each, part in asked]
        if type(self.model) in COMBINATIONS:
            return self._mean(np.hstack([table.numbers for table in tables]))
        if not all(table.is_regular for table in tables):
            return None  # the order of the classes is not the same everywhere
        return self._voted(tables)

    def _mean(self, numbers: Floats) -> Table:
        combined = COMBINATIONS[type(self.model)].combine(self.model, numbers)
        return Table((None,), np.array(combined, np.float64)[:, None])

    def _voted(self, tables: list[Table]) -> Table:
        vote = VOTES[type(self.model)]
        weighted = zip(tables, vote.weights(self.model), strict=True)
        voting = [(table, weight) for table, weight in weighted if weight is not None]
        labels = tuple(dict.fromkeys(label for table, _ in voting for label in table.labels))
        # sums do not depend on an order that some of River's models take from a set
        ordered = tuple(in_order(labels))
        votes = np.zeros((len(tables[0].numbers), len(ordered)))
        for table, weight in voting:
            votes += aligned(table, ordered) * weight
        return Table(labels, aligned(Table(ordered, vote.shares(votes)), labels))


def _asked(model: Any, inputs: Inputs) -> Iterator[tuple[Any, Inputs]]:
    """Yield each member, and the inputs as it gets them."""
    for member in model:
        if isinstance(member, BaseSRPEstimator):
            given = inputs if member.features is None else inputs.of(member.features)
            yield member.model, given
        else:
            yield member, inputs


_ENSEMBLES = {
    ensemble.ADWINBaggingClassifier,
    ensemble.ADWINBoostingClassifier,
    ensemble.AdaBoostClassifier,
    ensemble.BOLEClassifier,
    ensemble.BaggingClassifier,
    ensemble.BaggingRegressor,
    ensemble.LeveragingBaggingClassifier,
    ensemble.SRPClassifier,
    ensemble.SRPRegressor,
}

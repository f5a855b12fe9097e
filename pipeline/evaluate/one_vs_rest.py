"""The evaluator for one classifier of each class."""

from collections.abc import Callable
from typing import Any

import numpy as np
from river import multiclass

from fluxplain.evaluate.encoding import Inputs
from fluxplain.evaluate.evaluator import Evaluator
from fluxplain.evaluate.fast import FastEvaluator
from fluxplain.evaluate.generic import plain_label
from fluxplain.evaluate.table import Table


class OneVsRestEvaluator(FastEvaluator):
    """Asks the evaluator of each class, made by ``evaluator_of``, and divides as River does."""

    def __init__(self, model: Any, evaluator_of: Callable[[Any], Evaluator]) -> None:
        super().__init__(model)
        self._evaluator_of = evaluator_of
        self._evaluators: dict[Any, Evaluator] = {}  # by class

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.model, self._evaluator_of)

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator supports a model, whatever its classifiers are."""
        return type(model) is multiclass.OneVsRestClassifier

    def _table(self, inputs: Inputs) -> Table | None:
        shares = []
        for label, model in self.model.classifiers.items():
            evaluate = self._evaluators.get(label)
            if evaluate is None:
                evaluate = self._evaluators[label] = self._evaluator_of(model)
            labels, numbers, _ = evaluate(inputs)
            shares.append(numbers[:, labels.index(True)])
        if not shares:
            return None
        total = np.zeros(len(inputs.rows))
        for share in shares:
            total += share
        equal, total[total == 0.0] = total == 0.0, 1.0
        numbers = np.stack(shares, axis=1) / total[:, None]
        numbers[equal] = 1.0 / len(shares)
        return Table(tuple(map(plain_label, self.model.classifiers)), numbers)

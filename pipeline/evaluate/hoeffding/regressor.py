"""The evaluator for regression trees, and for forests and bagging of them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import ensemble, forest, tree

from pipeline.evaluate.base import Observation, Output, Value
from pipeline.evaluate.hoeffding.regression import RegressionLeaves
from pipeline.evaluate.hoeffding.trees import TreeEvaluator, answers, covers
from pipeline.evaluate.inputs import Floats, Inputs, NoNumberError

_TREES = (tree.HoeffdingTreeRegressor, tree.HoeffdingAdaptiveTreeRegressor)


def _first(_: Any, given: Floats) -> Sequence[float]:
    return given[:, 0].tolist()  # type: ignore[no-any-return]


def _mean(_: Any, given: Floats) -> Sequence[float]:
    # River's mean is exact
    return [math.fsum(row) / len(row) for row in given.tolist()]


def _forest_mean(model: Any, given: Floats) -> Sequence[float]:
    """Return the mean, weighted against each tree's error, as Adaptive Random Forests do."""
    median = model.aggregation_method == model._MEDIAN
    if not model.disable_weighted_vote and not median:
        errors = np.array([metric.get() for metric in model._metrics])
        total = sum(errors.tolist())
        if total != 0:
            weights = total - errors
            weights /= weights.sum()
            given = given * weights
    combined = np.median(given, axis=1) if median else given.mean(axis=1)
    return combined.tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Combination:
    """How a model combines its trees.

    Attributes
    ----------
    trees
        Model → its trees.
    combine
        Model and answers of shape (rows, trees) → one number a row.
    """

    trees: Callable[[Any], Sequence[Any]]
    combine: Callable[[Any, Floats], Sequence[float]]


_TREE = Combination(lambda model: [model], _first)

COMBINATIONS: dict[type, Combination] = {
    tree.HoeffdingTreeRegressor: _TREE,
    tree.HoeffdingAdaptiveTreeRegressor: _TREE,
    forest.ARFRegressor: Combination(list, _forest_mean),
    ensemble.BaggingRegressor: Combination(list, _mean),
}
"""Class of River → how it combines its trees, which must be single trees."""


class TreeRegressorEvaluator(TreeEvaluator):
    """Asks all trees of a regressor about all inputs at once.

    Parameters
    ----------
    model
        A River regressor for which :meth:`covers` is true.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._combination = COMBINATIONS[type(model)]
        self._leaves = RegressionLeaves()

    @staticmethod
    def covers(model: object) -> bool:
        """Return whether this evaluator knows the model's class, and those of its trees."""
        return covers(model, COMBINATIONS, _TREES)

    def __call__(self, x: Observation, replacements: Sequence[Mapping[str, Value]]) -> list[Output]:
        """Return one output per replacement; see :class:`Evaluator`."""
        trees = self._combination.trees(self.model)
        if not trees:
            return self._one_by_one(x, replacements)
        try:
            with np.errstate(over="raise", divide="raise", invalid="ignore", under="ignore"):
                given = answers(trees, self._leaves, Inputs(x, replacements))[:, :-1, 0]
                outputs = self._combination.combine(self.model, np.ascontiguousarray(given.T))
        except (NoNumberError, FloatingPointError):
            # River raises for some of these inputs, and answers others
            return self._one_by_one(x, replacements)
        if not all(map(math.isfinite, outputs)):
            return self._one_by_one(x, replacements)
        return list(outputs)

"""The trees of a regressor, and how it combines their predictions.

Each function follows the ``predict_one`` of one class of River, operation by operation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import ensemble, forest, tree

from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.hoeffding.votes import patches


def _first(_: Any, given: Floats) -> Sequence[float]:
    return given[:, 0].tolist()  # type: ignore[no-any-return]


def _mean(_: Any, given: Floats) -> Sequence[float]:
    return list(map(_exact_mean, given.tolist()))


def _exact_mean(numbers: list[float]) -> float:
    """Return the mean, which is exact in River; NaN if the sum is too large."""
    try:
        return math.fsum(numbers) / len(numbers)
    except (OverflowError, ValueError):
        return math.nan


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


def _patches_mean(model: Any, given: Floats) -> Sequence[float]:
    """Return the mean, weighted by each member's metric, or the median, of random patches."""
    if model.aggregation_method == model._MEDIAN:
        return np.median(given, axis=1).tolist()  # type: ignore[no-any-return]
    weights = np.ones(given.shape[1])
    if not model.disable_weighted_vote:
        weights = np.array([max(member.metric.get(), 0.0) for member in model.data])
        if not model.metric.bigger_is_better:
            weights = -(weights - max(weights))
        if sum(weights) == 0:
            return [0.0] * len(given)
    return np.average(given, axis=1, weights=weights).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class Combination:
    """How a model combines its trees.

    Attributes
    ----------
    trees
        Model → its trees.
    combine
        Model and predictions of shape (rows, trees) → one number per row.
    """

    trees: Callable[[Any], Sequence[Any]]
    combine: Callable[[Any, Floats], Sequence[float]]


_TREE = Combination(lambda model: [model], _first)

COMBINATIONS: dict[type, Combination] = {
    tree.HoeffdingTreeRegressor: _TREE,
    tree.HoeffdingAdaptiveTreeRegressor: _TREE,
    forest.ARFRegressor: Combination(list, _forest_mean),
    ensemble.BaggingRegressor: Combination(list, _mean),
    ensemble.SRPRegressor: Combination(patches, _patches_mean),
}
"""Class of River → how it combines its trees, which must be single trees."""

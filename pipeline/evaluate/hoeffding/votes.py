"""The trees of a classifier, and how it combines their predictions.

Each function follows the ``predict_proba_one`` of one class of River, operation by operation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from river import ensemble, forest, tree

from fluxplain.evaluate.encoding import Floats

Shares = Callable[[Floats], Floats]
"""Sums of votes, shape (rows, labels) → probabilities."""


def _as_they_are(votes: Floats) -> Floats:
    return votes


def _divided(votes: Floats) -> Floats:
    total = votes.sum(axis=1, keepdims=True)
    return votes / np.where(total > 0.0, total, 1.0)


def _scaled(votes: Floats) -> Floats:
    total = votes.sum(axis=1, keepdims=True)
    return votes * (1.0 / np.where(total == 0.0, 1.0, total))


def _itself(model: Any) -> Sequence[Any]:
    return [model]


def patches(model: Any) -> Sequence[Any]:
    """Return the members of random patches: a tree ignores features that it has never seen."""
    return [member.model for member in model.data]


def _members(model: Any) -> Sequence[Any]:
    return list(model.data)


def _equal(model: Any) -> list[float]:
    return [1.0] * len(model)


def _by_metric(model: Any) -> list[float]:
    return _positive(model, [metric.get() for metric in model._metrics])


def _by_members_metric(model: Any) -> list[float]:
    return _positive(model, [member.metric.get() for member in model.data])


def _positive(model: Any, metrics: list[float]) -> list[float]:
    if model.disable_weighted_vote:
        return [1.0] * len(metrics)
    return [metric if metric > 0.0 else 1.0 for metric in metrics]


def _by_odds(model: Any) -> list[float]:
    weights = []
    for i in range(len(model)):
        wrong, right = model.wrong_weight.get(i, 0), model.correct_weight.get(i, 0)
        epsilon = (wrong + 1e-16) / ((right + wrong) + 1e-16)
        if epsilon == 0 or epsilon > 0.5:
            weights.append(1.0)
        else:
            weights.append(math.log((1 - epsilon) / epsilon))
    return weights


def _by_bounded_odds(model: Any) -> Sequence[float | None]:
    weights: list[float | None] = [None] * len(model)
    for i in range(len(model)):
        wrong, right = model.wrong_weight.get(i, 0), model.correct_weight.get(i, 0)
        if right > 0.0 and wrong > 0.0:
            epsilon = wrong / (right + wrong) + 1e-16
            if epsilon <= model.error_bound:
                weights[i] = math.log((1 - epsilon) / epsilon) or None
    return weights if any(weights) else [1.0] * len(model)


@dataclass(frozen=True, slots=True)
class Vote:
    """How a model votes.

    Attributes
    ----------
    trees
        Model → its trees.
    weights
        Model → the weight of each tree; one of None has no vote.
    shares
        Sums of weighted predictions → probabilities.
    """

    trees: Callable[[Any], Sequence[Any]]
    weights: Callable[[Any], Sequence[float | None]]
    shares: Shares


_TREE = Vote(_itself, lambda _: [1.0], _as_they_are)
_BAGGING = Vote(_members, _equal, _divided)

VOTES: dict[type, Vote] = {
    tree.HoeffdingTreeClassifier: _TREE,
    tree.HoeffdingAdaptiveTreeClassifier: _TREE,
    tree.ExtremelyFastDecisionTreeClassifier: _TREE,
    forest.ARFClassifier: Vote(_members, _by_metric, _divided),
    ensemble.SRPClassifier: Vote(patches, _by_members_metric, _divided),
    ensemble.BaggingClassifier: _BAGGING,
    ensemble.ADWINBaggingClassifier: _BAGGING,
    ensemble.LeveragingBaggingClassifier: _BAGGING,
    ensemble.AdaBoostClassifier: Vote(_members, _by_odds, _scaled),
    ensemble.ADWINBoostingClassifier: Vote(_members, _by_odds, _scaled),
    ensemble.BOLEClassifier: Vote(_members, _by_bounded_odds, _scaled),
}
"""Class of River → how it votes; its trees must be single trees of this table."""

"""Fitted forests of scikit-learn as forests of River, which have the same trees."""

from collections.abc import Sequence
from typing import Any

from river import forest, stats
from river.tree.nodes.branch import NumericBinaryBranch
from sklearn.base import is_classifier

LEAF = -1


def exported(fitted: Any, features: Sequence[str], seed: int = 1) -> Any:
    """Return an adaptive random forest with the trees of a random forest or of extra trees.

    Its output is the same on inputs that float32 represents, to which scikit-learn rounds.
    """
    n = len(fitted.estimators_)
    given: dict[str, Any] = {"n_models": n, "seed": seed, "disable_weighted_vote": True}
    model: Any
    if is_classifier(fitted):
        model = forest.ARFClassifier(leaf_prediction="mc", **given)
    else:
        model = forest.ARFRegressor(leaf_prediction="mean", aggregation_method="mean", **given)
    model._init_ensemble(list(features))
    for member, estimator in zip(model.data, fitted.estimators_, strict=True):
        if is_classifier(fitted):
            member.classes = {*fitted.classes_.tolist()}
        member._root = _root(member, estimator.tree_, features, fitted)
    return model


def _root(member: Any, nodes: Any, features: Sequence[str], fitted: Any) -> Any:
    """Return a tree's root; children come after their parent in scikit-learn's arrays."""
    made: list[Any] = [None] * nodes.node_count
    for node in reversed(range(nodes.node_count)):
        left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
        seen = _statistics(nodes.value[node, 0], fitted)
        if left == LEAF:
            made[node] = member._new_leaf(seen)
            continue
        name, threshold = features[nodes.feature[node]], float(nodes.threshold[node])
        made[node] = NumericBinaryBranch(seen, name, threshold, 0, made[left], made[right])
    return made[0]


def _statistics(values: Any, fitted: Any) -> Any:
    """Return what a node has seen: the share of each class, or the mean."""
    if is_classifier(fitted):
        return dict(zip(fitted.classes_.tolist(), values.tolist(), strict=True))
    seen = stats.Var()
    seen.mean.n, seen.mean._mean = 1, float(values[0])
    return seen

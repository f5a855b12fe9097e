"""MDI: how much the splits on a feature lower the impurity of a River tree.

Breiman, Friedman, Olshen, Stone (1984), "Classification and Regression Trees".
"""

import math
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from river import stats
from river.tree.hoeffding_tree import HoeffdingTree
from river.tree.nodes.branch import DTBranch

from fluxplain.evaluate.hoeffding.combinations import COMBINATIONS
from fluxplain.evaluate.hoeffding.votes import VOTES
from fluxplain.explain.players import check_features

Seen = Any
"""A node's statistics of the target: class → weight, or River's running variance."""


def mean_decrease_in_impurity(model: Any, features: Sequence[str]) -> dict[str, float]:
    """Return how much the current splits on each feature reduce the impurity.

    A split reduces a node's impurity to the weighted mean of its children's, weighted by the share
    of the observations that reached it. All values sum to the impurity of the whole tree minus the
    weighted mean of its leaves'. The statistics are those of the current leaves, so the values
    change when a tree grows or replaces a subtree. The model is not evaluated, so the cost is
    negligible.

    Parameters
    ----------
    model
        A Hoeffding tree of River (``HoeffdingTreeClassifier``, ``HoeffdingAdaptiveTreeRegressor``,
        …), or a forest, bagging or boosting of them: the mean over its trees.
    features
        Names of the features to explain.

    Returns
    -------
    Feature → importance, at least 0: in bits of entropy, or as Gini impurity in [0, 1] if the tree
    splits by it; for regression in squared units of the target (variance).

    Raises
    ------
    ValueError
        If there are no features, or one is named twice.
    TypeError
        If the model has no such trees.

    References
    ----------
    Gomes, Mello, Pfahringer, Bifet (2019), "Feature Scoring using Tree-Based Ensembles for Evolving
    Data Streams", MDI; iSAGE (Muschalik et al. 2023), Appendix D.3.3, where it is a baseline.

    Examples
    --------
    >>> from river import tree
    >>> model = tree.HoeffdingAdaptiveTreeClassifier(grace_period=50, seed=1)
    >>> for t in range(1000):
    ...     model.learn_one({"a": t % 7, "b": t % 3}, t % 7 > 3)
    >>> mdi = mean_decrease_in_impurity(model, ["a", "b"])
    >>> {feature: round(value, 1) for feature, value in mdi.items()}
    {'a': 1.0, 'b': 0.0}
    """
    names = check_features(features)
    trees = _trees(model)
    total = dict.fromkeys(names, 0.0)
    for each in trees:
        if isinstance(each._root, DTBranch):
            by_gini = getattr(each, "split_criterion", None) == "gini"
            weight = each._root.total_weight
            for feature, decrease in _decreases(each._root, by_gini=by_gini):
                if feature in total:
                    total[feature] += decrease / weight
    return {feature: value / (len(trees) or 1) for feature, value in total.items()}


def _trees(model: Any) -> Sequence[Any]:
    """Return the trees of a model; none for a forest that has learned nothing."""
    kind = VOTES.get(type(model)) or COMBINATIONS.get(type(model))
    trees = kind.trees(model) if kind else [model]
    if not all(isinstance(each, HoeffdingTree) for each in trees):
        raise TypeError(f"the model, {type(model).__name__}, has no Hoeffding trees")
    return trees


def _decreases(branch: Any, *, by_gini: bool) -> Iterator[tuple[str, float]]:
    """Yield the feature of each split, and its reduction of impurity times weight."""
    parts = [_seen(child) for child in branch.children]
    after = sum(_impurity(part, by_gini=by_gini) for part in parts)
    yield branch.feature, _impurity(_together(parts), by_gini=by_gini) - after
    for child in branch.children:
        if isinstance(child, DTBranch):
            yield from _decreases(child, by_gini=by_gini)


def _seen(node: Any) -> Seen:
    if isinstance(node, DTBranch):
        return _together([_seen(child) for child in node.children])
    return node.stats


def _together(parts: Sequence[Any]) -> Seen:
    if isinstance(parts[0], dict):
        labels = dict.fromkeys(label for part in parts for label in part)
        return {label: sum(part.get(label, 0.0) for part in parts) for label in labels}
    # River divides by the weight
    return reduce(operator.add, [part for part in parts if part.n], stats.Var())


def _impurity(seen: Seen, *, by_gini: bool) -> float:
    """Return the impurity times the weight."""
    if not isinstance(seen, dict):
        return float(seen.get() * max(seen.n - seen.ddof, 0.0))
    total = sum(seen.values())
    weights = [weight for weight in seen.values() if weight > 0.0]
    if by_gini:
        return float(total - sum(weight * weight / total for weight in weights))
    return -math.fsum(weight * math.log2(weight / total) for weight in weights)

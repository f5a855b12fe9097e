"""MDI against what is known of small trees, and against a walk over a tree by hand."""

import math
import statistics
from collections import Counter
from functools import partial
from typing import Any

import pytest
from river import ensemble, forest, linear_model, tree
from river.datasets import synth

from fluxplain.baselines import mean_decrease_in_impurity
from tests.kit.support import agrawal


def entropy(counts: dict[Any, float]) -> float:
    total = sum(counts.values())
    return -sum(v / total * math.log2(v / total) for v in counts.values() if v > 0.0)


def gini(counts: dict[Any, float]) -> float:
    total = sum(counts.values())
    return 1.0 - sum((v / total) ** 2 for v in counts.values())


def leaves_of(node: Any) -> list[Any]:
    children = getattr(node, "children", None)
    return [node] if children is None else [leaf for c in children for leaf in leaves_of(c)]


def trained(model: Any, n: int = 1_500) -> Any:
    for x, y in agrawal(n):
        model.learn_one(x, y)
    return model


FEATURES = list(agrawal(1)[0][0])


@pytest.mark.parametrize(
    ("criterion", "impurity"), [("info_gain", entropy), ("gini", gini), ("hellinger", entropy)]
)
@pytest.mark.parametrize(
    "kind",
    [tree.HoeffdingTreeClassifier, partial(tree.HoeffdingAdaptiveTreeClassifier, seed=1)],
    ids=["plain", "adaptive"],
)
def test_values_sum_to_the_impurity_that_the_tree_takes_away(
    kind: Any, criterion: str, impurity: Any
) -> None:
    model = trained(kind(grace_period=50, tau=0.2, split_criterion=criterion))
    leaves = [dict(leaf.stats) for leaf in leaves_of(model._root)]
    assert len(leaves) > 2
    weights = [sum(leaf.values()) for leaf in leaves]
    counts = Counter[Any]()
    for leaf in leaves:
        counts.update(leaf)
    after = sum(w * impurity(leaf) for w, leaf in zip(weights, leaves, strict=True) if w)
    found = mean_decrease_in_impurity(model, FEATURES)
    assert sum(found.values()) == pytest.approx(impurity(counts) - after / sum(weights))
    assert all(value >= -1e-12 for value in found.values())


def test_of_one_split_all_is_its_features() -> None:
    model = tree.HoeffdingTreeClassifier(grace_period=50, max_depth=1)
    for t in range(1_000):
        model.learn_one({"a": t % 7, "b": t % 3}, t % 7 > 3)
    found = mean_decrease_in_impurity(model, ["b", "a"])
    assert list(found) == ["b", "a"]
    assert found["b"] == 0.0
    assert found["a"] == pytest.approx(entropy({True: 3, False: 4}), abs=0.05)


@pytest.mark.parametrize(
    "model",
    [
        tree.HoeffdingTreeRegressor(grace_period=50),
        tree.HoeffdingAdaptiveTreeRegressor(grace_period=50, seed=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_of_a_regression_tree_values_sum_to_the_variance_that_it_takes_away(model: Any) -> None:
    records = list(synth.Friedman(seed=1).take(2_000))
    for x, y in records:
        model.learn_one(x, y)
    leaves = [leaf.stats for leaf in leaves_of(model._root) if leaf.stats.n > 0]
    assert len(leaves) > 2
    total = sum(leaf.n for leaf in leaves)
    mean = sum(leaf.n * leaf.mean.get() for leaf in leaves) / total
    # what lies between the leaves' means
    between = sum(leaf.n * (leaf.mean.get() - mean) ** 2 for leaf in leaves) / total
    found = mean_decrease_in_impurity(model, list(records[0][0]))
    # River's variance of a leaf below weight 1 counts as 0
    assert sum(found.values()) == pytest.approx(between, rel=1e-6)


@pytest.mark.slow
def test_a_forest_has_the_mean_of_its_trees() -> None:
    model = trained(forest.ARFClassifier(n_models=3, seed=1))
    found = mean_decrease_in_impurity(model, FEATURES)
    assert max(found, key=found.__getitem__) in ("salary", "age")
    bagging = trained(ensemble.BaggingClassifier(tree.HoeffdingTreeClassifier(), 3, seed=1))
    each = [mean_decrease_in_impurity(one, FEATURES) for one in bagging]
    assert mean_decrease_in_impurity(bagging, FEATURES) == pytest.approx(
        {f: statistics.fmean(one[f] for one in each) for f in FEATURES}
    )


def test_some_features_have_the_values_that_they_have_among_all() -> None:
    model = trained(tree.HoeffdingTreeClassifier(grace_period=50))
    among_all = mean_decrease_in_impurity(model, FEATURES)
    assert mean_decrease_in_impurity(model, ["age"]) == {"age": among_all["age"]}


@pytest.mark.parametrize("model", [tree.HoeffdingTreeClassifier(), forest.ARFRegressor(seed=1)])
def test_a_tree_that_has_learned_nothing_has_no_importance(model: Any) -> None:
    assert mean_decrease_in_impurity(model, ["a"]) == {"a": 0.0}


@pytest.mark.parametrize("model", [linear_model.LinearRegression(), forest.AMFClassifier(seed=1)])
def test_a_model_without_hoeffding_trees_is_named(model: Any) -> None:
    with pytest.raises(TypeError, match=type(model).__name__):
        mean_decrease_in_impurity(model, ["a"])

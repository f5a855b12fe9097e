"""Weights: integers and floats, which ``sum`` adds in different ways, and NumPy's numbers."""

import random
from functools import partial
from typing import Any

import numpy as np
import pytest
from river import metrics, tree

from fluxplain.forest import as_arrays, as_river
from fluxplain.forest.summing import IS_COMPENSATED
from tests.forest.models import outcome, pair, predicted, summary
from tests.forest.streams import Stream, late_classes

HASTY = {"grace_period": 15, "tau": 0.5, "delta": 0.1}

KINDS = [
    ("HoeffdingTreeClassifier", {}),
    ("HoeffdingTreeClassifier", {"binary_split": True, "split_criterion": "gini"}),
    ("HoeffdingTreeClassifier", {"leaf_prediction": "mc", "max_depth": 1}),
    ("HoeffdingAdaptiveTreeClassifier", {}),
    ("BaggingClassifier", {}),
]


def incomplete(n: int) -> Stream:
    """Return classes that come one after the other; features are missing now and then."""
    rng = random.Random(1)
    return [({f: v for f, v in x.items() if rng.random() > 0.1}, y) for x, y in late_classes(n)]


def learn_weighted(models: tuple[Any, Any], stream: Stream, weights: list[Any]) -> None:
    """Let both learn with weights in turn; compare each outcome."""
    for i, (x, y) in enumerate(stream):
        assert predicted(models[1], x) == predicted(models[0], x), i
        learned = [outcome(partial(m.learn_one, w=weights[i % len(weights)]), x, y) for m in models]
        assert learned[1] == learned[0], i


def types_of(model: Any) -> list[list[type]]:
    """Return the types of the weights in all leaves."""
    trees = [model] if isinstance(model, tree.HoeffdingTreeClassifier) else model.data
    leaves = [leaf for each in trees if each._root is not None for leaf in _leaves(each._root)]
    return [[*map(type, leaf.stats.values())] for leaf in leaves]


def _leaves(root: Any) -> list[Any]:
    return [*root.iter_leaves()] if hasattr(root, "children") else [root]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("weights", [[3], [0.3, 2, 1, 0.1, 1.7, 1, 1, 2]])
@pytest.mark.parametrize(("kind", "given"), KINDS)
def test_integers_among_floats(kind: str, given: dict[str, Any], weights: list[Any]) -> None:
    river, ours = pair(kind, {**HASTY, **given})
    stream = incomplete(600)
    learn_weighted((river, ours), stream[:200], weights)
    ours = type(ours).from_river(river)
    learn_weighted((river, ours), stream[200:], weights)
    assert ours.reason is None
    assert summary(ours) == summary(river)
    assert types_of(as_river(ours)) == types_of(river)


def test_a_forest_counts_with_integers() -> None:
    river, ours = pair("ARFClassifier", {**HASTY, "max_features": None})
    for x, y in incomplete(600):
        assert predicted(ours, x) == predicted(river, x)
        river.learn_one(x, y)
        ours.learn_one(x, y)
    assert ours.reason is None
    types = types_of(as_river(ours))
    assert types == types_of(river)
    assert any(len(set(each)) == 2 for each in types)


@pytest.mark.parametrize("kind", ["HoeffdingTreeClassifier", "HoeffdingTreeRegressor"])
def test_numpys_weights_are_added_in_another_way_where_sum_compensates(kind: str) -> None:
    river, ours = pair(kind, {"leaf_prediction": "mean"} if kind.endswith("Regressor") else {})
    stream: Stream = [({"a": float(i % 7), "b": i % 3 / 3}, i % 2) for i in range(100)]
    learn_weighted((river, ours), stream, [np.float64(0.3)])
    assert (ours.reason is not None) == IS_COMPENSATED
    assert (as_arrays(river) is river) == IS_COMPENSATED


def test_numpys_votes_are_added_in_another_way_where_sum_compensates() -> None:
    river, ours = pair("ARFClassifier", {"metric": metrics.ROCAUC()})
    for i in range(150):
        x, y = {"a": i % 7 / 7, "b": i % 3 / 3}, i % 7 > 3
        assert predicted(ours, x) == predicted(river, x)
        river.learn_one(x, y)
        ours.learn_one(x, y)
    assert (ours.reason is not None) == IS_COMPENSATED
    assert predicted(as_river(ours), {"a": 0.5, "b": 0.5}) == predicted(river, {"a": 0.5, "b": 0.5})

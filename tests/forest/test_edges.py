"""What arrays do not follow goes on with River's objects, with the same numbers."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
from river import drift, forest, preprocessing, tree

from fluxplain.forest import as_arrays, as_river
from tests.forest.models import outcome, pair, stream_of, summary
from tests.forest.parameters import HASTY
from tests.forest.streams import STREAMS, Stream

BOTH = "a feature is both categorical and numeric"

FLOATS: Stream = [({"a": float(i % 10)}, int(i % 10 > 4)) for i in range(60)]

Kind = tuple[str, dict[str, Any]]
MEAN: Kind = ("HoeffdingTreeRegressor", {"leaf_prediction": "mean", "grace_period": 10, "tau": 1.0})
CLASS: Kind = ("HoeffdingTreeClassifier", {"grace_period": 10, "tau": 1.0})
ADAPTIVE: Kind = ("HoeffdingAdaptiveTreeRegressor", MEAN[1])
FOREST: Kind = ("ARFRegressor", {})
TREES = [MEAN, CLASS, ADAPTIVE]


def same(river: Any, ours: Any, stream: Stream) -> None:
    """Let both learn, and compare each outcome."""
    ask = "predict_one"
    for i, (x, y) in enumerate(stream):
        for name, given in ((ask, (x,)), ("learn_one", (x, y))):
            expected = outcome(getattr(river, name), *given)
            assert outcome(getattr(ours, name), *given) == expected, (i, name)


@pytest.mark.parametrize("kind", TREES)
def test_a_prediction_decides_about_no_feature(kind: Kind) -> None:
    river, ours = pair(*kind)
    assert ours.predict_one({"a": "?"}) == river.predict_one({"a": "?"})
    same(river, ours, FLOATS)
    assert ours.reason is None


@pytest.mark.parametrize("kind", TREES)
def test_a_feature_may_become_numeric(kind: Kind) -> None:
    river, ours = pair(*kind)
    flags: Stream = [({"a": np.bool_(i % 3 == 0)}, i % 2) for i in range(30)]
    same(river, ours, [*flags, *FLOATS])
    assert ours.reason == BOTH
    assert as_arrays(river) is river


@pytest.mark.parametrize("given", [{1: 2.0, "a": 3.0}, {"a": 10**400}, {"a": [1]}, {"a": 0.5 + 0j}])
@pytest.mark.parametrize("kind", TREES)
def test_odd_observations(kind: Kind, given: dict[Any, Any]) -> None:
    river, ours = pair(*kind)
    same(river, ours, [*FLOATS[:20], (given, 1), *FLOATS[20:]])


@pytest.mark.parametrize("weight", [0, 0.0, np.float32(0.1), np.float64(2.5), 3])
@pytest.mark.parametrize("kind", [*TREES, ("ADWINBaggingClassifier", {})])
def test_weights(kind: Kind, weight: Any) -> None:
    river, ours = pair(*kind)
    for x, y in FLOATS:
        expected, given = (
            outcome(partial(model.learn_one, w=weight), x, y) for model in (river, ours)
        )
        assert given == expected
        assert outcome(ours.predict_one, x) == outcome(river.predict_one, x)


@pytest.mark.parametrize("rate", [0, -1])
@pytest.mark.parametrize("kind", ["ARFClassifier", "ARFRegressor"])
def test_a_forest_that_never_learns(kind: str, rate: int) -> None:
    river, ours = pair(kind, {"lambda_value": rate})
    same(river, ours, stream_of(kind, "numbers", 100))
    assert summary(ours) == summary(river)


@pytest.mark.parametrize("delta", [0.0, -1.0, 2.0])
@pytest.mark.parametrize("kind", TREES)
def test_a_delta_that_is_no_share(kind: Kind, delta: float) -> None:
    river, ours = pair(kind[0], {**kind[1], "delta": delta})
    same(river, ours, FLOATS)
    assert ours.reason == f"delta is {delta}"


@pytest.mark.parametrize("digits", [None, 1.5])
def test_a_splitter_that_rounds_in_another_way(digits: Any) -> None:
    splitter = tree.splitter.TEBSTSplitter(digits=digits)
    river, ours = pair(MEAN[0], {**MEAN[1], "splitter": splitter})
    same(river, ours, [({"a": x["a"] / 7}, y) for x, y in FLOATS])


@pytest.mark.filterwarnings("ignore:overflow")
def test_a_target_of_numpy() -> None:
    river, ours = pair(MEAN[0], {"grace_period": 4, "leaf_prediction": "adaptive"})
    same(river, ours, [({"a": 1e80}, np.float64(5)) for _ in range(8)])
    assert ours.river is not None


@pytest.mark.parametrize("kind", [*TREES, pytest.param(FOREST, marks=pytest.mark.slow)])
def test_a_parameter_that_is_set(kind: Kind) -> None:
    river, ours = pair(*kind)
    stream = stream_of(kind[0], "sea", 400, kind[1])
    same(river, ours, stream[:200])
    for model in (river, ours):
        model.max_depth = 1
    same(river, ours, stream[200:])
    assert ours.reason == "its parameters were changed"


def test_models_of_leaves_that_explode() -> None:
    river, ours = pair("ARFRegressor", {"n_models": 3, "leaf_prediction": "model"})
    same(river, ours, [({"a": 1e80}, 1.0)] * 6)
    assert summary(ours) == summary(river)


@pytest.mark.slow
def test_a_tree_that_is_replaced_when_its_size_is_due() -> None:
    quick = drift.KSWIN(alpha=0.05, window_size=20, stat_size=5, seed=1)
    given = {"memory_estimate_period": 1, "warning_detector": quick, "drift_detector": quick}
    for kind in ("ARFRegressor", "ARFClassifier"):
        river, ours = pair(kind, given)
        same(river, ours, stream_of(kind, "recurring", 150))
        assert river.n_drifts_detected()


@pytest.mark.parametrize("again", [deepcopy, lambda models: pickle.loads(pickle.dumps(models))])
def test_categories_that_were_read_again_have_the_order_of_rivers(
    again: Callable[[Any], Any],
) -> None:
    name, given = CLASS
    river, ours = pair(name, {**given, "nominal_attributes": ["a"], "binary_split": True})
    stream: Stream = [({"a": each}, int(each == 7)) for each in (7, 15) * 5]  # {7, 15} is {15, 7}
    same(river, ours, stream[:9])
    river, ours = again((river, ours))
    same(river, ours, stream[9:])
    x, _ = stream[0]
    shown = as_river(ours).debug_one(x)
    assert shown == river.debug_one(x)
    assert "a = 7" in shown


@pytest.mark.parametrize("convert", [as_arrays, lambda model: as_river(as_arrays(model))])
def test_a_pipeline_that_has_learned_is_left_alone(convert: Callable[[Any], Any]) -> None:
    model = preprocessing.StandardScaler() | forest.ARFClassifier(n_models=3, seed=1)
    stream = STREAMS["sea"](300)
    for x, y in stream[:100]:
        model.predict_proba_one(x)
        model.learn_one(x, y)
    other = pickle.loads(pickle.dumps(model))
    converted = convert(model)
    for x, y in stream[100:]:
        assert converted.predict_proba_one(x) == other.predict_proba_one(x)
        converted.learn_one(x, y)
        other.learn_one(x, y)
    again = pickle.loads(pickle.dumps(model))
    assert summary(again["ARFClassifier"]) == summary(model["ARFClassifier"])
    assert sum(each._train_weight_seen_by_model for each in model["ARFClassifier"]) < sum(
        each._train_weight_seen_by_model for each in other["ARFClassifier"]
    )


def test_an_infinite_feature_of_an_adaptive_tree_with_models() -> None:
    given = {"drift_detector": drift.PageHinkley(min_instances=3, threshold=0.1), "grace_period": 5}
    river, ours = pair("HoeffdingAdaptiveTreeRegressor", given)
    stream: Stream = [({"a": i % 7 / 7, "b": float(i % 2)}, i % 3) for i in range(120)]
    same(river, ours, stream)
    assert ours.reason is None
    same(river, ours, [({"a": float("-inf"), "b": 1.0}, 1), *stream[:40]])
    assert ours.reason == "a prediction is far from the target"
    assert summary(ours) == summary(river)


def test_an_adaptive_tree_raises_what_rivers_raises() -> None:
    given = {**HASTY, "drift_window_threshold": -1, "leaf_prediction": "mean"}
    river, ours = pair("HoeffdingAdaptiveTreeRegressor", given)
    raised = 0
    for x, y in stream_of("HoeffdingAdaptiveTreeRegressor", "recurring", 1200, given):
        expected = outcome(river.learn_one, x, y)
        assert outcome(ours.learn_one, x, y) == expected
        raised += expected.startswith("ZeroDivisionError")
    assert raised
    assert ours.river is None
    assert summary(ours) == summary(river)


@pytest.mark.parametrize(
    "kind", [MEAN, *(pytest.param(each, marks=pytest.mark.slow) for each in (CLASS, ADAPTIVE))]
)
def test_parameters_of_other_types(kind: Kind) -> None:
    odd = {"merit_preprune": 1, "binary_split": np.bool_(True), "max_size": 100}
    for parameters in (odd, {}):  # compiled loops take the same types from both
        river, ours = pair(kind[0], {**kind[1], **parameters})
        same(river, ours, FLOATS)
        assert ours.reason is None
        assert summary(ours) == summary(river)


def test_a_splitter_that_makes_no_whole_number_of_splits() -> None:
    splitter = tree.splitter.GaussianSplitter(n_splits=3.0)
    river, ours = pair(CLASS[0], {**CLASS[1], "splitter": splitter})
    same(river, ours, FLOATS)
    assert ours.reason == "its splitter makes 3.0 splits"


@pytest.mark.parametrize("kind", ["HoeffdingTreeClassifier", "ARFClassifier"])
def test_numbers_whose_variance_is_infinite_count_in_no_vote(kind: str) -> None:
    river, ours = pair(kind, {"leaf_prediction": "nb"})
    values = (1e308, -1e308, 1e308, -1e308, 5e307, 1e308, -1e308)
    same(river, ours, [({"a": value}, i % 2) for i, value in enumerate(values)])


@pytest.mark.parametrize("odd", ["text", np.float32(0.3)])
def test_a_model_that_has_seen_odd_numbers_is_left_alone(odd: Any) -> None:
    """A minimum that is no Python number makes River's thresholds others."""
    river = tree.HoeffdingTreeClassifier(grace_period=10)
    for i, value in enumerate((1.0, odd, 2.0)):
        outcome(river.learn_one, {"a": value}, i)
    assert as_arrays(river) is river

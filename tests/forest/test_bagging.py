"""Ensembles of trees: their members are arrays, also those that replace others."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from river import base, drift, ensemble, naive_bayes, preprocessing, tree

from fluxplain.forest import as_arrays, as_river
from fluxplain.forest.bagging import Bagging
from fluxplain.forest.compiled_model import CompiledModel
from tests.forest.models import predicted, summary
from tests.forest.parameters import HASTY
from tests.forest.streams import STREAMS, Stream, with_targets

TREE = tree.HoeffdingTreeClassifier(grace_period=50, tau=0.1)
SCALED = preprocessing.StandardScaler() | TREE
GIVEN: dict[str, Any] = {"n_models": 3, "seed": 1}

BAGGING: dict[str, Callable[[], Any]] = {
    "bagging": lambda: ensemble.BaggingClassifier(TREE, **GIVEN),
    "adwin": lambda: ensemble.ADWINBaggingClassifier(TREE, **GIVEN),
    "leveraging": lambda: ensemble.LeveragingBaggingClassifier(TREE, **GIVEN),
}

OTHERS: dict[str, Callable[[], Any]] = {
    "scaled members": lambda: ensemble.LeveragingBaggingClassifier(SCALED, **GIVEN),
    "replaced scaled members": lambda: ensemble.ADWINBaggingClassifier(SCALED, **GIVEN),
    "boosting": lambda: ensemble.AdaBoostClassifier(TREE, **GIVEN),
    "replaced boosting": lambda: ensemble.ADWINBoostingClassifier(TREE, **GIVEN),
    "patches": lambda: ensemble.SRPClassifier(TREE, **GIVEN),
    "bole": lambda: ensemble.BOLEClassifier(TREE, **GIVEN),
}
"""Ensembles for classification whose members are arrays each."""

NUMBER = tree.HoeffdingTreeRegressor(grace_period=30, tau=0.2)
ADAPTIVE = tree.HoeffdingAdaptiveTreeRegressor(**HASTY, seed=2)
QUICK = {**GIVEN, "drift_detector": drift.ADWIN(0.5), "warning_detector": drift.ADWIN(0.8)}

REGRESSION: dict[str, Callable[[], Any]] = {
    "mean": lambda: ensemble.BaggingRegressor(NUMBER, **GIVEN),
    "mean of adaptive trees": lambda: ensemble.BaggingRegressor(ADAPTIVE, **GIVEN),
    "number patches": lambda: ensemble.SRPRegressor(NUMBER, **QUICK),
    "adaptive patches": lambda: ensemble.SRPRegressor(ADAPTIVE, **QUICK),
    "subspaces": lambda: ensemble.SRPRegressor(NUMBER, training_method="subspaces", **QUICK),
    "resampling": lambda: ensemble.SRPRegressor(
        NUMBER, training_method="resampling", aggregation_method="median", **QUICK
    ),
    "weighted patches": lambda: ensemble.SRPRegressor(
        NUMBER, disable_weighted_vote=False, drift_detection_criteria="prediction", **QUICK
    ),
    "scaled patches": lambda: ensemble.SRPRegressor(
        preprocessing.StandardScaler() | NUMBER, disable_detector="warning", **GIVEN
    ),
}
"""Ensembles for regression, whose members are arrays each, too."""

ALL: dict[str, Callable[[], Any]] = {
    **BAGGING,
    **OTHERS,
    **REGRESSION,
    "behind a scaler": lambda: preprocessing.MinMaxScaler() | BAGGING["adwin"](),
}


def compare(river: Any, ours: Any, stream: Stream) -> None:
    """Let both learn, and compare each prediction."""
    for i, (x, y) in enumerate(stream):
        assert predicted(ours, x) == predicted(river, x), i
        river.learn_one(x, y)
        ours.learn_one(x, y)


def digits_for(model: Any, n: int) -> Stream:
    """Return a stream that a model can learn."""
    stream = STREAMS["digits"](n)
    return stream if isinstance(model, base.Classifier) else with_targets(stream, has_text=False)


def splitting(model: Any, n: int) -> Stream:
    """Return a stream on which the trees soon split; of digits, those of classifiers do not."""
    return STREAMS["sea"](n) if isinstance(model, base.Classifier) else digits_for(model, n)


def errors(model: Any) -> list[float]:
    """Return what the detectors of an ensemble estimate."""
    return [each.estimation for each in getattr(model, "_drift_detectors", ())]


def trees_of(model: Any) -> list[Any]:
    """Return the trees of an ensemble."""
    models = [getattr(each, "model", each) for each in model.data]
    return [[*each.steps.values()][-1] if "|" in str(each) else each for each in models]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ALL)
def test_it_may_be_converted_at_any_record(name: str) -> None:
    river, ours = ALL[name](), as_arrays(ALL[name]())
    stream = splitting(river, 600)
    for begin in range(0, 600, 150):
        compare(river, ours, stream[begin : begin + 150])
        back = as_river(ours)
        assert type(back) is type(river)
        ours = pickle.loads(pickle.dumps(as_arrays(back)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["adwin", "leveraging"])
def test_members_are_replaced_as_rivers_are(name: str) -> None:
    river, ours = BAGGING[name](), as_arrays(BAGGING[name]())
    first = [*river.data]
    for record in STREAMS["late_classes"](2000):
        compare(river, ours, [record])
        assert errors(ours) == errors(river)
    assert any(new is not old for new, old in zip(river.data, first, strict=True))
    assert summary(ours) == summary(river)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*OTHERS, *REGRESSION])
def test_members_without_common_arrays_have_their_own(name: str) -> None:
    river, ours = ALL[name](), as_arrays(ALL[name]())
    compare(river, ours, digits_for(river, 800))
    assert type(ours) is type(river)
    assert all(isinstance(each, CompiledModel) for each in trees_of(ours))
    assert all(each.river is None for each in trees_of(ours))
    rivers = trees_of(as_river(ours))
    assert [each.summary for each in rivers] == [each.summary for each in trees_of(river)]
    assert ours._rng.getstate() == river._rng.getstate()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["adwin", "leveraging", "scaled members", "patches", "adaptive patches"]
)
def test_what_was_converted_stays_as_it_is(name: str) -> None:
    model = ALL[name]()
    stream = splitting(model, 300)
    compare(model, ALL[name](), stream[:200])
    before = pickle.dumps(model)
    compare(as_arrays(model), as_arrays(model), stream[200:])
    assert pickle.dumps(model) == before
    ours = as_arrays(model)
    before = pickle.dumps(ours)
    compare(as_river(ours), as_river(ours), stream[200:])
    assert pickle.dumps(ours) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["number patches", pytest.param("adaptive patches", marks=pytest.mark.slow)]
)
def test_patches_are_replaced_as_rivers_are(name: str) -> None:
    river, ours = REGRESSION[name](), as_arrays(REGRESSION[name]())
    compare(river, ours, with_targets(STREAMS["recurring"](1200), has_text=False))
    found, expected = (
        [(each.features, each.n_drifts_detected, each.n_warnings_detected) for each in model]
        for model in (ours, river)
    )
    assert found == expected
    assert sum(drifts for _, drifts, _ in expected) > 0
    assert all(each.model.river is None for each in ours)


@pytest.mark.parametrize("name", BAGGING)
def test_weights_count(name: str) -> None:
    river, ours = BAGGING[name](), as_arrays(BAGGING[name]())
    for x, y in STREAMS["numbers"](300):
        river.learn_one(x, y, w=2.0)
        ours.learn_one(x, y, w=2.0)
    assert summary(ours) == summary(river)
    river.learn_one(x, y, w=-1.0)
    ours.learn_one(x, y, w=-1.0)
    assert ours.reason == "a weight is -1.0"
    assert summary(ours) == summary(river)


@pytest.mark.parametrize("name", BAGGING)
def test_an_error_leaves_what_rivers_leaves(name: str) -> None:
    river, ours = BAGGING[name](), as_arrays(BAGGING[name]())
    stream = STREAMS["numbers"](400)
    compare(river, ours, stream[:200])
    x, y = stream[200]
    raised = []
    for model in river, ours:
        with pytest.raises(OverflowError) as error:
            model.learn_one({**x, "salary": 1e300}, y)
        raised.append(str(error.value))
    assert raised[0] == raised[1]
    assert summary(ours) == summary(river)
    compare(river, ours, stream[201:])


def test_a_clone_is_as_new() -> None:
    ours = as_arrays(BAGGING["leveraging"]())
    stream = STREAMS["numbers"](300)
    compare(BAGGING["leveraging"](), ours, stream)
    clone = ours.clone()
    assert isinstance(clone, Bagging)
    compare(BAGGING["leveraging"](), clone, stream)
    assert clone.river is None


def test_a_member_learns_with_its_ensemble_only() -> None:
    ours = as_arrays(BAGGING["bagging"]())
    x, y = STREAMS["numbers"](2)[0]
    ours.data[0].learn_one(x, y)
    with pytest.raises(RuntimeError, match="with its ensemble only"):
        ours.data[0].predict_one(x)


@pytest.mark.parametrize(
    "model",
    [
        ensemble.BaggingClassifier(naive_bayes.GaussianNB()),
        ensemble.BaggingClassifier(
            tree.HoeffdingTreeClassifier(splitter=tree.splitter.HistogramSplitter())
        ),
    ],
)
def test_an_ensemble_of_other_models_stays_rivers(model: Any) -> None:
    assert as_arrays(model) is model
    assert as_river(model) is model


def test_members_with_parameters_of_their_own_stay_rivers() -> None:
    model = BAGGING["bagging"]()
    model[1] = tree.HoeffdingTreeClassifier(leaf_prediction="mc")
    assert as_arrays(model) is model
    assert not isinstance(as_arrays(model), CompiledModel)

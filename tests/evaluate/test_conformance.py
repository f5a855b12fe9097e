"""Every evaluator gives the outputs that asking the model one by one gives, while it learns.

Each model learns a stream whose concept changes half-way, so that trees split, drift and are
replaced. Numbers may be missing, categories new.
"""

import math
import pickle
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from river import (
    compose,
    ensemble,
    forest,
    imblearn,
    linear_model,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    tree,
)
from river.datasets import synth
from river.drift import ADWIN

from fluxplain.evaluate import GenericEvaluator, choose
from fluxplain.evaluate.hoeffding import category_lists
from fluxplain.forest import as_arrays
from tests.kit.outputs import assert_as_asked, assert_same, question
from tests.kit.support import Row, outputs_of

RECORDS = 600

HT, HTR = tree.HoeffdingTreeClassifier, tree.HoeffdingTreeRegressor
HAT, HATR = tree.HoeffdingAdaptiveTreeClassifier, tree.HoeffdingAdaptiveTreeRegressor
Scaler, Logistic = preprocessing.StandardScaler, linear_model.LogisticRegression
Grace = {"grace_period": 50}

Factory = Callable[[], Any]


def begun(model: Any) -> Any:
    """Return a model that has learned two observations: before, it fails."""
    for x, y in stream(2):
        model.learn_one(x, bool(y))
    return model


CLASSIFIERS: dict[str, Factory] = {
    "tree": lambda: HT(**Grace),
    "tree-bayes": lambda: HT(**Grace, leaf_prediction="nb", nb_threshold=20),
    "tree-majority": lambda: HT(**Grace, leaf_prediction="mc"),
    "tree-binary": lambda: HT(**Grace, binary_split=True, nominal_attributes=["elevel"]),
    "tree-shallow": lambda: HT(**Grace, max_depth=2),
    "tree-small": lambda: HT(**Grace, max_size=0.05, memory_estimate_period=100),
    "tree-histogram": lambda: HT(**Grace, splitter=tree.splitter.HistogramSplitter()),
    "adaptive": lambda: HAT(**Grace, seed=1),
    "adaptive-majority": lambda: HAT(**Grace, seed=1, leaf_prediction="mc"),
    "fast": lambda: tree.ExtremelyFastDecisionTreeClassifier(**Grace, min_samples_reevaluate=100),
    "tree-poor": lambda: HT(**Grace, remove_poor_attrs=True, leaf_prediction="nb"),
    "forest": lambda: forest.ARFClassifier(n_models=4, grace_period=30, seed=1),
    "forest-equal": lambda: forest.ARFClassifier(
        n_models=3, seed=1, disable_weighted_vote=True, leaf_prediction="mc"
    ),
    "bagging": lambda: ensemble.BaggingClassifier(HT(**Grace), n_models=3, seed=1),
    "leveraging": lambda: ensemble.LeveragingBaggingClassifier(HT(**Grace), n_models=3, seed=1),
    "adwin-bagging": lambda: ensemble.ADWINBaggingClassifier(
        HAT(**Grace, seed=2), n_models=3, seed=1
    ),
    "adaboost": lambda: ensemble.AdaBoostClassifier(HT(**Grace), n_models=3, seed=1),
    "adwin-boosting": lambda: ensemble.ADWINBoostingClassifier(HT(**Grace), n_models=3, seed=1),
    "bole": lambda: ensemble.BOLEClassifier(HT(**Grace), n_models=3, seed=1),
    "compiled-tree": lambda: as_arrays(HT(**Grace)),
    "compiled-tree-bayes": lambda: as_arrays(HT(**Grace, leaf_prediction="nb", nb_threshold=20)),
    "compiled-tree-binary": lambda: as_arrays(
        HT(**Grace, binary_split=True, nominal_attributes=["elevel"])
    ),
    "compiled-adaptive": lambda: as_arrays(HAT(**Grace, seed=1)),
    "compiled-adaptive-hasty": lambda: as_arrays(
        HAT(grace_period=20, delta=0.1, drift_detector=ADWIN(delta=0.5, clock=8), seed=1)
    ),
    "compiled-adaptive-majority": lambda: as_arrays(HAT(**Grace, seed=1, leaf_prediction="mc")),
    "compiled-forest": lambda: as_arrays(forest.ARFClassifier(n_models=4, grace_period=30, seed=1)),
    "compiled-bagging": lambda: as_arrays(
        ensemble.BaggingClassifier(HT(**Grace), n_models=3, seed=1)
    ),
    "compiled-leveraging": lambda: as_arrays(
        ensemble.LeveragingBaggingClassifier(HT(**Grace), n_models=3, seed=1)
    ),
    "compiled-boosting": lambda: as_arrays(
        ensemble.AdaBoostClassifier(HT(**Grace), n_models=3, seed=1)
    ),
    "compiled-patches": lambda: as_arrays(ensemble.SRPClassifier(HT(**Grace), n_models=3, seed=1)),
    "compiled-subspaces": lambda: as_arrays(
        ensemble.SRPClassifier(
            HT(**Grace), n_models=3, seed=1, training_method="subspaces", disable_weighted_vote=True
        )
    ),
    "patches": lambda: ensemble.SRPClassifier(HT(**Grace), n_models=3, seed=1),
}
"""They take numbers and categories."""

NUMERIC_CLASSIFIERS: dict[str, Factory] = {
    "scaled-forest": lambda: Scaler() | forest.ARFClassifier(n_models=3, seed=1),
    "compiled-scaled": lambda: as_arrays(Scaler() | forest.ARFClassifier(n_models=3, seed=1)),
    "compiled-scaled-members": lambda: as_arrays(
        ensemble.ADWINBaggingClassifier(Scaler() | HT(**Grace), n_models=3, seed=1)
    ),
    "scaled-twice": lambda: preprocessing.MinMaxScaler() | Scaler() | HT(**Grace),
    "logistic": lambda: Scaler() | Logistic(l2=0.01),
    "logistic-raw": Logistic,
    "logistic-adaptive": lambda: preprocessing.AdaptiveStandardScaler() | Logistic(),
    "logistic-binary": lambda: preprocessing.Binarizer(threshold=50.0) | Logistic(),
    "logistic-largest": lambda: preprocessing.MaxAbsScaler() | Logistic(),
    "logistic-range": lambda: begun(preprocessing.MinMaxScaler() | Logistic()),
    "mondrian": lambda: forest.AMFClassifier(n_estimators=3, seed=1),
    "mondrian-leaves": lambda: forest.AMFClassifier(2, use_aggregation=False, seed=1),
    "mondrian-small": lambda: Scaler() | forest.AMFClassifier(2, max_nodes=30, seed=1),
    "bayes": naive_bayes.GaussianNB,
    "bayes-scaled": lambda: Scaler() | naive_bayes.GaussianNB(),
    "bayes-binary": lambda: naive_bayes.BernoulliNB(true_threshold=50.0),
    "bayes-counts": naive_bayes.MultinomialNB,
    "bayes-complement": naive_bayes.ComplementNB,
    "bagged-bayes": lambda: ensemble.LeveragingBaggingClassifier(naive_bayes.GaussianNB(), seed=1),
    "bagged-logistic": lambda: Scaler() | ensemble.BaggingClassifier(Logistic(), seed=1),
    "bagged-logistic-scaled": lambda: ensemble.ADWINBaggingClassifier(
        Scaler() | Logistic(), n_models=3, seed=1
    ),
    "patches-logistic": lambda: begun(ensemble.SRPClassifier(Logistic(), n_models=3, seed=1)),
    "boosted-logistic": lambda: Scaler() | ensemble.BOLEClassifier(Logistic(), seed=1),
    "logistic-ordinal": lambda: preprocessing.OrdinalEncoder() | Scaler() | Logistic(),
    "logistic-one-hot": lambda: (
        (
            (compose.Discard("salary", "commission", "age", "loan") | preprocessing.OneHotEncoder())
            + (compose.Discard("elevel", "car", "zipcode", "hvalue", "hyears") | Scaler())
        )
        | Logistic()
    ),
    "logistic-window": lambda: Scaler(window_size=50) | Logistic(),
    "logistic-robust": lambda: preprocessing.RobustScaler() | Logistic(),
    "logistic-normalized": lambda: preprocessing.Normalizer() | Logistic(),
    "logistic-focal": lambda: Scaler() | Logistic(loss=optim.losses.BinaryFocalLoss()),
    "perceptron-logistic": lambda: Scaler() | linear_model.Perceptron(),
    "passive-logistic": lambda: Scaler() | linear_model.PAClassifier(),
    "softmax": lambda: begun(Scaler() | linear_model.SoftmaxRegression()),
    "under-sampled-logistic": lambda: (
        Scaler()
        | imblearn.RandomUnderSampler(Logistic(), desired_dist={True: 0.5, False: 0.5}, seed=1)
    ),
    "one-vs-rest": lambda: begun(Scaler() | multiclass.OneVsRestClassifier(Logistic())),
    "normalized-forest": lambda: (
        preprocessing.Normalizer(order=1) | forest.ARFClassifier(n_models=3, seed=1)
    ),
}
REGRESSORS: dict[str, Factory] = {
    "mean-leaves": lambda: HTR(**Grace, leaf_prediction="mean"),
    "linear-leaves": lambda: HTR(**Grace, leaf_prediction="model"),
    "other-leaves": lambda: HTR(**Grace, leaf_model=linear_model.PARegressor()),
    "regression-tree": lambda: HTR(**Grace),
    "adaptive-regression": lambda: HATR(**Grace, seed=1),
    "regression-forest": lambda: forest.ARFRegressor(n_models=4, grace_period=30, seed=1),
    "median-forest": lambda: forest.ARFRegressor(n_models=4, seed=1, aggregation_method="median"),
    "compiled-adaptive-regression": lambda: as_arrays(HATR(**Grace, seed=1)),
    "compiled-adaptive-regression-hasty": lambda: as_arrays(
        HATR(grace_period=20, delta=0.1, drift_detector=ADWIN(delta=0.5, clock=8), seed=1)
    ),
    "compiled-mean-leaves": lambda: as_arrays(HTR(**Grace, leaf_prediction="mean")),
    "compiled-linear-leaves": lambda: as_arrays(HTR(**Grace, leaf_prediction="model")),
    "compiled-regression-tree": lambda: as_arrays(HTR(**Grace)),
    "compiled-regression-forest": lambda: as_arrays(
        forest.ARFRegressor(n_models=4, grace_period=30, seed=1)
    ),
    "compiled-weighted-forest": lambda: as_arrays(
        forest.ARFRegressor(
            n_models=4, seed=1, aggregation_method="mean", disable_weighted_vote=False
        )
    ),
    "regression-bagging-arrays": lambda: as_arrays(
        ensemble.BaggingRegressor(HTR(**Grace), n_models=3, seed=1)
    ),
    "regression-patches": lambda: ensemble.SRPRegressor(HTR(**Grace), n_models=3, seed=1),
    "regression-patches-arrays": lambda: as_arrays(
        ensemble.SRPRegressor(HATR(**Grace, seed=1), n_models=3, seed=1)
    ),
    "weighted-patches-arrays": lambda: as_arrays(
        ensemble.SRPRegressor(HTR(**Grace), n_models=3, seed=1, disable_weighted_vote=False)
    ),
    "median-patches-arrays": lambda: as_arrays(
        ensemble.SRPRegressor(HTR(**Grace), n_models=3, seed=1, aggregation_method="median")
    ),
    "regression-bagging": lambda: ensemble.BaggingRegressor(HTR(**Grace), n_models=3, seed=1),
    "scaled-regression-tree": lambda: Scaler() | HTR(**Grace),
    "linear": lambda: Scaler() | linear_model.LinearRegression(),
    "mondrian-regression": lambda: begun(forest.AMFRegressor(n_estimators=3, seed=1)),
    "bagged-linear": lambda: (
        Scaler() | ensemble.BaggingRegressor(linear_model.LinearRegression(), n_models=3, seed=1)
    ),
    "linear-centred": lambda: (
        Scaler(with_std=False) | Scaler() | linear_model.LinearRegression(l2=0.1)
    ),
    "linear-huber": lambda: Scaler() | linear_model.LinearRegression(loss=optim.losses.Huber()),
    "passive-linear": lambda: Scaler() | linear_model.PARegressor(),
    "target-scaled": lambda: (
        Scaler() | preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    ),
    "target-scaled-range": lambda: preprocessing.TargetMinMaxScaler(
        Scaler() | linear_model.LinearRegression()
    ),
    "target-scaled-one-hot": lambda: (
        (
            (compose.Discard("salary", "commission", "age", "loan") | preprocessing.OneHotEncoder())
            + (compose.Discard("elevel", "car", "zipcode", "hvalue", "hyears") | Scaler())
        )
        | preprocessing.TargetStandardScaler(linear_model.LinearRegression())
    ),
    "target-function": lambda: (
        Scaler()
        | compose.TargetTransformRegressor(
            linear_model.LinearRegression(), func=math.sinh, inverse_func=math.asinh
        )
    ),
    "target-clipped": lambda: (
        Scaler() | preprocessing.PredClipper(linear_model.LinearRegression(), y_min=-3.0, y_max=4.0)
    ),
    "hard-sampled-linear": lambda: imblearn.HardSamplingRegressor(
        Scaler() | linear_model.LinearRegression(), size=20, p=0.2, seed=1
    ),
    "target-scaled-tree": lambda: preprocessing.TargetStandardScaler(HTR(**Grace)),
    "compiled-target-scaled-forest": lambda: as_arrays(
        preprocessing.TargetStandardScaler(forest.ARFRegressor(n_models=3, grace_period=30, seed=1))
    ),
}
ALL = {**CLASSIFIERS, **NUMERIC_CLASSIFIERS, **REGRESSORS}

CATEGORICAL = [
    *CLASSIFIERS,
    "logistic-one-hot",
    "logistic-ordinal",
    "mean-leaves",
    "compiled-mean-leaves",
]


def stream(records: int = RECORDS, *, categorical: bool = False) -> Iterator[tuple[Row, int]]:
    """Yield observations of a concept, then of another; with categories that come up later."""
    rng = random.Random(5)
    for function, seed in ((1, 7), (4, 8)):
        data = synth.Agrawal(classification_function=function, seed=seed)
        for i, (x, y) in enumerate(data.take(records // 2)):
            row: Row = {name: v / 1000 if v > 1000 else v for name, v in x.items()}
            if categorical:
                row["car"] = f"car {x['car']}"
                row["zipcode"] = rng.choice("abcdefgh"[: 3 + 10 * i // records])
            yield row, y


def target(name: str, x: Mapping[str, Any], y: int) -> Any:
    """Return what a model learns: the class, or a number."""
    if name in REGRESSORS:
        return float(x.get("salary", 50) / 10 + (1 if y else -1) * x.get("age", 50) / 10)
    return bool(y) if "logistic" in name else y


def asked(name: str, *, categorical: bool, missing: bool) -> Iterator[tuple[Any, Row, list[Row]]]:
    """Yield a model that learns, with what is asked now and then."""
    model, rng = ALL[name](), random.Random(3)
    past: list[Row] = []
    records = RECORDS // 2 if missing else RECORDS
    for i, (x, y) in enumerate(stream(records, categorical=categorical)):
        if missing and rng.random() < 0.3:
            x = {f: v for f, v in x.items() if rng.random() < 0.8}  # noqa: PLW2901
        if x and (i < 5 or i % 40 == 0):
            yield model, x, question(x, past or [x], rng)
        past = [*past[-100:], x]
        model.learn_one(x, target(name, x, y))


def slow_if(condition: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if condition else []


def asked_one_by_one(*_: object) -> None:
    pytest.fail("asked one by one")


RARE = {
    "compiled-linear-leaves",
    "compiled-weighted-forest",
    "regression-bagging-arrays",
    "weighted-patches-arrays",
    "median-patches-arrays",
    "logistic-ordinal",
    "leveraging",
    "compiled-leveraging",
    "adwin-bagging",
    "adwin-boosting",
    "bagged-bayes",
    "bole",
    "median-forest",
    "tree-small",
}
"""Models whose kinds of trees and votes others of the quick suite have, too, or nearly."""


@pytest.mark.sampled(30)
@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize(
    ("name", "categorical"),
    [
        # categories come with numbers: models that take both are asked about both
        *(pytest.param(n, False, id=n, marks=slow_if(n in {*CLASSIFIERS, *RARE})) for n in ALL),
        *(
            pytest.param(n, True, id=f"{n}-categories", marks=slow_if(n in RARE))
            for n in CATEGORICAL
        ),
    ],
)
def test_conformance(
    name: str, categorical: bool, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    kept: Any = None
    for i, (model, x, replacements) in enumerate(
        asked(name, categorical=categorical, missing=missing)
    ):
        expected = outputs_of(GenericEvaluator(model), x, replacements)
        before = pickle.dumps((model, x, replacements)) if i % 10 == 0 else b""
        kept = kept or choose(model).evaluator
        with monkeypatch.context() as patch:
            # a forest has no trees before it learns; the compiled loops leave out single inputs
            if i and not missing:
                patch.setattr(GenericEvaluator, "__call__", asked_one_by_one)
            outputs = list(outputs_of(kept, x, replacements))
        assert_same(outputs, expected)
        if "compiled" in name:  # asked in the same loops, it must give the same bits
            assert outputs == list(expected)
        if i % 5 == 0:
            # bit for bit: shards of a pipeline ask about different features
            order = rng.sample(range(len(replacements)), len(replacements))
            for part in (order[:1], order[1:5], order[5:], []):
                some = outputs_of(kept, x, [replacements[row] for row in part])
                assert list(some) == [outputs[row] for row in part]
        if before:
            assert pickle.dumps((model, x, replacements)) == before
            # bit for bit: after a crash an evaluator comes out of a pickle, or is made anew
            restored, _ = pickle.loads(pickle.dumps((kept, model)))
            assert list(outputs_of(restored, x, replacements)) == outputs
            assert list(outputs_of(choose(model).evaluator, x, replacements)) == outputs


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "few"),
    [
        *(
            pytest.param(n, 0, id=f"{n}-wasteful", marks=slow_if(n == "leveraging"))
            for n in CLASSIFIERS
        ),
        *(
            pytest.param(n, category_lists.FEW, id=n, marks=slow_if("tree" not in n))
            for n in [*CLASSIFIERS, "regression-tree", "regression-forest"]
        ),
    ],
)
def test_what_is_asked_before_each_record_is_learned(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the evaluator knows which leaves have learned, unless something else was learned too."""
    monkeypatch.setattr(category_lists, "FEW", few)
    model, rng, past = ALL[name](), random.Random(4), list[Row]()
    evaluate = choose(model).evaluator
    for i, (x, y) in enumerate(stream(600, categorical=name in CLASSIFIERS)):
        replacements = question(x, past or [x], rng)[:12]
        outputs = list(outputs_of(evaluate, x, replacements))
        if i % 9 == 0:
            assert_same(outputs, outputs_of(GenericEvaluator(model), x, replacements))
        learned = [x, rng.choice(past or [x])] if i % 10 == 5 else [x][: i % 25]
        for row in learned:
            model.learn_one(row, target(name, row, y))
        past = [*past[-50:], x]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("value", ["text", None])
@pytest.mark.parametrize(
    "name",
    ["tree", "compiled-tree", "forest", "compiled-forest", "logistic", "linear", "linear-leaves"],
)
def test_what_is_no_number_fails_as_the_model_fails(name: str, value: Any) -> None:
    model = ALL[name]()
    for x, y in stream(1000):
        model.learn_one(x, target(name, x, y))
    for feature in x:
        assert_as_asked(model, x, {feature: value})


def shops(n: int) -> Iterator[Row]:
    """Yield observations of two numbers and a category."""
    rng = random.Random(7)
    for _ in range(n):
        yield {"a": rng.random(), "b": rng.random(), "shop": rng.choice("abcd")}


@pytest.mark.slow
def test_a_categorical_branch_that_grows_while_the_category_is_not_asked_about() -> None:
    model = HT(**Grace)
    evaluate = choose(model).evaluator
    for i, x in enumerate(shops(4000)):
        numbers = {"a": x["a"], "b": x["b"]}
        replacements: list[Row] = [{}, {"a": 0.9}, {"b": 0.1}, {"a": 0.1}]
        outputs = list(outputs_of(evaluate, numbers, replacements))
        assert_same(outputs, outputs_of(GenericEvaluator(model), numbers, replacements))
        high = float(x["a"]) > 0.5
        model.learn_one(x, int(high) if i < 1500 else int(high and x["shop"] in {"a", "b"}))


def test_a_class_that_comes_later_in_another_leaf() -> None:
    model = HT(**Grace, leaf_prediction="nb")
    evaluate = choose(model).evaluator
    *past, x = shops(1501)
    for i, row in enumerate(past):
        high = float(row["a"]) > 0.5
        model.learn_one(row, int(high) if i % 10 else int(row["shop"] in {"a", "b"}))
    replacements: list[Row] = [{}, {"a": 0.9}, {"a": 0.1}]
    assert model.n_leaves > 1
    for late in range(2):
        outputs = list(outputs_of(evaluate, x, replacements))
        assert_same(outputs, outputs_of(GenericEvaluator(model), x, replacements))
        model.learn_one({**x, "a": 0.9}, 2 + late)
        model.learn_one({**x, "a": 0.9}, 2 + late)
        assert_same(
            outputs_of(evaluate, x, replacements),
            outputs_of(GenericEvaluator(model), x, replacements),
        )

"""What an evaluator cannot compute, the model is asked, and other rows do not notice."""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from river import ensemble, forest, linear_model, naive_bayes, preprocessing, tree

from fluxplain.evaluate import Encoding, GenericEvaluator, Inputs, choose
from tests.kit.outputs import assert_as_asked, assert_same
from tests.kit.support import Row, outputs_of

HT = tree.HoeffdingTreeClassifier
Bayes, Counts = naive_bayes.GaussianNB, naive_bayes.MultinomialNB
Scaler = preprocessing.StandardScaler


def pairs(n: int, seed: int = 1) -> Iterator[Row]:
    rng = random.Random(seed)
    for _ in range(n):
        yield {"a": rng.random(), "b": rng.random()}


def test_trees_of_a_mondrian_forest_that_know_different_classes() -> None:
    model = forest.AMFClassifier(2, seed=1)
    for i, x in enumerate(pairs(50)):
        model.learn_one(x, "ab"[i % 2])
    with pytest.raises(TypeError):  # by the first tree only
        model.learn_one({"a": "text", "b": 1.0}, "c")
    assert_as_asked(model, {"a": 0.3, "b": 0.2})
    for i, x in enumerate(pairs(60)):
        model.learn_one(x, "d" if float(x["a"]) > 0.3 else "c" if i > 20 else "a")
        assert_as_asked(model, x, {"a": 0.1})


def test_a_mondrian_forest_of_which_the_aggregation_is_switched_off() -> None:
    model = forest.AMFRegressor(2, seed=1)
    for x in pairs(50):
        model.learn_one(x, x["a"])
    model.use_aggregation = False
    assert_as_asked(model, {"a": 0.3, "b": 0.2}, {"a": 0.9})


@pytest.mark.parametrize("member", [Bayes, HT])
def test_a_vote_of_weight_zero_has_its_classes(member: Callable[[], Any]) -> None:
    model = ensemble.AdaBoostClassifier(member(), n_models=2, seed=1)
    for i, y in enumerate("uvuvuuvvuv"):
        model.learn_one({"a": 1.0 + i % 2}, y)
        assert_as_asked(model, {"a": 1.0})
    model.wrong_weight.update({0: 2.0, 1: 2.0})
    model.correct_weight.update({0: 2.0, 1: 2.0})
    assert_as_asked(model, {"a": 1.0})


@pytest.mark.parametrize("kind", [Counts, naive_bayes.ComplementNB, naive_bayes.BernoulliNB])
def test_large_counts(kind: Callable[[], Any]) -> None:
    model, rng = kind(), random.Random(2)
    for i in range(100):
        x: Row = {f"f{k}": rng.randrange(10**5) for k in range(20)}
        model.learn_one(x, "uvw"[i % 3])
    assert_as_asked(model, x, {"f0": 7, "f1": 0})


def test_a_window_whose_variance_is_rounded_below_zero() -> None:
    model = Scaler(window_size=2) | tree.HoeffdingTreeRegressor(leaf_prediction="mean")
    rng, negative = random.Random(0), 0
    for _ in range(30):
        x: Row = {"a": rng.choice([1.1, 0.1, 0.3]), "b": rng.random()}
        model.learn_one(x, x["b"])
        negative += model["StandardScaler"].vars["a"].get() < 0.0
        assert_as_asked(model, x, {"a": 0.5})
    assert negative


def test_members_that_have_not_learned() -> None:
    model = ensemble.BaggingRegressor(forest.AMFRegressor(1, seed=1), n_models=3, seed=1)
    for x in pairs(5):
        assert_as_asked(model, x)
        model.learn_one(x, x["a"])


def test_members_that_fail_in_different_ways() -> None:
    model = ensemble.BaggingClassifier(Counts(), n_models=2, seed=1)
    for _ in range(5):
        model.learn_one({"a": 1.0, "b": 2.0}, True)
    model[1].learn_one({"a": -20.0, "b": 50.0}, True)
    assert_as_asked(model, {"a": 1.0, "b": 1.0}, {"b": "text"})
    assert outputs_of(choose(model).evaluator, {"a": 1.0, "b": 1.0}, []) == []


@pytest.mark.filterwarnings("ignore::RuntimeWarning:river")
@pytest.mark.parametrize(
    "model",
    [
        Counts(),
        Scaler(with_std=False) | Counts(),
        ensemble.BaggingClassifier(Scaler(with_std=False) | Counts(), n_models=2, seed=1),
        preprocessing.MinMaxScaler() | forest.AMFClassifier(2, seed=1),
        preprocessing.MinMaxScaler() | linear_model.LinearRegression(),
    ],
    ids=["bayes", "scaled", "bagged", "mondrian", "linear"],
)
def test_a_row_that_overflows_changes_no_other(model: Any) -> None:
    is_regressor = "Regression" in repr(model)
    for i, x in enumerate(pairs(60)):
        model.learn_one(x, 0.1 * i if is_regressor else "uvw"[i % 3])
    observed, evaluate = Encoding().observe({"a": 0.3, "b": 0.7}), choose(model).evaluator
    alone = evaluate(Inputs.replacing(observed, [{}])).outputs()
    inputs = Inputs.replacing(observed, [{}, {"a": 1.7e308, "b": -1.7e308}])
    try:
        expected = GenericEvaluator(model)(inputs).outputs()
    except ValueError:
        with pytest.raises(ValueError, match="finite"):
            evaluate(inputs)
    else:
        outputs = evaluate(inputs).outputs()
        assert_same(outputs, expected)
        assert outputs[:1] == alone


@pytest.mark.parametrize("leaves", ["mc", "nba"])
def test_an_evaluator_that_was_there_from_the_first_record_gives_the_bits_of_a_new_one(
    leaves: str,
) -> None:
    """Whatever class it has met first."""
    for seed in range(20):
        rng = random.Random(seed)
        model = HT(grace_period=10, leaf_prediction=leaves)
        kept = choose(model).evaluator
        for i in range(60):
            x: Row = {"a": rng.random()}
            if i % 3 == 1:
                new = choose(model).evaluator
                assert outputs_of(kept, x, [{}]) == outputs_of(new, x, [{}])
            model.learn_one(x, rng.choice("abcdefghijkl"))


def test_a_feature_that_a_window_has_not_seen() -> None:
    model = Scaler(with_std=False, window_size=3) | naive_bayes.BernoulliNB(true_threshold=0.1)
    rng = random.Random(1)
    for i, x in enumerate(pairs(60)):
        row = {**x, f"new {i}": 1.0}
        evaluate = choose(model).evaluator
        first = outputs_of(evaluate, row, [{}])
        assert first == outputs_of(evaluate, row, [{}])
        model.learn_one(x, rng.choice("uvw"))


def test_an_integer_that_no_number_holds_may_be_a_replacement() -> None:
    observed = Encoding().observe({"a": 3})
    assert Inputs.replacing(observed, [{"a": 2**60 + 1}]).dicts() == [{"a": 2**60 + 1}]


def test_exact_means_of_large_outputs() -> None:
    model = ensemble.BaggingRegressor(
        tree.HoeffdingTreeRegressor(leaf_prediction="mean"), n_models=2, seed=1
    )
    for x in pairs(30):
        model.learn_one(x, 1.5e308)
    assert_as_asked(model, {"a": 0.5, "b": 0.5})
    assert math.isfinite(model.predict_one({"a": 0.5, "b": 0.5}))

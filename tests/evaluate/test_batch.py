"""Models that are asked about many inputs in one call."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from river import compat, naive_bayes, preprocessing
from sklearn.linear_model import SGDClassifier, SGDRegressor

from fluxplain.evaluate import GenericEvaluator, choose
from tests.kit.outputs import assert_same, question
from tests.kit.support import Row, normal_rows, outputs_of


class Network:
    """A small network that learns online, as one would write it with torch."""

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self.hidden, self.out = rng.normal(size=(3, 8)), rng.normal(size=8)
        self.calls = 0

    def predict_proba_many(self, rows: Sequence[Row]) -> list[dict[str, float]]:
        self.calls += 1
        inputs = np.array([[x["a"], x["b"], x["c"]] for x in rows], dtype=float)
        sums = (np.maximum(inputs[:, :, None] * self.hidden, 0.0)).sum(axis=1) * self.out
        shares = 1.0 / (1.0 + np.exp(-sums.sum(axis=1)))
        return [{"yes": p, "no": 1.0 - p} for p in shares]

    def predict_proba_one(self, x: Row) -> dict[str, float]:
        return self.predict_proba_many([x])[0]

    def learn_one(self, x: Row, y: object) -> None:
        self.out *= 1.0 + 0.01 * float(x["a"])


MODELS: dict[str, Any] = {
    "network": Network,
    "sklearn-classifier": lambda: compat.convert_sklearn_to_river(
        SGDClassifier(loss="log_loss", random_state=1), classes=["no", "yes"]
    ),
    "sklearn-regressor": lambda: compat.convert_sklearn_to_river(SGDRegressor(random_state=1)),
    "sklearn-scaled": lambda: (
        preprocessing.StandardScaler()
        | compat.convert_sklearn_to_river(SGDRegressor(random_state=1))
    ),
}


def records(n: int) -> list[tuple[Row, str]]:
    return [
        (x, "yes" if float(x["a"]) + float(x["b"]) > 0.0 else "no")
        for x in normal_rows(n, ["a", "b", "c"], seed=2)
    ]


@pytest.mark.parametrize("name", MODELS)
def test_the_answers_are_those_of_asking_one_by_one(name: str) -> None:
    model, rng = MODELS[name](), random.Random(1)
    choice = choose(model)
    assert choice.kind == "batch"
    past: list[Row] = []
    for x, y in records(50):
        past.append(x)
        asked = question(x, past, rng)
        assert_same(
            outputs_of(choice.evaluator, x, asked), outputs_of(GenericEvaluator(model), x, asked)
        )
        model.learn_one(x, float(y == "yes") if "regressor" in name or "scaled" in name else y)


def test_all_inputs_take_one_call() -> None:
    model = Network()
    outputs_of(
        choose(model).evaluator, {"a": 1.0, "b": 2.0, "c": 3.0}, [{}, {"a": 2.0}, {"b": 1.0}]
    )
    assert model.calls == 1


def test_a_river_model_of_many_is_evaluated_in_batches_only_if_configured() -> None:
    model = naive_bayes.BernoulliNB()
    rng = random.Random(1)
    for _ in range(200):
        x = {"a": rng.random() < 0.5, "b": rng.random() < 0.2}
        model.learn_one(x, x["a"] or x["b"])
    assert choose(model).kind == "naive-bayes"
    evaluate = choose(model, "batch").evaluator
    replacements = [{}, {"a": True}, {"a": False, "b": False}]
    assert_same(
        outputs_of(evaluate, {"a": True, "b": True}, replacements),
        outputs_of(GenericEvaluator(model), {"a": True, "b": True}, replacements),
    )


def test_an_input_that_fails_gives_its_own_error() -> None:
    with pytest.raises(KeyError, match="c"):
        outputs_of(choose(Network()).evaluator, {"a": 1.0, "b": 2.0}, [{}])


def test_a_model_that_cannot_be_asked_so_is_named() -> None:
    with pytest.raises(TypeError, match=r"KNN.*neither predict_proba_many nor predict_many"):
        choose(type("KNN", (), {"predict_one": lambda *_: 1.0})(), "batch")

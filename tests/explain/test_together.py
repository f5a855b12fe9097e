"""Explaining together gives what explaining one by one gives."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from river import forest, linear_model, preprocessing

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Inputs
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from tests.kit.support import Scripted, agrawal

FEATURES = ["salary", "age", "loan"]


def explainers(model: Any, evaluator: Any = "auto", **options: Any) -> list[Any]:
    options["evaluator"] = evaluator
    return [
        IncrementalPFI(model, FEATURES, seed=1, reservoir_size=20, **options),
        IncrementalSAGE(model, FEATURES, seed=2, reservoir_size=30, **options),
        IncrementalPDP(model, FEATURES, seed=3, storage_size=25, evaluator=evaluator),
    ]


@pytest.mark.parametrize(
    "factory",
    [
        lambda: forest.ARFClassifier(n_models=3, seed=1),
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ],
)
def test_the_estimates_are_those_of_each(factory: Callable[[], Any]) -> None:
    model = factory()
    together, alone = explainers(model), explainers(model)
    for x, y in agrawal(300):
        numbers: dict[str, Any] = {name: x[name] for name in FEATURES}
        estimates = explain_together(together, numbers, bool(y))
        pfi, sage, pdp = alone
        assert estimates == [
            pfi.explain_one(numbers, bool(y)),
            sage.explain_one(numbers, bool(y)),
            pdp.explain_one(numbers),
        ]
        model.learn_one(numbers, bool(y))
    assert [each.std_errors for each in together] == [each.std_errors for each in alone]


def test_one_that_gets_no_output_does_not_keep_it_from_the_others() -> None:
    # None for every input on which age is replaced, as a model that was never told of it might
    def answer(x: Mapping[str, Any]) -> Any:
        return None if x["age"] != 1.0 else x["loan"]

    model = Scripted(answer)
    options: dict[str, Any] = {"loss": "squared_error"}
    together, alone = explainers(model, **options), explainers(model, **options)
    del together[0], alone[0]
    for i in range(100):
        x = {"salary": 1.0, "age": 1.0, "loan": float(i % 7)}
        if i == 50:
            x["age"] = 2.0
        estimates = explain_together(together, x, 1.0)
        assert estimates == [alone[0].explain_one(x, 1.0), alone[1].explain_one(x)]


def test_explainers_of_different_models_are_refused() -> None:
    one, other = (linear_model.LinearRegression() for _ in range(2))
    with pytest.raises(ValueError, match="different models"):
        explain_together(
            [explainers(one)[2], explainers(other)[2]], dict.fromkeys(FEATURES, 1.0), 1.0
        )


class Strided:
    """An evaluator whose outputs are no contiguous array, as those of some models."""

    def __init__(self, *, is_strided: bool) -> None:
        self.is_strided = is_strided

    def __call__(self, inputs: Inputs) -> Table:
        p = 1.0 / (1.0 + np.abs(inputs.rows).sum(axis=1))
        numbers = np.stack([p, 1.0 - p], axis=1)
        return Table((False, True), np.asfortranarray(numbers) if self.is_strided else numbers)


def test_the_layout_of_the_outputs_does_not_matter() -> None:
    strided = explainers(None, evaluator=Strided(is_strided=True))
    plain = explainers(None, evaluator=Strided(is_strided=False))
    for i in range(150):
        x = {name: float(i * (k + 2) % 7) for k, name in enumerate(FEATURES)}
        assert explain_together(strided, x, y=i % 2 > 0) == explain_together(plain, x, y=i % 2 > 0)


def test_a_missing_label_is_refused_and_changes_nothing() -> None:
    pfi, sage, _ = explainers(Scripted(lambda x: x["age"]), loss="squared_error")
    for i in range(150):
        x = {name: float(i * (k + 2) % 7) for k, name in enumerate(FEATURES)}
        if i == 120:
            before = pfi.values, sage.values
            for each in (pfi, sage):
                with pytest.raises(TypeError, match="the label is None"):
                    explain_together([each], x)
            assert (pfi.values, sage.values) == before
        explain_together([pfi, sage], x, 1.0)
    assert all(map(math.isfinite, [*pfi.values.values(), *sage.values.values()]))


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_an_output_that_is_too_large_is_refused_and_moves_no_value(kind: Any) -> None:
    outputs = iter([1.0] * 200)

    def answer(x: Mapping[str, Any]) -> float:
        return 1e200 if x["a"] == 7.0 else next(outputs) * x["a"]

    explainer = kind(Scripted(answer), ["a"], loss="squared_error", seed=1, reservoir_size=5)
    for t in range(10):
        explainer.explain_one({"a": t / 10}, 0.0)
    before = explainer.values
    with pytest.raises(ValueError, match=r"the increment of 'a' is not finite: .* the label 0\.0"):
        explainer.explain_one({"a": 7.0}, 0.0)
    assert explainer.values == before

"""Explaining together gives what explaining one by one gives."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from river import forest, linear_model, preprocessing

from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE, explain_together
from tests.kit.support import Scripted, agrawal

FEATURES = ["salary", "age", "loan"]


def explainers(model: Any, **options: Any) -> list[Any]:
    return [
        IncrementalPFI(model, FEATURES, seed=1, reservoir_size=20, **options),
        IncrementalSAGE(model, FEATURES, seed=2, reservoir_size=30, **options),
        IncrementalPDP(model, FEATURES, seed=3, storage_size=25),
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

"""Linear models behind encoders: what is encoded by feature, and what must be asked one by one."""

from collections.abc import Callable
from typing import Any

import pytest
from river import compose, linear_model, preprocessing

from fluxplain.evaluate import GenericEvaluator, choose
from fluxplain.evaluate.encoded import EncodedLinearEvaluator
from tests.kit.outputs import assert_same
from tests.kit.support import Row, outputs_of

Scaler, OneHot = preprocessing.StandardScaler, preprocessing.OneHotEncoder
Logistic = linear_model.LogisticRegression

ROWS: list[Row] = [
    {"c": "u", "c_u": 1.0, "n": -1.0},
    {"c": "v", "c_u": 3.0, "n": 2.5},
    {"c": "w", "c_u": -2.0, "n": 0.5},
]


def learned(model: Any) -> Any:
    for _ in range(20):
        for i, x in enumerate(ROWS):
            model.learn_one(x, i == 1)
    return model


@pytest.mark.parametrize(
    "transformers",
    [
        lambda: (compose.Select("n", "c_u") | Scaler()) + (compose.Select("c") | OneHot()),
        lambda: (compose.Select("n") | Scaler()) + (compose.Select("c") | OneHot()),
        lambda: (compose.Select("n") | Scaler()) + (compose.Select("n") | Scaler()),
        lambda: (
            (compose.Select("n") | preprocessing.Binarizer())
            + (compose.Select("c") | OneHot(categories={"c": {"u", "v"}}))
        ),
        lambda: preprocessing.OrdinalEncoder() | Scaler(),
        lambda: compose.Discard("c") | compose.Select("n"),
    ],
)
def test_the_outputs_are_those_of_single_calls(transformers: Callable[[], Any]) -> None:
    model = learned(transformers() | Logistic())
    evaluator = choose(model).evaluator
    assert type(evaluator) is EncodedLinearEvaluator
    replacements: list[Row] = [{}, {"c": "v"}, {"c": "new"}, {"n": 7.5, "c_u": 0.0}, {"c_u": 1.5}]
    expected = outputs_of(GenericEvaluator(model), ROWS[0], replacements)
    assert_same(list(outputs_of(evaluator, ROWS[0], replacements)), expected)


@pytest.mark.parametrize(
    "transformers",
    [
        lambda: compose.Select("c") | OneHot() | compose.Select("c_u"),
        lambda: compose.Select("c") | OneHot() | Scaler(),
        lambda: compose.Select("c") | OneHot(drop_first=True),
        lambda: compose.Select("n") | preprocessing.Normalizer(),
    ],
)
def test_what_encodes_features_together_is_asked_one_by_one(transformers: Any) -> None:
    assert choose(transformers() | Logistic()).kind == "generic"

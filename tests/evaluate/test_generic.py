"""The generic evaluator: the same answers as asking one by one, and no others."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import forest, linear_model, multiclass, preprocessing

from fluxplain.evaluate import GenericEvaluator, Output, Value, evaluator_for
from tests.kit.support import (
    PROPERTY,
    AgrawalRule,
    Linear,
    Scripted,
    agrawal,
    normal_rows,
    outputs_of,
)

NUMERIC = ["salary", "commission", "age", "loan"]


class Answer:
    """A model with ``predict_one`` only, that gives one answer."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def predict_one(self, x: object) -> object:
        return self.answer


@PROPERTY
@given(
    st.fixed_dictionaries({"a": st.floats(-9, 9), "b": st.floats(-9, 9)}),
    st.lists(
        st.dictionaries(st.sampled_from(["a", "b"]), st.floats(-9, 9), max_size=2),
        max_size=10,
    ),
)
def test_the_answers_are_those_of_asking_one_by_one(
    x: dict[str, float], replacements: list[dict[str, float]]
) -> None:
    model = Linear({"a": 2.0, "b": -3.0})
    assert outputs_of(GenericEvaluator(model), x, replacements) == [
        model.predict_one({**x, **replacement}) for replacement in replacements
    ]


@pytest.mark.parametrize(
    "factory",
    [
        lambda: forest.ARFClassifier(n_models=3, seed=1),
        lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    ],
)
def test_a_river_classifier_is_asked_for_probabilities(factory: Callable[[], Any]) -> None:
    model = factory()
    evaluate = GenericEvaluator(model)
    for x, y in agrawal(300):
        numbers: dict[str, Value] = {name: x[name] for name in NUMERIC}
        replacements: list[Mapping[str, Value]] = [{}, {"age": 30}, {"age": 70, "salary": 60_000.0}]
        expected = [model.predict_proba_one({**numbers, **each}) for each in replacements]
        assert outputs_of(evaluate, numbers, replacements) == expected
        model.learn_one(numbers, bool(y))


def test_nothing_to_ask_gives_no_answers() -> None:
    assert outputs_of(evaluator_for(AgrawalRule()), {}, []) == []


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (2, 2.0),
        (2.5, 2.5),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3.0),
        (np.array([4.0]), 4.0),
        (True, {True: 1.0}),
        (np.bool_(False), {False: 1.0}),
        ("spam", {"spam": 1.0}),
        (np.str_("spam"), {"spam": 1.0}),
        ({np.str_("a"): np.float64(0.25), np.int64(1): 0.75}, {"a": 0.25, 1: 0.75}),
        ({}, {}),
    ],
)
def test_answers_become_plain_numbers_and_labels(answer: object, expected: Output) -> None:
    [output] = outputs_of(evaluator_for(Answer(answer)), {}, [{}])
    assert output == expected
    if isinstance(output, dict):
        assert {type(p) for p in output.values()} <= {float}
        assert {type(label) for label in output} <= {bool, int, str}
    else:
        assert type(output) is float


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "gave no output"),
        (math.nan, "not finite: nan"),
        (math.inf, "not finite: inf"),
        (-math.inf, "not finite: -inf"),
        (np.float64("nan"), "not finite"),
        ({"a": math.nan}, "not finite"),
        ({"a": None}, "gave no output"),
        ({"a": "much"}, "neither a number nor a class"),
        ([1.0, 2.0], "neither a number nor a class"),
        (object(), "neither a number nor a class"),
    ],
)
def test_what_cannot_be_explained_is_refused_with_its_reason(answer: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        outputs_of(evaluator_for(Answer(answer)), {}, [{}])


def test_one_wrong_answer_among_many_is_refused() -> None:
    model = Scripted(lambda x: math.inf if x["a"] > 2.0 else 1.0)
    with pytest.raises(ValueError, match="not finite"):
        outputs_of(evaluator_for(model), {"a": 0.0}, [{}, {"a": 1.0}, {"a": 3.0}])


def test_a_classifier_without_probabilities_is_sure_of_its_class() -> None:
    model = multiclass.OutputCodeClassifier(
        linear_model.LogisticRegression(), code_size=4, coding_method="random", seed=1
    )
    evaluate = evaluator_for(model)
    assert outputs_of(evaluate, {"a": 1.0}, [{}]) == [{}]
    for x in normal_rows(50, ["a"], seed=1):
        model.learn_one(x, "positive" if float(x["a"]) > 0.0 else "negative")
    assert outputs_of(evaluate, {"a": 1.0}, [{}]) == [{model.predict_one({"a": 1.0}): 1.0}]


@pytest.mark.parametrize("model", [object(), preprocessing.StandardScaler(), "a string", None])
def test_a_model_that_cannot_be_asked_is_named(model: object) -> None:
    with pytest.raises(TypeError, match=f"{type(model).__name__} cannot be evaluated"):
        evaluator_for(model)


def test_a_models_own_error_passes_through() -> None:
    with pytest.raises(KeyError, match="age"):
        outputs_of(evaluator_for(AgrawalRule()), {}, [{}])

"""Losses against their formulas."""

import importlib
import itertools
import math
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import river
from hypothesis import given
from hypothesis import strategies as st
from river import base, compose, linear_model, preprocessing

from fluxplain.evaluate import Label, Output
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels
from fluxplain.explain import LOSSES, IncrementalPFI, IncrementalSAGE, get_loss, loss_kernels
from fluxplain.explain.losses import (
    Loss,
    Target,
    absolute_error,
    brier,
    compiled_loss,
    cross_entropy,
    loss_for,
    losses_on,
    squared_error,
    zero_one,
)
from tests.kit.support import NUMBERS, PROPERTY, Linear

LABELS = st.sampled_from(["a", "b", "c"])
PROBABILITIES = st.dictionaries(LABELS, st.floats(0.0, 1.0))


@PROPERTY
@given(LABELS, PROBABILITIES)
def test_cross_entropy_is_the_clipped_negative_logarithm(y: str, p: dict[Label, float]) -> None:
    expected = -math.log(min(max(p.get(y, 0.0), 1e-15), 1 - 1e-15))
    assert cross_entropy(y, p) == expected
    assert 0.0 < cross_entropy(y, p) <= -math.log(1e-15)


@PROPERTY
@given(LABELS, PROBABILITIES)
def test_brier_is_the_squared_distance_from_the_indicator(y: str, p: dict[Label, float]) -> None:
    expected = sum((p.get(label, 0.0) - (label == y)) ** 2 for label in "abc")
    assert brier(y, p) == pytest.approx(expected)


@PROPERTY
@given(LABELS, PROBABILITIES.filter(bool))
def test_zero_one_compares_the_most_probable_class(y: str, p: dict[Label, float]) -> None:
    highest = max(p.values())
    winner = next(label for label, probability in p.items() if probability == highest)
    assert zero_one(y, p) == (0.0 if winner == y else 1.0)


@PROPERTY
@given(NUMBERS, NUMBERS)
def test_regression_losses_are_their_formulas(y: float, output: float) -> None:
    assert absolute_error(y, output) == abs(output - y)
    assert squared_error(y, output) == pytest.approx((output - y) ** 2)


@PROPERTY
@given(
    st.lists(st.tuples(st.floats(0.1, 0.8), st.floats(0.1, 0.8)), min_size=2, max_size=5),
    st.integers(2, 3),
    st.sampled_from([squared_error, brier, cross_entropy]),
)
def test_the_excess_is_what_the_loss_of_a_mean_of_few_outputs_has_too_much(
    outputs: list[tuple[float, float]], m: int, loss: Loss
) -> None:
    """Over all draws of m of some equally likely outputs; their variance is estimated."""
    labels: Labels = (None,) if loss is squared_error else ("a", "b")
    numbers, y = np.array(outputs)[:, : len(labels)], 0.7 if loss is squared_error else "b"
    compiled = compiled_loss(loss, [y], labels)
    assert compiled is not None
    kind, [label], [number], _ = compiled

    def loss_on(output: Floats) -> float:
        return losses_on(loss, [y], labels, output[None, None]).item()

    plain, corrected = [], []
    for drawn in itertools.product(numbers, repeat=m):
        mean, variances = np.mean(drawn, axis=0), np.var(drawn, axis=0, ddof=1) / m
        plain.append(loss_on(mean))
        corrected.append(plain[-1] - loss_kernels.excess(kind, mean, variances, label, number))
    exact = loss_on(numbers.mean(axis=0))
    bias, remaining = np.mean(plain) - exact, np.mean(corrected) - exact
    if loss is cross_entropy:
        assert abs(remaining) <= 0.6 * abs(bias) + 1e-12
    else:
        assert abs(remaining) <= 1e-12
    blocks = np.array([[[0.5] * len(labels), mean, np.zeros(len(labels)), variances]])
    fall = loss_kernels.loss_falls(*compiled, blocks).item()
    assert fall == pytest.approx(loss_on(blocks[0, 0]) - corrected[-1])


@PROPERTY
@given(st.integers(0, 3), st.integers(0, 3))
def test_zero_one_compares_a_number_as_it_is(y: int, output: int) -> None:
    assert zero_one(y, float(output)) == float(y != output)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cross_entropy", -math.log(1e-15)), ("zero_one", 1.0), ("brier", 1.0)],
)
def test_no_probabilities_at_all_have_the_loss_of_knowing_nothing(
    name: str, expected: float
) -> None:
    assert LOSSES[name]("a", {}) == expected


@pytest.mark.parametrize("name", ["cross_entropy", "brier"])
def test_a_classification_loss_refuses_a_number_and_says_what_to_use(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} needs class probabilities.*absolute_error"):
        LOSSES[name](1, 0.5)


@pytest.mark.parametrize("name", ["absolute_error", "squared_error"])
def test_a_regression_loss_refuses_probabilities_and_says_what_to_use(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} needs a number.*cross_entropy"):
        LOSSES[name](1.0, {1: 0.5})


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_the_loss_by_default_suits_the_model(explainer: type) -> None:
    numbers, classes = linear_model.LinearRegression(), linear_model.LogisticRegression()
    scaled = preprocessing.StandardScaler() | linear_model.LinearRegression()
    losses = [explainer(model, ["a"]).loss for model in (numbers, scaled, classes)]
    assert losses == [squared_error, squared_error, cross_entropy]


@pytest.mark.parametrize("y", ["yes", None])
def test_a_label_that_is_no_class_of_the_model_is_refused(y: Any) -> None:
    model = linear_model.LogisticRegression()
    pfi = IncrementalPFI(model, ["a"], reservoir_size=2, seed=1)
    for i in range(5):
        pfi.explain_one({"a": float(i)}, i % 2 == 0)
        model.learn_one({"a": float(i)}, i % 2 == 0)
    kind = TypeError if y is None else ValueError
    with pytest.raises(kind, match=f"^the label is {y!r}, but "):
        pfi.explain_one({"a": 1.0}, y)


def test_text_for_a_model_of_numbers_is_named_from_the_first_observation_on() -> None:
    model = linear_model.LogisticRegression()
    pfi = IncrementalPFI(model, ["a", "b"], reservoir_size=2, seed=1)
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    with pytest.raises((TypeError, ValueError), match="the feature 'b' is 'old', but the model"):
        pfi.explain_one({"a": 1.0, "b": "old"}, True)


def river_models() -> Iterator[object]:
    """Yield each of River's models that it makes for its own tests, and an empty pipeline."""
    yield compose.Pipeline()
    for module in pkgutil.iter_modules(river.__path__):
        found: Any = vars(importlib.import_module(f"river.{module.name}")).values()
        for each in found:
            if not (isinstance(each, type) and issubclass(each, base.Estimator)):
                continue
            kind: Any = each
            with suppress(Exception):  # abstract ones cannot be made
                yield kind(**next(iter(kind._unit_test_params())))


def test_every_model_of_river_has_a_loss_by_default() -> None:
    made = {type(model).__name__: loss_for(model, None) for model in river_models()}
    assert len(made) > 100
    for name in ("OneVsRestClassifier", "BaggingClassifier", "OutputCodeClassifier", "Pipeline"):
        assert made[name] is cross_entropy
    for name in ("BaggingRegressor", "PredClipper", "HardSamplingRegressor"):
        assert made[name] is squared_error


def test_the_warm_up_needs_no_label() -> None:
    explainer = IncrementalPFI(linear_model.LogisticRegression(), ["a"])
    assert explainer.explain_one({"a": 1.0}, None) == {"a": 0.0}  # type: ignore[arg-type]


def test_an_unknown_loss_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"'hinge'.*") as error:
        get_loss("hinge")
    assert all(name in str(error.value) for name in LOSSES)


def twice_the_distance(y: Target, output: Output) -> float:
    assert isinstance(output, float)
    return 2.0 * abs(output - float(y))


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
def test_a_users_loss_works_in_every_explainer_with_a_loss(
    kind: type[IncrementalPFI] | type[IncrementalSAGE],
) -> None:
    model = Linear({"a": 1.0, "b": 2.0})
    mine, known = (
        kind(model, ["a", "b"], loss=loss, reservoir_size=3, seed=1)
        for loss in (twice_the_distance, "absolute_error")
    )
    for t in range(30):
        x = {"a": float(t % 5), "b": float(t % 7)}
        mine.explain_one(x, t % 3)
        known.explain_one(x, t % 3)
    assert mine.values == pytest.approx({name: 2.0 * v for name, v in known.values.items()})
    assert known.values["b"] != 0.0

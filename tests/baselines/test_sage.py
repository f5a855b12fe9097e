"""SAGE values of a batch against the definition of the Shapley value."""

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from river import linear_model

from fluxplain.baselines import batch_sage
from fluxplain.evaluate import Inputs, Table
from fluxplain.explain import get_loss
from tests.kit.support import Linear, Scripted, normal_rows

FEATURES = ["a", "b", "c"]


def curved(x: Mapping[str, Any]) -> float:
    return float(x["a"] ** 2 + 3.0 * x["a"] * x["b"] - x["c"])


XS = normal_rows(6, FEATURES, seed=1)
YS = [curved(x) + 0.5 * (-1) ** t for t, x in enumerate(XS)]


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("inner_samples", [1, 3, "all"])
@pytest.mark.parametrize("linear", [True, False])
def test_values_sum_to_the_gain_over_the_mean(loss: str, inner_samples: Any, linear: bool) -> None:
    """Efficiency, whatever the random numbers, also where answers come as arrays."""
    model: Any = Scripted(curved)
    if linear:
        model = linear_model.LinearRegression(l2=0.0)
        for x, y in zip(XS, YS, strict=True):
            model.learn_one(x, y)
    ell = get_loss(loss)
    found = batch_sage(model, XS, YS, FEATURES, loss=loss, inner_samples=inner_samples, seed=2)
    outputs = [model.predict_one(x) if linear else curved(x) for x in XS]
    mean = statistics.fmean(outputs)
    gains = [ell(y, mean) - ell(y, out) for y, out in zip(YS, outputs, strict=True)]
    assert sum(found.values()) == pytest.approx(statistics.fmean(gains))


def test_a_constant_feature_has_no_value_and_one_alone_has_all() -> None:
    xs = [{**x, "c": 5.0} for x in XS]
    model = Linear({"a": 1.0, "b": 2.0, "c": 1.0})
    found = batch_sage(model, xs, YS, FEATURES, loss="squared_error", inner_samples=1, seed=1)
    assert found["c"] == 0.0
    alone = batch_sage(model, xs, YS, ["a"], loss="squared_error", seed=1)["a"]
    outputs = [model.predict_one(x) for x in xs]
    mean = statistics.fmean(outputs)
    gains = [(mean - y) ** 2 - (out - y) ** 2 for y, out in zip(YS, outputs, strict=True)]
    assert alone == pytest.approx(statistics.fmean(gains))


def test_a_class_that_some_outputs_lack_counts_as_zero() -> None:
    """The mean prediction knows both classes, each output only one."""
    model = Scripted(lambda x: {("yes" if x["a"] > 0.0 else "no"): 1.0})
    ys = ["yes" if float(x["a"]) > 0.0 else "no" for x in XS]
    found = batch_sage(model, XS, ys, ["a", "b"], loss="brier", seed=1)
    share = ys.count("yes") / len(ys)
    # the model is always right, and the mean prediction has the squared distance to the label twice
    gains = [2.0 * (1.0 - share if y == "yes" else share) ** 2 for y in ys]
    assert sum(found.values()) == pytest.approx(statistics.fmean(gains))


def forgetful(inputs: Inputs) -> Table:
    """Know only the class that the observation's label is of."""
    return Table((float(inputs.observed.x["a"]) > 0.0,), np.ones((len(inputs.rows), 1)))


def test_a_class_of_the_mean_prediction_that_outputs_lack_counts_too() -> None:
    ys = [float(x["a"]) > 0.0 for x in XS]
    found = batch_sage(None, XS, ys, ["a"], loss="brier", evaluator=forgetful)
    share = ys.count(True) / len(ys)
    gains = [2.0 * (1.0 - share if y else share) ** 2 for y in ys]
    assert found["a"] == pytest.approx(statistics.fmean(gains))

"""Standard errors of iPDP's importances and of the points of its curves."""

import math
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate.table import table_of
from fluxplain.explain import IncrementalPDP
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import Linear, Scripted, normal_rows

LEVELS = {"u": 1.0, "v": 2.0}


def numbers(effect: object) -> list[float]:
    """The effect as one curve."""
    assert isinstance(effect, list)
    return effect


def test_the_standard_error_covers_the_importance_of_the_true_curve() -> None:
    model = Scripted(lambda x: float(x["a"] * (1.0 + x["b"])))
    rows = [{**x, "a": float(t % 2)} for t, x in enumerate(normal_rows(3_000, ["b"], seed=6))]
    pdp = IncrementalPDP(model, ["a"], alpha=0.005, grid_size=5, seed=1)
    for x in rows:
        pdp.explain_one(x)
    # E[1 + b] = 1: the true curve is the line through the grid's points
    true = float(np.std([0.0, 0.25, 0.5, 0.75, 1.0], ddof=1))
    error = pdp.std_errors["a"]
    # b has standard deviation 1, so the importance of one ICE curve scatters by `true`
    expected = true * math.sqrt(0.005 / 1.995)
    # 3,000 contributions, and sums of about 200 of them: 15 degrees of freedom
    assert error == pytest.approx(expected, rel=3.0 / math.sqrt(2.0 * 15.0))
    assert abs(pdp.values["a"] - true) < 4.0 * error
    assert pdp.confidence(0.25)["a"] == pytest.approx(2.0 * error)


def test_the_standard_error_of_a_point_is_that_of_the_mean_output_there() -> None:
    """On grids that stay where they are, of numbers and of categories."""
    model = Scripted(lambda x: float(x["a"] * x["b"] + LEVELS[x["c"]] * x["b"] ** 2))
    pdp = IncrementalPDP(model, ["a", "c"], alpha=0.01, grid_size=3, seed=1)
    means = ExponentialMeans(5, [0.01], reach=pdp._method.reach)
    for t, x in enumerate(normal_rows(1_500, ["b"], seed=6)):
        a, b, c = float(t % 2), float(x["b"]), "uv"[t // 2 % 2]
        pdp.explain_one({"a": a, "b": b, "c": c})
        if pdp.increments:
            own = LEVELS[c] * b * b
            at_numbers = [own, 0.5 * b + own, b + own]
            means.update(np.array([[*at_numbers, *(a * b + LEVELS[v] * b * b for v in "uv")]]))
    errors = [*numbers(pdp.curve_errors["a"]), *numbers(pdp.curve_errors["c"])]
    assert errors == pytest.approx(means.std_errors[0].tolist(), rel=1e-9)
    assert all(map(math.isfinite, errors))


def test_points_that_come_and_go_have_the_error_of_the_shift_they_share() -> None:
    pdp = IncrementalPDP(Linear({"a": 3.0, "b": 1.0}), ["a"], alpha=0.01, grid_size=4, seed=1)
    means = ExponentialMeans(1, [0.01], reach=pdp._method.reach)
    assert pdp.curve_errors == {"a": []}
    for x in normal_rows(1_500, ["a", "b"], seed=2):
        pdp.explain_one(x)
        if pdp.increments:
            means.update(np.array([[x["b"]]], np.float64))
    errors = numbers(pdp.curve_errors["a"])
    assert len(errors) > 4
    # the points' own errors are 0, and a point inherits the error of the first ones
    assert errors == pytest.approx([means.std_errors.item()] * len(errors), rel=1e-6)


def test_errors_of_points_are_no_larger_than_the_curve_while_a_feature_moves_far() -> None:
    """A step has a steep slope, which says nothing about outputs far away."""
    model = Scripted(lambda x: (0.8 if x["a"] > 0.0 else 0.2) + 0.001 * x["b"])
    pdp = IncrementalPDP(model, ["a"], alpha=0.01, grid_size=5, seed=1)
    largest = []
    for t, x in enumerate(normal_rows(2_000, ["a", "b"], seed=2)):
        pdp.explain_one({**x, "a": float(x["a"]) + 100.0 * (t >= 1_000)})
        if t == 999 or t >= 1_100:
            errors = numbers(pdp.curve_errors["a"])
            largest.append(max(filter(math.isfinite, errors), default=0.0))
    assert 0.0 < largest[0] < 0.2
    assert max(largest) < 0.6
    assert all(map(math.isfinite, errors))


def test_a_slope_without_bound_leaves_errors_known() -> None:
    """The points are so close that the slope between them is infinite."""
    curves, which = RankCurves(1, 0.1, reach=20), np.zeros(1, np.intp)
    curves.move(which, np.array([[0.0, 1e-200, 2e-200]]), table_of([0.0, 1e120, -1e120]))
    for t in range(600):
        curves.move(which, np.array([[0.0, 1.0, 2.0]]), table_of([0.0, 1.0, float(t % 2)]))
    assert np.isfinite(curves.effect_errors(0)).all()


@pytest.mark.parametrize("of_numbers", [True, False])
def test_points_have_the_errors_of_all_outputs_when_a_third_class_appears(of_numbers: bool) -> None:
    """Of two classes only one is shown; then all three are."""
    ranks = RankCurves(1, 0.05, reach=20)
    keyed: KeyedCurve[str] = KeyedCurve(0.05, reach=20)
    curves = ranks if of_numbers else keyed
    for t, x in enumerate(normal_rows(320, ["b"], seed=3)):
        p = 0.5 + 0.1 * math.tanh(float(x["b"]))
        output: dict[Any, float] = {"a": p, "b": 1.0 - p, **({"c": 0.0} if t >= 300 else {})}
        answers = table_of([output, output])
        if of_numbers:
            ranks.move(np.zeros(1, np.intp), np.array([[0.0, 1.0]]), answers)
        else:
            keyed.update_table(["u", "v"], answers)
    labels, _ = curves.effects(0)
    assert labels == ("a", "b", "c")
    a, b, c = curves.effect_errors(0)
    assert a == pytest.approx(b)
    assert min(a) > 0.0
    assert c.tolist() == [0.0, 0.0]

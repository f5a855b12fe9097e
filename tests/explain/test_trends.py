"""Trends: the signed numbers of ICE curves."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label, Table
from fluxplain.explain import IncrementalPDP, curve_kernels
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.curve_estimates import contributions
from fluxplain.explain.effects import Curve, Effects
from fluxplain.explain.ranks import RankCurves
from tests.kit.support import NUMBERS, PROPERTY, Row, Scripted

CURVES = st.lists(NUMBERS, min_size=1, max_size=12)
CLASSES: tuple[Label, ...] = ("a", "b", "c")


def trend(curve: Sequence[float]) -> float:
    found: float = curve_kernels.trend(np.array(curve), curve_kernels.trend_factors(len(curve)))
    return found


def defined(curve: Sequence[float]) -> float:
    """Return the trend after its definition."""
    m = len(curve)
    if m == 1:
        return 0.0
    u = 2.0 * np.arange(m) / (m - 1) - 1.0
    w = u + (u**2 - np.mean(u**2)) / 2.0
    return float(w / np.linalg.norm(w) @ curve / np.sqrt(m - 1))


@PROPERTY
@given(CURVES)
def test_a_trend_is_as_defined_turns_with_the_curve_and_is_within_its_deviation(
    curve: list[float],
) -> None:
    scale = 1e-12 * max(map(abs, curve))
    found = trend(curve)
    assert found == pytest.approx(defined(curve), rel=1e-9, abs=scale)
    assert trend([-v for v in curve]) == -found
    assert abs(found) <= curve_kernels.deviation(np.array(curve)) * (1.0 + 1e-12) + scale
    assert trend([curve[0]] * len(curve)) == 0.0


@PROPERTY
@given(st.sets(st.integers(-1000, 1000), min_size=2, max_size=12))
def test_a_curve_that_rises_has_a_positive_trend_and_one_that_falls_a_negative(
    levels: set[int],
) -> None:
    curve = sorted(map(float, levels))
    assert trend(curve) > 0.0 > trend(curve[::-1])
    step = [0.0] * (len(curve) - 1)
    assert trend([*step, 1.0]) > 0.0 > trend([1.0, *step])


@pytest.mark.parametrize("m", [3, 4, 5, 10, 100])
def test_a_curve_shaped_like_a_u_has_a_trend(m: int) -> None:
    bowl = np.linspace(-1.0, 1.0, m) ** 2
    share = 0.1 * curve_kernels.deviation(bowl)
    assert trend([*bowl]) > share
    assert trend([*-bowl]) < -share


def of_classes(categorical: bool, table: Table) -> float:
    """Return the trend of an ICE curve over three numbers, or three categories."""
    if categorical:
        return KeyedCurve[str](0.1, by_range=True).update_table(["u", "v", "w"], table)[1]
    moved = RankCurves(1, 0.1).move(np.zeros(1, np.intp), np.array([[0.0, 1.0, 2.0]]), table)
    return contributions(moved)[0][1]


@PROPERTY
@given(st.booleans(), st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=3, max_size=3))
def test_the_trend_of_several_classes_contrasts_the_later_with_the_earlier(
    categorical: bool, rows: list[tuple[float, float, float]]
) -> None:
    """Two classes have one curve, and so its trend; the order in which they come is irrelevant."""
    numbers = np.array(rows)
    several = of_classes(categorical, Table(CLASSES, numbers))
    first, _, last = (defined(numbers[:, c].tolist()) for c in range(3))
    scale = 1e-9 * np.abs(numbers).max()
    assert several == pytest.approx((last - first) / np.sqrt(2.0), rel=1e-9, abs=scale)
    assert of_classes(categorical, Table(CLASSES[::-1], numbers[:, ::-1].copy())) == several
    two = of_classes(categorical, Table(CLASSES[:2], numbers[:, :2].copy()))
    assert two == trend(numbers[:, 1].tolist())
    assert of_classes(categorical, Table((), numbers[:, :0].copy())) == 0.0


def explained(
    output: Callable[[Any], Any], rows: Sequence[Row], features: Sequence[str]
) -> IncrementalPDP:
    pdp = IncrementalPDP(Scripted(output), features, grid_size=4, storage_size=6, seed=1)
    for x in rows:
        pdp.explain_one(x)
    return pdp


def test_a_model_that_inverts_effects_changes_the_signs_of_trends_only() -> None:
    rng = random.Random(1)
    rows: list[Row] = [{"a": rng.random(), "c": rng.choice("xyz")} for _ in range(20)]
    level = {"x": 0.0, "y": 0.2, "z": 0.5}
    rises = explained(lambda x: x["a"] + level[x["c"]], rows, ["a", "c"])
    falls = explained(lambda x: -x["a"] - level[x["c"]], rows, ["a", "c"])
    assert rises.increments == falls.increments
    assert rises.values == falls.values
    assert rises.trends == {name: -each for name, each in falls.trends.items()}
    assert list(rises.trends) == ["a", "c"]
    assert min(rises.trends.values()) > 0.0


def test_the_order_of_categories_is_that_of_the_grid_whichever_came_first() -> None:
    found = []
    for order in ("xyz", "zyx", "yxz"):
        rows: list[Row] = [{"c": c} for c in order * 3]
        pdp = explained(lambda x: {"x": 1.0, "y": 5.0, "z": 2.0}[x["c"]], rows, ["c"])
        assert pdp.curves["c"][0] == ["x", "y", "z"]
        found.append(pdp.trends["c"])
    assert found == [trend([1.0, 5.0, 2.0])] * 3


def test_one_category_has_no_trend_and_before_the_first_curve_there_is_none() -> None:
    assert explained(lambda x: 7.0, [{"c": "x"}] * 9, ["c"]).trends == {"c": 0.0}
    assert explained(lambda x: 7.0, [{"c": "x"}] * 3, ["c"]).trends == {}


@PROPERTY
@given(st.booleans(), st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=9))
def test_trends_are_independent_of_how_observations_are_grouped(
    categorical: bool, rows: list[tuple[float, float, float]]
) -> None:
    axes: Any = ["u", "v", "w"] if categorical else np.arange(3.0)
    curves = [Curve(i, axes, Table((None,), np.array(row)[:, None])) for i, row in enumerate(rows)]
    together, alone = (Effects({"a": (categorical,)}, 0.1) for _ in range(2))
    found = [each for curve in curves for each in alone.take_run("a", [curve])]
    assert together.take_run("a", curves) == found
    assert [each for _, each in found] == [trend(row) for row in rows]

"""Trends: numbers of ICE curves that change their sign when an effect reverses."""

import math
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Label, Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP
from fluxplain.explain.effects import Curve, Effects
from fluxplain.explain.trends import CurveTrends, KeyedTrends, Trends
from tests.kit.support import NUMBERS, PROPERTY, Row, Scripted

CLASSES: tuple[Label, ...] = ("a", "b", "c")
NUMBER: tuple[Label | None, ...] = (None,)

Shape = Callable[[float], float]

SHAPES: dict[str, Shape] = {
    "line": lambda v: v,
    "valley": lambda v: v * v,
    "wave": lambda v: math.sin(2.0 * v),
    "plateau": lambda v: float(abs(v) < 1.0),
}


def trends_of(effects: Effects, curves: Sequence[Curve]) -> list[float]:
    return [trend for _, trend in effects.take_run("a", curves)]


def effects_of(*, categorical: bool) -> Effects:
    kinds = {"a": (categorical,)}
    return Effects(kinds, 0.1, trends=Trends(kinds))


def first_trend(outputs: Sequence[float], *, categorical: bool = False) -> float:
    """Return the trend of the first ICE curve, which has no earlier ones."""
    axes: Any = [*map(str, range(len(outputs)))] if categorical else np.arange(float(len(outputs)))
    curve = Curve(0, axes, Table(NUMBER, np.array(outputs)[:, None]))
    return trends_of(effects_of(categorical=categorical), [curve])[0]


def moving(shape: Shape, seqs: Sequence[int], *, level: float = 0.0) -> list[Curve]:
    """Return ICE curves of a shape over a range that moves and changes its width."""
    curves = []
    for seq in seqs:
        rng = random.Random(seq)
        centre, width = rng.gauss(0.0, 0.2), rng.uniform(2.6, 3.4)
        points = centre + width * np.linspace(-0.5, 0.5, 10)
        outputs = np.array([[shape(v) + level * rng.gauss(0.0, 1.0)] for v in points])
        curves.append(Curve(seq, points, Table(NUMBER, outputs + rng.gauss(0.0, 5.0))))
    return curves


def reversing(shape: Shape, at: int, n: int) -> list[float]:
    """Return the trends of ICE curves whose shape is turned from curve ``at`` on."""
    curves = moving(shape, range(at)) + moving(lambda v: -shape(v), range(at, n))
    return trends_of(effects_of(categorical=False), curves)


@PROPERTY
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.booleans())
def test_a_trend_is_a_correlation_and_turns_with_the_curve(
    curve: list[float], categorical: bool
) -> None:
    found = first_trend(curve, categorical=categorical)
    assert -1.0 <= found <= 1.0
    assert first_trend([-v for v in curve], categorical=categorical) == -found
    assert first_trend([curve[0]] * len(curve), categorical=categorical) == 0.0


@PROPERTY
@given(st.sets(st.integers(-1000, 1000), min_size=2, max_size=12))
def test_a_curve_that_rises_has_a_positive_trend_and_one_that_falls_a_negative(
    levels: set[int],
) -> None:
    curve = sorted(map(float, levels))
    assert first_trend(curve) > 0.0 > first_trend(curve[::-1])
    step = [0.0] * (len(curve) - 1)
    assert first_trend([*step, 1.0]) > 0.0 > first_trend([1.0, *step])


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("at", [100, 1_300, 1_537])
def test_whatever_its_shape_an_effect_that_reverses_changes_the_sign_of_its_trends(
    name: str, at: int
) -> None:
    """Wherever it reverses between two references, and for good."""
    found = np.array(reversing(SHAPES[name], at, at + 1_200))
    sign = np.sign(found[20:at].mean())
    assert np.mean(sign * found[20:at]) > 0.8
    assert np.mean(sign * found[at:]) < -0.8
    assert np.mean(sign * found[at:] < 0.0) > 0.98


@pytest.mark.parametrize("at", [700, 1_500])
def test_an_effect_that_rises_has_positive_trends_again_when_it_has_reversed_twice(at: int) -> None:
    rises, falls = moving(lambda v: v, range(at)), moving(lambda v: -v, range(at, 2 * at))
    again = moving(lambda v: v, range(2 * at, 3 * at))
    found = trends_of(effects_of(categorical=False), rises + falls + again)
    signs = [np.mean(np.sign(found[at * k : at * (k + 1)])) for k in range(3)]
    assert signs == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("categorical", [False, True])
def test_the_reference_stays_when_another_model_takes_over(categorical: bool) -> None:
    """Its classes may come in another order."""
    kinds = {"a": (categorical,)}
    trends, signs = Trends(kinds), []
    for sign, labels in ((1.0, (False, True)), (-1.0, (True, False)), (1.0, (False, True))):
        p = 0.5 + sign * np.array([0.3, -0.2, 0.3])
        outputs = np.column_stack([1.0 - p, p] if labels[1] else [p, 1.0 - p])
        axes: Any = ["u", "v", "w"] if categorical else np.arange(3.0)
        curves = [Curve(seq, axes, Table(labels, outputs)) for seq in range(300)]
        found = trends_of(Effects(kinds, 0.1, trends=trends), curves)
        signs.append(np.mean(np.sign(found[10:])))
    assert signs in ([1.0, -1.0, 1.0], [-1.0, 1.0, -1.0])


def test_another_shape_is_followed_and_has_the_same_sign() -> None:
    curves = moving(lambda v: v, range(1_500)) + moving(lambda v: v * v, range(1_500, 5_000))
    found = np.array(trends_of(effects_of(categorical=False), curves))
    assert np.mean(found[1_600:2_000]) == pytest.approx(0.0, abs=0.4)
    assert np.mean(found[3_500:]) > 0.8


def test_curves_without_a_common_shape_have_no_trend() -> None:
    found = np.array(reversing(lambda v: 0.0, 10, 4_000))
    assert np.all(found == 0.0)
    noise = trends_of(effects_of(categorical=False), moving(lambda v: 0.0, range(4_000), level=1.0))
    assert np.mean(noise) == pytest.approx(0.0, abs=0.05)


@PROPERTY
@given(st.booleans(), st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=3, max_size=3))
def test_the_trend_of_several_classes_does_not_depend_on_their_order(
    categorical: bool, rows: list[tuple[float, float, float]]
) -> None:
    """Two classes have one curve, and so its trend."""
    numbers = np.array(rows)
    axes: Any = ["u", "v", "w"] if categorical else np.arange(3.0)

    def of_classes(labels: tuple[Label, ...], outputs: Any) -> float:
        curve = Curve(0, axes, Table(labels, outputs))
        return trends_of(effects_of(categorical=categorical), [curve])[0]

    several = of_classes(CLASSES, numbers)
    assert of_classes(CLASSES[::-1], numbers[:, ::-1].copy()) == several
    two = of_classes(CLASSES[:2], numbers[:, :2].copy())
    assert two == first_trend(numbers[:, 1].tolist(), categorical=categorical)
    assert of_classes((), numbers[:, :0].copy()) == 0.0


@pytest.mark.parametrize("categorical", [False, True])
def test_probability_that_goes_to_later_classes_is_a_positive_trend(categorical: bool) -> None:
    outputs = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]])
    axes: Any = ["u", "v", "w"] if categorical else np.arange(3.0)
    found = [
        trends_of(effects_of(categorical=categorical), [Curve(0, axes, Table(CLASSES, each))])[0]
        for each in (outputs, outputs[::-1].copy())
    ]
    assert found[0] > 0.5
    assert found[1] < -0.5


def test_categories_that_come_and_go_keep_their_references() -> None:
    """A category without a reference counts for nothing."""
    levels, rng = {"u": 1.0, "v": -1.0, "w": 0.0, "rare": 9.0}, random.Random(1)
    curves = []
    for seq in range(4_000):
        keys: list[Any] = ["u", "v", "w", *(["rare"] if rng.random() < 0.05 else [])]
        sign = -1.0 if seq >= 3_000 else 1.0
        outputs = np.array([[sign * levels[key]] for key in keys])
        curves.append(Curve(seq, keys, Table(NUMBER, outputs)))
    found = np.sign(trends_of(effects_of(categorical=True), curves))
    assert abs(found[100:3_000].mean()) == 1.0
    assert found[3_000:].mean() == -found[100:3_000].mean()


def test_of_many_categories_only_those_of_recent_curves_are_kept() -> None:
    effects = effects_of(categorical=True)
    for seq in range(6_000):
        axes: list[Any] = [f"{seq}", "u", "v"]
        trends_of(effects, [Curve(seq, axes, Table(NUMBER, np.array([[0.0], [1.0], [2.0]])))])
    assert len(pickle.dumps(effects)) < 500_000


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
        pdp = explained(lambda x: {"x": 1.0, "y": 2.0, "z": 5.0}[x["c"]], rows, ["c"])
        assert pdp.curves["c"][0] == ["x", "y", "z"]
        found.append(pdp.trends["c"])
    assert found == [pytest.approx(1.0)] * 3


def test_one_category_has_no_trend_and_before_the_first_curve_there_is_none() -> None:
    assert explained(lambda x: 7.0, [{"c": "x"}] * 9, ["c"]).trends == {"c": 0.0}
    assert explained(lambda x: 7.0, [{"c": "x"}] * 3, ["c"]).trends == {}


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_trends_are_independent_of_how_observations_are_grouped_and_of_restarts(
    categorical: bool, size: int
) -> None:
    curves = moving(SHAPES["valley"], range(1_200), level=0.5)
    if categorical:
        curves = [Curve(seq, [*"uvwxyzabcd"], outputs) for seq, _, outputs in curves]
    whole, found = trends_of(effects_of(categorical=categorical), curves), []
    effects = effects_of(categorical=categorical)
    for begin in range(0, len(curves), size):
        found += trends_of(effects, curves[begin : begin + size])
        if begin % 50 == 0:
            effects = pickle.loads(pickle.dumps(effects))
    assert found == whole


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("later", [lambda x: x * x, lambda x: np.minimum(x, -0.5)])
def test_an_effect_that_takes_another_shape_has_not_reversed(
    sign: float, later: Callable[[Floats], Floats]
) -> None:
    """Neither if it rose before nor if it fell."""
    trends, grid = CurveTrends(1), np.linspace(-1.0, 1.0, 11)
    which, shown = np.zeros(1, np.intp), np.zeros((1, 1), np.intp)
    found = []
    for t in range(6_000):
        outputs = (sign * grid if t < 2_300 else later(sign * grid))[:, None]
        found += trends.take(which, grid[None], outputs, (None,), shown).tolist()
    assert found[2_299] == pytest.approx(sign)
    assert min(sign * np.array(found)) > -0.5
    assert found[-1] == pytest.approx(sign)


def test_a_model_of_another_kind_begins_anew() -> None:
    trends, points = CurveTrends(1), np.array([[0.0, 1.0, 2.0]])
    which, shown = np.zeros(1, np.intp), np.zeros((1, 1), np.intp)
    for _ in range(5):
        outputs = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
        trends.take(which, points, outputs, (False, True), np.array([[1, -1]]))
    assert trends.take(which, points, np.array([[3.0], [2.0], [1.0]]), (None,), shown) == [
        pytest.approx(-1.0, abs=0.1)
    ]
    keyed = KeyedTrends()
    for labels in ((False, True), (None,), ("a", "b")):
        size = len(labels)
        assert abs(keyed.take(["u", "v"], Table(labels, np.eye(2)[:, :size]))) > 0.9

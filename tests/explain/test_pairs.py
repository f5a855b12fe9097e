"""iPDP of two features against what it must be for models whose effects are known."""

import math
import pickle
import random
from collections.abc import Mapping
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.baselines import batch_pair_pdp
from fluxplain.evaluate import Output
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Table
from fluxplain.explain import IncrementalPairPDP, curve_kernels
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.curve import Grid
from fluxplain.explain.grids import GridKind
from fluxplain.explain.surface import Axes, Surface, SurfaceEffect
from tests.kit.support import NUMBERS, PROPERTY, Linear, Row, Scripted, pickled

ANSWERS = st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=8)


def table(column: list[float]) -> Table:
    return Table((None,), np.array(column)[:, None])


@PROPERTY
@given(ANSWERS, st.floats(0.001, 1.0), st.booleans())
def test_numbers_and_keys_give_the_same_surface(
    ices: list[list[float]], alpha: float, debias: bool
) -> None:
    """The ranks of two numbers are keys that always come."""
    surface = Surface(alpha, categorical=(False, False), debias=debias)
    keyed = KeyedCurve[tuple[int, int]](alpha, debias=debias)
    keys = list(product(range(2), range(3)))
    scale = max(abs(v) for ice in ices for v in ice)
    for t, ice in enumerate(ices):
        moved = surface.update_table(([t, t + 1.0], [0.0, 1.0, 2.0]), table(ice))
        assert moved == keyed.update_table(keys, table(ice))
    (_, effect), (_, own) = surface.curves.effects(0), keyed.effects(0)
    assert effect.tolist() == own.tolist()
    value = surface.curves.values.item()
    assert value == keyed.values.item() == pytest.approx(np.std(effect, ddof=1), abs=1e-9 * scale)
    assert surface.curves.std_errors.item() == keyed.std_errors.item()


@PROPERTY
@given(st.lists(NUMBERS, min_size=2, max_size=6), st.booleans())
def test_a_projection_is_with_the_derivatives_of_the_importance(
    effects: list[float], by_range: bool
) -> None:
    """The importance scales with the effects, and does not change if all are moved (Euler)."""
    of, projection = curve_kernels.deviation, curve_kernels.projection
    if by_range:
        of, projection = curve_kernels.quarter_range, curve_kernels.range_projection
    curve = np.array(effects)
    scale = max(map(abs, effects))
    assert projection(curve, curve) == pytest.approx(of(curve), rel=1e-6, abs=1e-9 * scale)
    assert projection(curve, np.ones(len(curve))) == pytest.approx(0.0, abs=1e-6)


CLASSES: dict[str, Any] = {
    "number": lambda v: v,
    "two": lambda v: {"no": 1.0 - v, "yes": v},
    "three": lambda v: {"u": v, "w": v * v, "v": 1.0 - v},
}

LEVEL = {"x": 0.5, "y": -0.5, "z": 2.0}


def f(x: Mapping[str, Any]) -> float:
    return float(math.sin(x["a"]) * x["b"] + LEVEL[x["c"]] * x["a"] + (x["d"] == "u") + x["b"])


def rows(n: int) -> list[Row]:
    """Return observations of which no window of 20 has other quantiles or categories."""
    rng = random.Random(1)
    return [
        {
            "a": float(t % 5),
            "b": rng.gauss(0, 1),
            "c": "xyzz"[t % 4],
            "d": "uv"[t // 2 % 2],
            "e": float(t // 5 % 2),
        }
        for t in range(n)
    ]


def by_class(effect: SurfaceEffect) -> dict[Any, Floats]:
    if not isinstance(effect, dict):
        return {None: np.array(effect)}
    return {label: np.array(surface) for label, surface in effect.items()}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("grid", get_args(GridKind))
def test_on_fixed_grids_it_is_the_batch_pdp(kind: str, grid: GridKind) -> None:
    """Theorem 3.2; with so small an α that all observations weigh the same, up to n α = 2e-7."""

    def model(x: Mapping[str, Any]) -> Output:
        output: Output = CLASSES[kind](f(x) + x["e"])
        return output

    pairs = [("a", "e"), ("c", "a"), ("c", "d")]
    xs = rows(220)
    pdp = IncrementalPairPDP(
        Scripted(model), pairs, alpha=1e-9, grid=grid, grid_size=5, storage_size=20, seed=1
    )
    for x in xs:
        pdp.explain_one(x)
    batch = batch_pair_pdp(Scripted(model), xs[20:], pairs, grid=grid, grid_size=5)
    shapes = {"a|e": (5, 5), "c|a": (3, 5), "c|d": (3, 2)}
    for name, expected in batch.items():
        axes, effect = pdp.surfaces[name]
        for axis, points in zip(axes, expected.axes, strict=True):
            assert axis == (points if isinstance(points[0], str) else pytest.approx(points))
        found, wanted = by_class(effect), by_class(expected.effect)
        assert list(found) == list(wanted)
        for label, surface in found.items():
            assert surface.shape == shapes[name]
            assert surface == pytest.approx(wanted[label], rel=1e-6, abs=1e-9)
        assert pdp.values[name] == pytest.approx(expected.importance, rel=1e-6)


def test_the_batch_surface_is_the_mean_output_at_each_point() -> None:
    xs = rows(20)
    found = batch_pair_pdp(Scripted(f), xs, [("c", "b")], grids={"b": [0.0, 1.5]})["c|b"]
    assert found.axes == (["x", "y", "z"], [0.0, 1.5])
    ice = [[[f({**x, "c": c, "b": b}) for b in (0.0, 1.5)] for c in "xyz"] for x in xs]
    assert np.array(found.ice) == pytest.approx(np.array(ice))
    assert np.array(found.effect) == pytest.approx(np.mean(ice, axis=0))
    assert found.importance == pytest.approx(np.std(np.mean(ice, axis=0), ddof=1))


@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_the_surface_of_a_linear_model_is_a_plane_with_its_slopes(alpha: float) -> None:
    """Grids and effects are smoothed with the same weights, so the plane is exact."""
    model = Linear({"a": 2.0, "b": -3.0, "c": 1.0})
    rng = random.Random(1)
    pdp = IncrementalPairPDP(model, [("a", "b")], alpha=alpha, grid_size=4, storage_size=10)
    for t in range(60):  # the ranges drift
        pdp.explain_one({"a": t + rng.random(), "b": rng.gauss(0, 1 + t), "c": rng.random()})
    (first, second), effect = pdp.surfaces["a|b"]
    plane = np.array(effect)
    expected = 2.0 * np.array(first, float)[:, None] - 3.0 * np.array(second, float)
    assert plane - plane[0, 0] == pytest.approx(expected - expected[0, 0], abs=1e-9)


def test_a_category_that_left_its_storage_leaves_the_surface_and_goes_on_when_it_returns() -> None:
    state = {"u": 1.0, "v": 2.0}
    model = Scripted(lambda x: state[x["c"]] * x["a"])
    pdp = IncrementalPairPDP(
        model, [("c", "a")], grid="range", grid_size=2, storage_size=2, alpha=0.5
    )

    def seen(categories: str) -> Any:
        for t, c in enumerate(categories):
            pdp.explain_one({"c": c, "a": t % 2})
        return pdp.surfaces["c|a"]

    assert seen("uvuv") == ((["u", "v"], [0.0, 1.0]), [[0.0, 1.0], [0.0, 2.0]])
    assert seen("uuuu") == ((["u"], [0.0, 1.0]), [[0.0, 1.0]])
    state["v"] = 6.0
    axes, effect = seen("vv")
    assert axes == (["u", "v"], [0.0, 1.0])
    # of v the answers were 2 four times, then 6: weights 1/16 + 1/8 + 1/4 + 1/2 of them, and 1
    assert effect == [[0.0, 1.0], [0.0, pytest.approx((0.9375 * 2.0 + 6.0) / 1.9375)]]


def test_nothing_is_asked_while_warming_up_and_state_is_pickled() -> None:
    pairs = [("a", "c"), ("a", "b")]
    one = IncrementalPairPDP(
        Linear({"a": 1.0}), pairs, storage="age-weighted", storage_size=5, seed=1
    )
    assert one.surfaces == {"a|c": (([], []), []), "a|b": (([], []), [])}
    for t, x in enumerate(rows(30)):
        other = pickled(one)
        values = one.explain_one(x)
        assert other.explain_one(x) == values
        assert other.surfaces == one.surfaces
        assert other.std_errors == one.std_errors
        assert other.increments == one.increments
        if t < 5:
            assert values == {"a|c": 0.0, "a|b": 0.0}
            assert one.increments == {}
            assert set(one.std_errors.values()) == {math.inf}
    assert one.values["a|c"] > 0.0
    assert one.confidence(0.25) == {name: 2.0 * e for name, e in one.std_errors.items()}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "pairs is empty"),
        (["ab"], "pairs has 'ab', but must have two different features in each"),
        ([("a", "a")], r"pairs has \('a', 'a'\), but must have two different"),
        ([("a", "b", "c")], r"pairs has \('a', 'b', 'c'\)"),
        ([("a", "b"), ("b", "a")], r"pairs has \('b', 'a'\) more than once"),
        ([("a", "z")], "lacks the feature 'z'"),
    ],
)
def test_wrong_pairs_are_named(pairs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IncrementalPairPDP(Linear({"a": 1.0}), pairs).explain_one({"a": 1.0, "b": 2.0})
    with pytest.raises(ValueError, match=message):
        batch_pair_pdp(Linear({"a": 1.0}), [{"a": 1.0, "b": 2.0}], pairs)


@pytest.mark.parametrize("categorical", [(False, False), (False, True)])
def test_a_surface_that_does_not_fit_changes_nothing(categorical: tuple[bool, bool]) -> None:
    surface = Surface(0.5, categorical=categorical)
    surface.update_table(([0.0, 1.0], [0.0, 1.0, 2.0]), table([0.0] * 6))
    before = pickle.dumps(surface)
    wrong: list[tuple[Axes, Table]] = [
        (([0.0, 1.0, 2.0], [0.0, 1.0]), table([1.0] * 6)),
        (([0.0, 1.0], [0.0, 1.0, 2.0]), table([1.0] * 5)),
        (([0.0, 1.0], [0.0, 1.0, 2.0]), table([math.inf] * 6)),
    ]
    for axes, answers in wrong:
        with pytest.raises(ValueError, match=r"do not fit|not finite"):
            surface.update_table(axes, answers)
    assert pickle.dumps(surface) == before


def test_points_without_outputs_are_refused_before_they_are_multiplied() -> None:
    many: Grid = [*range(10**6)]
    with pytest.raises(ValueError, match="do not fit"):
        Surface(0.5, categorical=(True, True)).update_table((many, many), table([1.0]))

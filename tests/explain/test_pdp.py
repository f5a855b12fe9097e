"""iPDP: curves against what they must be for models whose effects are known."""

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding, Label, Output
from fluxplain.evaluate.table import table_of
from fluxplain.explain import IncrementalPDP, curve_kernels
from fluxplain.explain.grids import GridKind, GridSettings, StorageKind
from fluxplain.explain.method import as_grid
from fluxplain.explain.point_storage import PointStorage, seeded
from fluxplain.explain.ranks import RankCurves
from tests.kit.support import NUMBERS, PROPERTY, Linear, Row, Scripted, normal_rows


class Mean:
    """The debiased exponential mean of arrays."""

    def __init__(self, n: int, alpha: float) -> None:
        self.values, self._weight, self._alpha = np.zeros(n), 0.0, alpha

    def update(self, values: Any) -> None:
        self._weight = (1.0 - self._alpha) * self._weight + self._alpha
        self.values += self._alpha / self._weight * (values - self.values)


CURVES = st.lists(NUMBERS, min_size=2, max_size=12)


def numbers(effect: object) -> list[float]:
    """The effect as one curve."""
    assert isinstance(effect, list)
    return effect


def a_grid(points: list[float], n: int, kind: GridKind) -> list[Any]:
    settings = GridSettings(kind=kind, size=5, storage_size=n, warm_up=1)
    storage = PointStorage(["a"], settings, categorical=[], rng_of=seeded(1))
    encoding = Encoding()
    for point in points:
        storage.store(encoding.observe({"a": point}))
    return as_grid(storage.points(encoding).axes[0])


@PROPERTY
@given(st.lists(NUMBERS, min_size=1, max_size=50), st.integers(1, 60))
def test_grids_are_between_quantiles_in_the_range_or_quantiles_of_the_last_values(
    values: list[float], n: int
) -> None:
    recent = values[-n:]
    low, high = np.quantile(recent, [0.05, 0.95], method="median_unbiased")
    expected: dict[GridKind, Any] = {
        "quantile-range": np.linspace(low, high, 5),
        "range": np.linspace(min(recent), max(recent), 5),
        "quantiles": np.quantile(recent, np.linspace(0.05, 0.95, 5), method="median_unbiased"),
    }
    for kind, grid in expected.items():
        points = a_grid(values, n, kind)
        assert points == pytest.approx(list(grid), rel=0, abs=1e-11 * max(map(abs, values)))
        assert points == sorted(map(float, points))


@PROPERTY
@given(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), st.floats(0.001, 1.0))
def test_the_curve_of_a_linear_model_is_a_line_with_its_slope(
    slope: float, other: float, alpha: float
) -> None:
    """The output's shift by other features is that of all points, so the line is exact."""
    pdp = IncrementalPDP(
        Linear({"a": slope, "b": other}, intercept=1.0),
        ["a"],
        alpha=alpha,
        grid_size=4,
        storage_size=10,
        seed=1,
    )
    encoding, smoothed = Encoding(), Mean(4, alpha)
    for x in normal_rows(40, ["a", "b"], seed=2):
        question = pdp._method.ask(encoding.observe(x))
        if question is not None:
            smoothed.update(np.asarray(question.about.axes[0]))
        pdp.explain_one(x)
    grid, effect = pdp.curves["a"]
    points, effects = [float(v) for v in grid], numbers(effect)
    for point, each in zip(points, effects, strict=True):
        assert each - effects[0] == pytest.approx(slope * (point - points[0]), abs=1e-9)
    spread = float(np.std(smoothed.values, ddof=1))
    assert pdp.values["a"] == pytest.approx(abs(slope) * spread, abs=1e-9)


@PROPERTY
@given(CURVES)
def test_importance_is_the_standard_deviation_or_a_quarter_of_the_range(curve: list[float]) -> None:
    expected, scale = float(np.std(curve, ddof=1)), max(map(abs, curve))
    assert curve_kernels.deviation(np.array(curve)) == pytest.approx(
        expected, rel=1e-9, abs=1e-9 * scale
    )
    assert curve_kernels.quarter_range(np.array(curve)) == (max(curve) - min(curve)) / 4.0


def test_a_categorical_curve_has_the_categories_of_the_storage() -> None:
    model = Scripted(lambda x: {"red": 1.0, "green": 2.0, "blue": 5.0}[x["colour"]])
    pdp = IncrementalPDP(model, ["colour"], storage_size=4, alpha=0.1, seed=1)
    for colour in ("red", "green", "red", "blue", "red"):
        pdp.explain_one({"colour": colour})
    assert pdp.curves["colour"] == (["blue", "green", "red"], [5.0, 2.0, 1.0])
    assert pdp.values == {"colour": 1.0}


def test_a_category_that_left_the_storage_leaves_the_curve_and_goes_on_when_it_returns() -> None:
    state = {"red": 1.0, "green": 2.0}
    model = Scripted(lambda x: state[x["colour"]])
    pdp = IncrementalPDP(model, ["colour"], storage_size=3, alpha=0.1, seed=1)
    for colour in ("green", "red", "red", "red", "red"):
        pdp.explain_one({"colour": colour})
    assert pdp.curves["colour"] == (["red"], [1.0])
    assert pdp.values == {"colour": 0.0}
    state["green"] = 9.0
    for _ in range(2):
        pdp.explain_one({"colour": "green"})
    # its first answer was 2, its second is 9: weights 0.9 and 1
    resumed = (0.9 * 2.0 + 9.0) / 1.9
    assert pdp.curves["colour"] == (["green", "red"], [pytest.approx(resumed), 1.0])


def test_what_text_or_truth_values_begin_with_is_categorical_unless_told() -> None:
    model = Scripted(lambda x: 1.0)
    x: Row = {"text": "a", "flag": True, "count": 3, "number": 2.5}
    pdp = IncrementalPDP(model, list(x), storage_size=2, seed=1)
    told = IncrementalPDP(model, ["count"], categorical=["count"], storage_size=2, seed=1)
    for _ in range(3):
        pdp.explain_one(x)
        told.explain_one(x)
    sizes = {name: len(grid) for name, (grid, _) in pdp.curves.items()}
    assert sizes == {"text": 1, "flag": 1, "count": 1, "number": 1}
    assert told.curves["count"][0] == [3]


def logistic(labels: tuple[Label, Label]) -> Scripted:
    def output(x: Mapping[str, Any]) -> dict[Label, float]:
        p = 1.0 / (1.0 + math.exp(-x["a"]))
        return {labels[0]: p, labels[1]: 1.0 - p}

    return Scripted(output)


@pytest.mark.parametrize(
    ("labels", "rises"),
    [
        ((True, False), True),
        ((False, True), False),
        ((1, 0), True),
        ((0, 1), False),
        (("no", "yes"), False),
        (("yes", "no"), True),
    ],
)
def test_a_binary_curve_shows_the_larger_label(labels: tuple[Label, Label], rises: bool) -> None:
    pdp = IncrementalPDP(logistic(labels), ["a"], grid_size=3, storage_size=5, seed=1)
    for t in range(10):
        pdp.explain_one({"a": float(t)})
    effect = numbers(pdp.curves["a"][1])
    assert effect == sorted(effect, reverse=not rises)
    assert effect[0] != effect[-1]


def three_classes(x: Mapping[str, Any]) -> Output:
    a = x["a"]
    return {"c": a, "a": 0.5 * (1.0 - a), "b": 0.5 * (1.0 - a)}


def test_more_than_two_classes_have_one_curve_each_and_importance_is_their_mean() -> None:
    pdp = IncrementalPDP(Scripted(three_classes), ["a"], grid_size=3, storage_size=2, seed=1)
    for t in range(10):
        pdp.explain_one({"a": float(t % 2)})
    grid, effect = pdp.curves["a"]
    assert isinstance(effect, dict)
    assert list(effect) == ["a", "b", "c"]
    points = [float(v) for v in grid]
    assert effect["c"] == pytest.approx(points)
    assert effect["a"] == effect["b"] == pytest.approx([0.5 * (1.0 - p) for p in points])
    spread = float(np.std(points, ddof=1))
    assert pdp.values["a"] == pytest.approx((spread + spread / 2 + spread / 2) / 3)


def test_a_late_class_counts_as_zero_before_it_appeared() -> None:
    alpha = 0.5
    curves, points = RankCurves(1, alpha), np.array([[0.0, 1.0]])
    for outputs in (
        [{"a": 1.0, "b": 0.0}, {"a": 1.0, "b": 0.0}],
        [{"a": 0.0, "b": 0.0, "c": 1.0}, {"a": 0.0, "b": 1.0, "c": 0.0}],
    ):
        curves.move(np.zeros(1, np.intp), points, table_of(cast(Any, outputs)))
    # the weights are 1/3 and 2/3
    labels, effects = curves.effects(0)
    assert labels == ("a", "b", "c")
    assert effects == pytest.approx(np.array([[1 / 3, 1 / 3], [0.0, 2 / 3], [2 / 3, 0.0]]))


@pytest.mark.parametrize("storage", ["frequency", "age-weighted"])
def test_each_storage_gives_categories_and_quantiles_of_recent_values(storage: StorageKind) -> None:
    pdp = IncrementalPDP(
        Linear({"a": 1.0}),
        ["a", "c"],
        grid="quantiles",
        grid_size=3,
        storage=storage,
        storage_size=20,
        seed=1,
    )
    for t in range(1000):
        pdp.explain_one({"a": t, "c": str(t // 250)})
    question = pdp._method.ask(Encoding().observe({"a": 0, "c": "3"}))
    assert question is not None
    names, _, axes = question.about
    points = dict(zip(names, map(as_grid, axes), strict=True))
    assert points["c"] == ["3"]
    low, middle, high = map(float, points["a"])
    oldest = 999 - 20 if storage == "frequency" else 999 - 250
    assert oldest <= low < middle < high <= 999
    # of the youngest 20 values all are there, or nearly; points lie within half of their distance
    expected = pytest.approx([980.35, 998.65], abs=(998.65 - 980.35) / 4.0)
    assert storage == "age-weighted" or [low, high] == expected


def test_an_integer_that_no_float_holds_changes_no_other_grid() -> None:
    """The encoding makes a category of it, and so of the points."""
    pdp = IncrementalPDP(Linear({"a": 1.0}), ["a"], grid_size=3, storage_size=3, seed=1)
    for a in (1, 5, 9, 2**53 + 1, 3, 7, 8):
        pdp.explain_one({"a": a})
    grid, effect = pdp.curves["a"]
    assert effect == grid

"""iPDP: curves against what they must be for models whose effects are known."""

import math
import random
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding, Label, Output
from fluxplain.evaluate.table import table_of
from fluxplain.explain import IncrementalPDP, curve_kernels
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.grids import GridKind, GridSettings, StorageKind
from fluxplain.explain.method import as_grid
from fluxplain.explain.point_storage import PointStorage, seeded
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import NUMBERS, PROPERTY, Linear, Row, Scripted, normal_rows


class Mean:
    """The debiased exponential mean of arrays."""

    def __init__(self, n: int, alpha: float) -> None:
        self.values, self._weight, self._alpha = np.zeros(n), 0.0, alpha

    def update(self, values: Any) -> None:
        self._weight = (1.0 - self._alpha) * self._weight + self._alpha
        self.values += self._alpha / self._weight * (values - self.values)


LEVELS = {"u": 1.0, "v": 2.0}

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
        question = pdp.method.ask(encoding.observe(x))
        if question is not None:
            smoothed.update(np.asarray(question.about.axes[0]))
        pdp.explain_one(x)
    grid, effect = pdp.curves["a"]
    points, effects = [float(v) for v in grid], numbers(effect)
    for point, each in zip(points, effects, strict=True):
        assert each - effects[0] == pytest.approx(slope * (point - points[0]), abs=1e-9)
    spread = float(np.std(smoothed.values, ddof=1))
    assert pdp.values["a"] == pytest.approx(abs(slope) * spread, abs=1e-9)


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
    means = ExponentialMeans(5, [0.01], reach=pdp.method.reach)
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
    means = ExponentialMeans(1, [0.01], reach=pdp.method.reach)
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


def test_the_increment_is_the_importance_of_the_ice_curve() -> None:
    pdp = IncrementalPDP(
        Linear({"a": 3.0, "b": 1.0}), ["a"], grid_size=3, storage_size=2, alpha=0.1, seed=1
    )
    for a in (0.0, 1.0):
        pdp.explain_one({"a": a, "b": 1.0})
    pdp.explain_one({"a": 5.0, "b": 7.0})
    # of two numbers, the 5 % and the 95 % quantile are the numbers themselves
    assert pdp.increments["a"] == pytest.approx(3.0 * 0.5)


CLASSES: dict[str, Any] = {
    "number": lambda x: 2.0 * x["a"] + x["b"],
    "two": lambda x: {"no": 1.0 - x["b"] * x["a"], "yes": x["b"] * x["a"]},
    "three": lambda x: {"u": x["a"], "w": x["b"], "v": 1.0 - x["a"] - x["b"]},
}


def shown(output: Output) -> dict[Any, float]:
    """Return the curves that an output is a point of, by class."""
    if not isinstance(output, dict):
        return {None: output}
    return {"yes": output["yes"]} if "yes" in output else output


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("feature", ["a", "c"])
def test_the_ice_curves_are_the_outputs_on_the_last_observations(kind: str, feature: str) -> None:
    model = Scripted(CLASSES[kind])
    rng = random.Random(1)
    rows: list[Row] = [
        {"a": rng.random(), "b": rng.random(), "c": rng.choice("xyz")} for _ in range(20)
    ]
    pdp = IncrementalPDP(model, ["a", "c"], grid_size=3, storage_size=4, ice=5, seed=1)
    kept: list[dict[str, list[bool | int | float | str]]] = []
    encoding = Encoding()
    for x in rows:
        question = pdp.method.ask(encoding.observe(x))
        names, _, axes = question.about if question else ([], [], [])
        kept.append(dict(zip(names, map(as_grid, axes), strict=True)))
        pdp.explain_one(x)
    curves = pdp.ice[feature]
    assert [curve.seq for curve in curves] == [15, 16, 17, 18, 19]
    for seq, grid, effect in curves:
        assert grid == kept[seq][feature]
        outputs = [shown(CLASSES[kind]({**rows[seq], feature: point})) for point in grid]
        found = effect if isinstance(effect, dict) else {next(iter(outputs[0])): effect}
        assert found == {label: [each[label] for each in outputs] for label in sorted(outputs[0])}


def test_few_ice_curves_or_none_are_kept() -> None:
    model = Linear({"a": 1.0})
    pdp = IncrementalPDP(model, ["a"], storage_size=4, ice=5, seed=1)
    none = IncrementalPDP(model, ["a"], storage_size=4, seed=1)
    for t in range(6):
        assert pdp.explain_one({"a": t}) == none.explain_one({"a": t})
    assert [curve.seq for curve in pdp.ice["a"]] == [4, 5]
    assert none.ice == {}


def test_a_class_that_came_later_is_zero_in_earlier_ice_curves() -> None:
    early: list[dict[Label, float]] = [{"a": 1.0, "b": 0.0}] * 7
    late: list[dict[Label, float]] = [{"a": 0.5, "b": 0.25, "c": 0.25}] * 3
    outputs = iter([*early, *late])  # of the first only the output itself, of the others two more
    pdp = IncrementalPDP(
        Scripted(lambda x: next(outputs)), ["a"], grid_size=2, storage_size=1, ice=5, seed=1
    )
    for t in range(4):
        pdp.explain_one({"a": t})
    assert [curve.effect for curve in pdp.ice["a"]] == [
        {"a": [1.0, 1.0], "b": [0.0, 0.0], "c": [0.0, 0.0]},
        {"a": [1.0, 1.0], "b": [0.0, 0.0], "c": [0.0, 0.0]},
        {"a": [0.5, 0.5], "b": [0.25, 0.25], "c": [0.25, 0.25]},
    ]


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
    question = pdp.method.ask(Encoding().observe({"a": 0, "c": "3"}))
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

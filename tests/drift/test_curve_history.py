"""The curve of some observations alone, taken out of smoothed curves."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fluxplain.drift.curve_history import CurveHistory
from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.effects import Curve, Effects
from fluxplain.schemas import Explanation
from fluxplain.schemas.record import Value

ALPHA, CHANGE, LAST = 0.01, 400, 520

Observe = Callable[[int], tuple[Any, Any]]


def explained(seq: int, updates: int, axes: Sequence[list[Value]], effect: Any) -> Explanation:
    is_pair = len(axes) > 1
    is_multiclass = isinstance(effect, dict)
    return Explanation(
        stream="features-0",
        feature="a",
        method="ipdp",
        seq=seq,
        previous_seq=seq - 10,
        ts=None,
        alpha=ALPHA,
        updates=updates,
        value=0.0,
        std_error=None,
        seqs=[seq],
        increments=[0.0],
        grid=axes[0],
        effect=list(effect.values()) if is_multiclass else effect,
        classes=list(effect) if is_multiclass else None,
        second_grid=axes[1] if is_pair else None,
    )


def around(
    kinds: tuple[bool, ...], labels: tuple[Any, ...], observe: Observe, *, first: int = 0
) -> Any:
    """Return the curves around the change, of curves that were smoothed and published."""
    effects, history = Effects({"a": kinds}, ALPHA), CurveHistory(ALPHA)
    for t in range(first, LAST):
        axes, outputs = observe(t)
        table = Table(labels, np.asarray(outputs, float).reshape(-1, len(labels)))
        effects.take_run("a", [Curve(t, axes, table)])
        if t % 10 == 9:
            smoothed = effects.smoothed("a")
            history.add(explained(t, smoothed.n, smoothed.axes, smoothed.effect))
    return history.around(CHANGE)


def of_later(observe: Observe, places: Sequence[int] | None = None) -> Floats:
    """Return the exponential mean of the outputs after the first curve that is kept since."""
    mean, weight = np.zeros(0), 0.0
    for t in range(CHANGE + 10, LAST):
        own = np.asarray(observe(t)[1], float)
        weight = 1.0 - (1.0 - ALPHA) * (1.0 - weight)
        mean = mean + ALPHA / weight * (own - mean) if len(mean) else own
    return mean


RNG = np.random.default_rng(1)
NOISE = RNG.normal(size=(LAST, 3, 4))


def numeric(t: int) -> tuple[Floats, Floats]:
    grid = np.array([1.0, 2.0, 4.0]) + 0.1 * NOISE[t, 0, :3]
    return grid, (1.0 if t < CHANGE else -1.0) * np.array([0.1, 0.5, 0.9]) + 0.1 * NOISE[t, 1, :3]


def test_a_reversed_curve_is_whole_after_few_observations() -> None:
    before, after = around((False,), (None,), numeric)
    assert before.seq <= CHANGE
    assert before.effect == pytest.approx([0.1, 0.5, 0.9], abs=0.05)
    assert after.seq == LAST - 1
    assert after.effect == pytest.approx(of_later(numeric).tolist(), rel=1e-9)
    assert after.effect_std_error is None
    points = of_later(lambda t: (None, numeric(t)[0]))
    assert after.grid == pytest.approx(points.tolist(), rel=1e-9)


def test_each_class_has_its_own_curve() -> None:
    def observe(t: int) -> tuple[Floats, Floats]:
        grid, effect = numeric(t)
        return grid, np.stack([effect, 2.0 * effect, -effect], axis=1)

    _, after = around((False,), ("a", "b", "c"), observe)
    assert after.classes == ["a", "b", "c"]
    later = of_later(observe)
    for i in range(3):
        assert after.effect[i] == pytest.approx(later[:, i].tolist(), rel=1e-9)


def test_a_category_that_is_new_has_what_was_seen_of_it() -> None:
    def observe(t: int) -> tuple[list[Value], list[float]]:
        level = 0.0 if t < CHANGE else 1.0
        known: list[Value] = ["x", "y"] if t < CHANGE + 50 else ["x", "y", "z"]
        return known, [level, 2.0 + level, 5.0][: len(known)]

    _, after = around((True,), (None,), observe)
    assert after.grid == ["x", "y", "z"]
    assert after.effect == pytest.approx([1.0, 3.0, 5.0], abs=1e-9)


def test_a_category_that_was_new_just_before_does_not_shoot_over() -> None:
    def observe(t: int) -> tuple[list[Value], list[float]]:
        known: list[Value] = ["x"] if t < CHANGE - 30 else ["x", "z"]
        return known, [0.0, 1.0 + 0.1 * float(NOISE[t, 0, 0])][: len(known)]

    _, after = around((True,), (None,), observe)
    assert after.effect == pytest.approx([0.0, 1.0], abs=0.1)


def test_surfaces_of_numeric_features_work_alike_and_others_are_left_out() -> None:
    def observe(t: int) -> tuple[tuple[Floats, Floats], Floats]:
        grid, effect = numeric(t)
        return (grid, np.array([0.0, 1.0])), np.stack([effect, 2.0 * effect], axis=1).ravel()

    _, after = around((False, False), (None,), observe)
    rows = [value for row in after.effect for value in row]
    assert rows == pytest.approx(of_later(observe).tolist(), rel=1e-9)

    def mixed(t: int) -> tuple[tuple[Floats, list[str]], Floats]:
        axes, effect = observe(t)
        return (axes[0], ["x", "y"]), effect

    before, after = around((False, True), (None,), mixed)
    assert before is not None
    assert after is None


def test_estimates_that_begin_anew_have_no_before() -> None:
    history = CurveHistory(ALPHA)
    history.add(explained(9, 900, [[0.0, 1.0]], [5.0, 5.0]))
    history.add(explained(19, 10, [[0.0, 1.0]], [1.0, 2.0]))
    before, after = history.around(15)
    assert before is None
    assert after is not None
    assert after.effect == [1.0, 2.0]


def of_moving_points(t: int) -> tuple[Floats, Floats]:
    """Return points of a lattice that move by one, and a curve that is reversed before that."""
    grid = np.array([1.0, 2.0, 3.0]) + (t >= CHANGE + 40)
    return grid, (2.0 if t < CHANGE else -2.0) * grid


def test_points_that_stay_where_they_are_have_the_later_outputs_there() -> None:
    effects = Effects({"a": (False,)}, ALPHA, anchored=True)
    history = CurveHistory(ALPHA, anchored=True)
    for t in range(LAST):
        grid, outputs = of_moving_points(t)
        effects.take_run("a", [Curve(t, grid, Table((None,), outputs[:, None]))])
        if t % 10 == 9:
            smoothed = effects.smoothed("a")
            history.add(explained(t, smoothed.n, smoothed.axes, smoothed.effect))
    before, after = history.around(CHANGE)
    assert before is not None
    assert after is not None
    assert before.grid == [1.0, 2.0, 3.0]
    assert before.effect == pytest.approx([2.0, 4.0, 6.0])
    # the first point was left shortly after the change, and is still shown
    assert after.grid == [1.0, 2.0, 3.0, 4.0]
    assert after.effect[1:] == pytest.approx([-4.0, -6.0, -8.0], abs=1.0)


def test_points_in_another_range_are_later_already() -> None:
    history = CurveHistory(ALPHA, anchored=True)
    for t, start in ((399, 0.0), (409, 0.0), (519, 10.0)):
        grid: list[Value] = [start, start + 1.0]
        history.add(explained(t, t, [grid], [start, start + 1.0]))
    _, after = history.around(CHANGE)
    assert after is not None
    assert after.effect == [10.0, 11.0]


def test_without_curves_there_are_none() -> None:
    assert CurveHistory(ALPHA).around(5) == (None, None)

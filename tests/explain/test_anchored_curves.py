"""Curves while inputs move: points that stay where they are, each with its own mean."""

import math
import random
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP
from fluxplain.explain.lattice import LEAST, MOST, Lattices
from fluxplain.explain.point_means import FEWEST, PLACES, PointMeans
from tests.kit.support import PROPERTY, Linear, Scripted, normal_rows

N = 3_000


def moving(path: str, seed: int = 1) -> list[float]:
    """Return values whose distribution moves."""
    rng, last = random.Random(seed), 0.0
    values = []
    for t in range(N):
        noise = rng.gauss(0.0, 1.0)
        last = 0.9 * last + math.sqrt(0.19) * noise
        values.append(
            {
                "steadily": -5.0 + 10.0 * t / N + noise,
                "at once": (5.0 if t > N // 2 else -5.0) + noise,
                "to and fro": (5.0 if t // 500 % 2 else -5.0) + noise,
                "with its past": last,
                "not": noise,
                "in its spread": noise * 10.0 ** (4.0 * t / N - 2.0),
            }[path]
        )
    return values


PATHS = ["steadily", "at once", "to and fro", "with its past", "not", "in its spread"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("alpha", [0.001, 0.01, 0.3])
def test_a_step_stays_a_step_however_its_input_moves(path: str, alpha: float) -> None:
    pdp = IncrementalPDP(Scripted(lambda x: float(x["a"] > 0.0)), ["a"], alpha=alpha, seed=1)
    for t, a in enumerate(moving(path)):
        pdp.explain_one({"a": a})
        if t % 20 == 0 and t >= 100:
            grid, effect = pdp.curves["a"]
            assert effect == [float(cast(float, point) > 0.0) for point in grid]
            assert sorted(grid) == grid
            assert 2 <= len(grid) <= 10 * PLACES


@PROPERTY
@given(
    st.lists(
        st.one_of(st.floats(-1e3, 1e3), st.sampled_from([0.0, 1.0, 1e-300, 1e6])),
        min_size=1,
        max_size=80,
    ),
    st.floats(0.001, 1.0),
    st.sampled_from(["quantile-range", "range"]),
    st.integers(1, 8),
)
def test_a_model_that_never_changes_has_an_exact_curve(
    values: list[float], alpha: float, kind: Any, stored: int
) -> None:

    def output(x: Any) -> float:
        a: float = x["a"]
        return math.sin(a) + math.floor(a)

    pdp = IncrementalPDP(
        Scripted(output), ["a"], alpha=alpha, grid=kind, grid_size=4, storage_size=stored, seed=1
    )
    for a in values:
        pdp.explain_one({"a": a})
        grid, effect = pdp.curves["a"]
        assert effect == [output({"a": point}) for point in grid]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", PATHS)
def test_a_line_stays_a_line_and_has_the_error_of_its_level(path: str) -> None:
    pdp = IncrementalPDP(Linear({"a": 3.0, "b": 1.0}), ["a"], alpha=0.01, seed=1)
    level, weight = 0.0, 0.0
    for a, x in zip(moving(path), normal_rows(N, ["b"], seed=2), strict=True):
        pdp.explain_one({"a": a, **x})
        if pdp.increments:
            weight = 0.99 * weight + 0.01
            level += 0.01 / weight * (float(x["b"]) - level)
    grid, effect = (np.array(each, np.float64) for each in pdp.curves["a"])
    off = effect - 3.0 * grid
    assert np.ptp(off) < 1e-6 * np.abs(effect).max()
    if path not in {"at once", "to and fro"}:  # else they may have begun again
        assert off == pytest.approx(np.full(len(off), level), abs=1e-6 * np.abs(effect).max())
    errors = np.array(pdp.curve_errors["a"], np.float64)
    assert (np.abs(off) < 4.0 * errors).all()


def test_points_follow_a_model_that_changes() -> None:
    state = [1.0]
    pdp = IncrementalPDP(Scripted(lambda x: state[0] * x["a"]), ["a"], alpha=0.02, seed=1)
    for t, a in enumerate(moving("steadily")):
        state[0] = 1.0 if t < N - 500 else -1.0
        pdp.explain_one({"a": a})
    grid, effect = (np.array(each, np.float64) for each in pdp.curves["a"])
    assert effect == pytest.approx(-grid, abs=0.01 * np.abs(grid).max())


def test_points_left_for_long_are_neither_shown_nor_kept() -> None:
    pdp = IncrementalPDP(Scripted(lambda x: float(x["a"])), ["a"], alpha=0.001, seed=1)
    for t in range(700):
        pdp.explain_one({"a": float(t % 7) + 100.0 * (t >= 300)})
    grid, _ = pdp.curves["a"]
    # values that resemble the ones before have a wider range than the last ones, up to the double
    assert 97.0 <= min(map(float, grid)) <= max(map(float, grid)) <= 106.0


def test_new_points_are_shown_once_they_have_some_observations() -> None:
    means, which = PointMeans(1, 0.001, reach=200), np.zeros(1, np.intp)
    first, second = np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 2.0, 3.0]])
    for _ in range(100):
        means.move(which, first, np.zeros((3, 1)))
    for shown in [3] * (FEWEST - 1) + [4]:
        means.move(which, second, np.ones((3, 1)))
        assert len(means.grid(0)) == shown


def test_points_that_exceed_the_places_go_for_those_with_the_smallest_weights() -> None:
    means, which = PointMeans(1, 0.01, reach=200), np.zeros(1, np.intp)
    for t in range(30):
        points = np.array([[float(t), t + 0.5]])
        means.move(which, points, points.T.copy())
        grid = means.grid(0)
        assert len(grid) <= 2 * PLACES
        assert means.effects(0, 0) == pytest.approx(grid)


def test_lattices_hold_few_steps_between_points_and_consecutive_points_share_one() -> None:
    rng = np.random.default_rng(1)
    lattices, former = Lattices(1, 10), set[float]()
    low, width = 0.0, 1.0
    for _ in range(2_000):
        low, width = low + 0.1 * width * rng.normal(), width * math.exp(0.1 * rng.normal())
        raw: Floats = low + width * np.arange(10.0)[None] / 9.0
        points, gap = raw.copy(), width / 9.0
        ends = np.array([[low - width, low + 2.0 * width]])
        lattices.snap(points, ends, np.array([2]), 1)
        assert LEAST * (1.0 - 1e-9) <= gap / lattices.steps[0] <= MOST * (1.0 + 1e-9)
        assert np.abs(points - raw).max() < 1.5 * gap
        assert (np.diff(points[0]) >= 0.0).all()
        assert not former or former & set(points[0].tolist())
        former = set(points[0].tolist())


def test_points_nearer_together_than_numbers_are_at_the_origin_stay_as_they_are() -> None:
    lattices, counts = Lattices(1, 2), np.array([2])
    for low, high in ((25_746.6, 73_557.5), (0.0, 5e-324), (0.0, 1e-300), (0.0, 1.0)):
        points, extremes = np.array([[low, high]]), np.array([[0.0, 73_557.5]])
        lattices.snap(points, extremes, counts, 1)
        assert np.all(abs(points - [low, high]) <= (high - low) / 2.0)

"""iPDP: the partial dependence that it estimates, with what bias and what variance.

Independent standard normal features b0, b1, … give the model's classes: one class, one replication.
"""

import math
import random
from collections import deque
from typing import Any, get_args

import numpy as np
import pytest

from fluxplain.baselines import batch_pdp
from fluxplain.evaluate import Label, Output
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP
from fluxplain.explain.grids import GridKind, StorageKind
from tests.kit.support import Row, Scripted
from tests.theory.bounds import chi_squared_quantiles, hoeffding, normal_quantile, weights

CLASSES = [f"b{i:02}" for i in range(60)]
STORED = 20


def product(x: Any) -> Output:
    """Linear in a, for each class with a slope of its own at each observation, 1 on average."""
    shares: dict[Label, float] = {name: x["a"] * (1.0 + x[name]) for name in CLASSES}
    return shares


def drifting(n: int) -> list[Row]:
    """Return observations of which a rises, with noise, and the classes' features do not change."""
    rng = random.Random(1)
    return [
        {"a": 1.0 + t / n + rng.random(), **{name: rng.gauss(0, 1) for name in CLASSES}}
        for t in range(n)
    ]


def curves(pdp: IncrementalPDP) -> tuple[Floats, Floats]:
    """Return the grid, and the effects of all classes, shape (classes, points)."""
    grid, effect = pdp.curves["a"]
    assert isinstance(effect, dict)
    assert sorted(map(str, effect)) == CLASSES
    return np.array(grid, np.float64), np.array([effect[name] for name in CLASSES])


@pytest.mark.parametrize("debias", [True, False])
@pytest.mark.parametrize("n", [3, 200])
def test_theorem_3_3_where_the_model_is_linear_ipdp_is_the_pdp_at_its_points(
    debias: bool, n: int
) -> None:
    """The points come and go with the drift; at each one the effect is 1 · point on average.

    Given the points, each effect is exactly normal, with the same variance for each class. Without
    debiasing (Theorem 3.2) the effects are short of it by (1-α)^n.
    """
    alpha = 0.02
    pdp = IncrementalPDP(
        Scripted(product),
        ["a"],
        alpha=alpha,
        grid_size=4,
        storage_size=STORED,
        debias=debias,
    )
    for row in drifting(STORED + n):
        pdp.explain_one(row)
    grid, effects = curves(pdp)
    assert len(grid) >= 4
    expected = grid * (1.0 if debias else 1.0 - (1.0 - alpha) ** n)
    # their mean over the classes, in standard errors
    errors = effects.std(axis=0, ddof=1) / math.sqrt(len(CLASSES))
    assert np.abs((effects.mean(axis=0) - expected) / errors).max() < normal_quantile(
        checks=2 * len(grid)
    )
    assert (expected / errors > (2.0 if n == 3 else 10.0)).all()


@pytest.mark.parametrize("grid", get_args(GridKind))
@pytest.mark.parametrize("classes", [1, 3])
def test_theorem_3_2_on_a_fixed_grid_ipdp_is_the_batch_pdp(grid: GridKind, classes: int) -> None:
    """With so small an α that all observations weigh the same, up to n α = 2e-7, whatever f is."""

    def f(x: Any) -> Output:
        outputs: dict[Label, float] = {
            name: math.sin(2.0 * x["a"]) + x["a"] * x["b"] ** (2 + i) + ord(x["c"]) * x["b"]
            for i, name in enumerate("uvw")
        }
        return outputs if classes > 1 else outputs["u"]

    rng = random.Random(1)
    # the extremes and quantiles of five values that take turns never move
    rows: list[Row] = [
        {"a": float(t % 5), "b": rng.gauss(0, 1), "c": "xyzz"[t % 4]} for t in range(STORED + 200)
    ]
    pdp = IncrementalPDP(
        Scripted(f), ["a", "c"], alpha=1e-9, grid=grid, grid_size=5, storage_size=STORED
    )
    for row in rows:
        pdp.explain_one(row)
    batch = batch_pdp(Scripted(f), rows[STORED:], ["a", "c"], grid=grid, grid_size=5)
    assert pdp.curves["c"][0] == batch["c"].grid == ["x", "y", "z"]
    assert pdp.curves["a"][0] == pytest.approx(batch["a"].grid, abs=1e-12)
    for feature in ("a", "c"):
        _, effect = pdp.curves[feature]
        expected = batch[feature].effect
        # 1 - α is a float to 1e-16: the weights are to 1e-7
        if isinstance(effect, dict) and isinstance(expected, dict):
            assert list(effect) == list(expected) == ["u", "v", "w"]
            for name, curve in expected.items():
                assert effect[name] == pytest.approx(curve, rel=1e-6)
        else:
            assert classes == 1
            assert effect == pytest.approx(expected, rel=1e-6)
        assert pdp.values[feature] == pytest.approx(batch[feature].importance, rel=1e-6)


def test_algorithm_2_the_range_is_that_of_the_last_values() -> None:
    """With α = 1 the grid is that of the newest evaluation points."""
    window = 50
    pdp = IncrementalPDP(
        Scripted(lambda x: float(x["b00"])),
        ["a"],
        alpha=1.0,
        grid="range",
        window=window,
        warm_up=1,
    )
    recent: deque[float] = deque(maxlen=window)
    for row in [*drifting(300), *drifting(300)]:  # rises, falls at once, and rises
        pdp.explain_one(row)
        if recent:
            grid, _ = pdp.curves["a"]
            points, found = np.linspace(min(recent), max(recent), 10), np.array(grid, np.float64)
            # a point moves to the lattice by at most one step, and stays in the range
            gap = points[1] - points[0] + 1e-9
            assert np.abs(found - points[:, None]).min(axis=1).max() <= gap
            assert points[0] - 1e-9 <= found.min() <= found.max() <= points[-1] + 1e-9
        recent.append(float(row["a"]))


@pytest.mark.parametrize("storage", get_args(StorageKind))
def test_algorithm_3_quantiles_follow_those_of_the_distribution_after_a_drift(
    storage: StorageKind,
) -> None:
    """By Dvoretzky, Kiefer and Wolfowitz no quantile of L values is off its level by more than ε.

    That holds at each of the n times for which a smoothed point is an average; of the times before,
    the weight is (1-α)^n = 1e-9. A value that goes by age stays for L steps on average, since one
    goes at a time; its hazard is in proportion to its age, so that it stays for 3 L with
    probability exp(-9π/4) = 0.0009.
    """
    size, n, alpha = 1000, 400, 0.05
    rng = random.Random(1)
    pdp = IncrementalPDP(
        Scripted(lambda x: 0.0),
        ["a"],
        alpha=alpha,
        grid="quantiles",
        storage=storage,
        storage_size=size,
        seed=1,
    )
    levels = np.linspace(0.05, 0.95, 10)
    tolerance = hoeffding(size, checks=2 * n) + 1.0 / size
    before = size if storage == "frequency" else 3 * size
    for start in (0.0, 10.0):  # the square root of a uniform number, moved
        for _ in range(before + n):
            pdp.explain_one({"a": start + math.sqrt(rng.random())})
        grid = np.array(pdp.curves["a"][0], np.float64) - start
        assert (np.abs(np.clip(grid, 0.0, 1.0) ** 2 - levels) < tolerance).all()
        assert (np.diff(grid) > 0.0).all()


def test_theorem_3_4_the_variance_is_of_order_alpha() -> None:
    """On a fixed grid, where the point is 1, the effects are exactly normal: Σ w_s (1 + b_s).

    So the sum of their squared deviations over Σ w_s², which for many increments is α/(2-α), is χ²;
    and so is the slope on a log scale 1 as α falls.
    """
    alphas, runs, n = (0.2, 0.1, 0.05, 0.025), 4, 240
    freedom = runs * len(CLASSES)
    variances = {}
    for alpha in alphas:
        total = 0.0
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            pdp = IncrementalPDP(
                Scripted(product), ["a"], alpha=alpha, grid_size=2, storage_size=STORED
            )
            for t, values in enumerate(rng.normal(size=(STORED + n, len(CLASSES)))):
                pdp.explain_one({"a": t % 2, **dict(zip(CLASSES, values.tolist(), strict=True))})
            grid, effects = curves(pdp)
            assert grid == pytest.approx([0.0, 1.0], abs=1e-12)
            total += float(((effects[:, 1] - 1.0) ** 2).sum())
        low, high = chi_squared_quantiles(freedom, checks=len(alphas))
        w = weights(alpha, n)
        assert low < total / float(w @ w) < high
        assert float(w @ w) == pytest.approx(alpha / (2.0 - alpha), rel=0.01)
        variances[alpha] = total / freedom
    spread = math.log(high / low)
    span = math.log(alphas[0] / alphas[-1])
    line = 1.0 + math.log((2.0 - alphas[-1]) / (2.0 - alphas[0])) / span
    slope = math.log(variances[alphas[0]] / variances[alphas[-1]]) / span
    assert abs(slope - line) < spread / span
    assert spread / span < 0.5

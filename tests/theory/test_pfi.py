"""iPFI: what PFI it estimates, with what bias and what variance.

The model adds up independent features and is right, so with the squared error the increment of a
feature is (ã - a)², whatever the others are: given the draws, the features are independent
replications of one stream.
"""

import itertools
import random
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fluxplain.baselines import batch_pfi, expected_pfi
from fluxplain.evaluate import Inputs, Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI
from fluxplain.explain.players import Players
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import Row, Scripted
from tests.theory.bounds import assert_slope, hoeffding, mean_and_tolerance, weights

SAMPLERS = ("geometric", "uniform")


def summed(inputs: Inputs) -> Table:
    """Evaluate a model that adds up all features."""
    return Table((None,), inputs.rows.sum(axis=1)[:, None])


def curved(x: Any) -> float:
    return float(x["a"] ** 2 + 3.0 * x["a"] * x["b"])


def small_batch(n: int) -> tuple[list[Row], list[float]]:
    rng = random.Random(1)
    xs: list[Row] = [{"a": rng.gauss(0, 1), "b": rng.gauss(0, 1)} for _ in range(n)]
    return xs, [rng.gauss(0, 1) for _ in range(n)]


@pytest.mark.parametrize("features", [["a", "b"], [{"both": ["b", "a"]}]])
def test_theorem_1_expected_pfi_is_the_scaled_mean_over_all_permutations(
    features: list[Any],
) -> None:
    xs, ys = small_batch(5)
    found = expected_pfi(Scripted(curved), xs, ys, features, loss="squared_error")
    for name, replaced in zip(Players(features).names, Players(features).members, strict=True):
        growths = [
            statistics.fmean(
                (curved({**x, **{f: xs[m][f] for f in replaced}}) - y) ** 2 - (curved(x) - y) ** 2
                for x, y, m in zip(xs, ys, order, strict=True)
            )
            for order in itertools.permutations(range(5))
        ]
        assert found[name] == pytest.approx(5 / 4 * statistics.fmean(growths), rel=1e-12)


def test_ipfi_of_a_group_is_the_expected_pfi_of_its_features() -> None:
    """The stream draws from a population of N records, and from it also what replaces them.

    So 1 of N replacements changes nothing, and the expectation is (N-1)/N of the expected PFI.
    Increments covary only if they share an observation, which the reservoir keeps for 20 steps on
    average. The means over blocks 25 times as long are all but independent: Student's t.
    """
    xs, ys = small_batch(6)
    features: list[Any] = [{"both": ["a", "b"]}, "c"]
    for x, c in zip(xs, range(6), strict=True):
        x["c"] = float(c)
    model = Scripted(lambda x: curved(x) + x["c"])
    size, block, blocks = 20, 500, 40
    pfi = IncrementalPFI(model, features, loss="squared_error", reservoir_size=size, seed=1)
    rng, records = random.Random(2), list(zip(xs, ys, strict=True))
    means: dict[str, list[float]] = {name: [0.0] * blocks for name in ("both", "c")}
    for t in range(-size, block * blocks):
        pfi.explain_one(*rng.choice(records))
        for name, increment in pfi.increments.items():
            means[name][t // block] += increment / block
    exact = expected_pfi(model, xs, ys, features, loss="squared_error")
    alone = expected_pfi(model, xs, ys, ["a", "b"], loss="squared_error")
    for name, sample in means.items():
        mean, tolerance = mean_and_tolerance(sample, checks=2)
        assert abs(mean - 5 / 6 * exact[name]) < tolerance
    # a group cannot pass for the sum of its features
    _, tolerance = mean_and_tolerance(means["both"], checks=2)
    assert abs(exact["both"] - alone["a"] - alone["b"]) > 2.0 * tolerance


def test_equation_3_batch_pfi_has_the_expected_pfi_as_its_expectation() -> None:
    """Independent seeds; without the factor N/(N-1) = 1.25 it would be a fifth lower."""
    xs, ys = small_batch(5)
    model = Scripted(curved)
    expected = expected_pfi(model, xs, ys, ["a"], loss="squared_error")["a"]
    estimates = [
        batch_pfi(model, xs, ys, ["a"], loss="squared_error", permutations=5, seed=seed)["a"]
        for seed in range(1_000)
    ]
    mean, tolerance = mean_and_tolerance(estimates, checks=1)
    assert abs(mean - expected) < tolerance
    assert tolerance < abs(expected) / 5


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("debias", [True, False])
def test_theorem_2_the_bias_is_that_of_the_weights(sampler: str, debias: bool) -> None:
    """E = (1 - (1-α)^n) φ undebiased, and φ debiased, for features that are 0 or 1 alike: φ = 1/2.

    Given the draws, the estimates of the features are independent numbers in [0, 1] of this
    expectation, so Hoeffding's inequality holds for their mean over features and runs.
    """
    alpha, size, features, runs = 0.05, 5, [f"{i}" for i in range(100)], 40
    lengths = (1, 2, 5, 20, 60)
    means = dict.fromkeys(lengths, 0.0)
    for seed in range(runs):
        pfi = IncrementalPFI(
            None,
            features,
            loss="squared_error",
            alpha=alpha,
            sampler=sampler,
            reservoir_size=size,
            debias=debias,
            seed=seed,
            evaluator=summed,
        )
        rng = np.random.default_rng(seed)
        for t in range(size + max(lengths)):
            x = dict(zip(features, rng.integers(0, 2, len(features)).tolist(), strict=True))
            values = pfi.explain_one(x, sum(x.values()))
            if t + 1 - size in lengths:
                means[t + 1 - size] += statistics.fmean(values.values()) / runs
    tolerance = hoeffding(runs * len(features), checks=len(lengths))
    for n in lengths:
        expected = 0.5 * (1.0 if debias else 1.0 - (1.0 - alpha) ** n)
        assert abs(means[n] - expected) < tolerance
    # with or without debiasing, one cannot pass for the other up to 20 increments
    assert 0.5 * (1.0 - alpha) ** 20 > 2.0 * tolerance


# Of f(Z_s, Z_r) = (a_r - a_s)² for standard normal a: its expectation, its variance, and its
# covariance with another one that shares the own or the drawn observation: V[E[f | a]] = V[1 + a²].
MEAN, VARIANCE, SHARED = 2.0, 8.0, 2.0

ALPHAS = (0.2, 0.1, 0.05, 0.025)
FEATURES = [f"{i}" for i in range(80)]
RUNS = 80


def exact_variance(w: Floats, collisions: Floats, own: Floats) -> float:
    """V[Σ w_s f(Z_s, Z_φs)], by the cases of the proof of Theorem 3.

    Parameters
    ----------
    collisions
        P(φ_s = φ_s') for s' < s, below the diagonal.
    own
        P(φ_s = s') for s' < s, below the diagonal.
    """
    pairs = np.tril(collisions + own, -1)
    return float(VARIANCE * (w @ w) + 2.0 * SHARED * (w @ pairs @ w))


def lags(n: int) -> Floats:
    return np.subtract.outer(np.arange(n), np.arange(n)).astype(float)


def geometric_variance(alpha: float, n: int, size: int) -> float:
    """A stored observation stays with probability 1 - p at each step, and is drawn with p."""
    p, k = 1.0 / size, np.maximum(lags(n), 1.0)
    return exact_variance(weights(alpha, n), p * (1.0 - p) ** k, p * (1.0 - p) ** (k - 1.0))


def uniform_variance(alpha: float, n: int, size: int) -> float:
    """What is stored after s' of s observations stays with probability s'/s; all are alike.

    The first explained observation has ``size`` before it, or 1 if nothing is ever dropped.
    """
    warm_up = min(size, n)
    seen = np.arange(n) + (1.0 if size > n else float(warm_up))
    kept = np.minimum(seen, size)
    collisions = (seen[None, :] / seen[:, None]) ** (size <= n) / kept[:, None]
    return exact_variance(weights(alpha, n), collisions, 1.0 / seen[:, None] + np.zeros((n, n)))


def measured_variances(
    sampler: str, n: int, size: int, warm_up: int
) -> Iterator[tuple[float, float, float]]:
    """Yield each α with the measured variance of iPFI after n increments, and its tolerance.

    The expectation is known, so each run gives an unbiased estimate: its mean squared deviation
    over the features. Runs are independent, so the mean over them is a matter of Student's t.
    """
    squares: dict[float, list[float]] = {alpha: [] for alpha in ALPHAS}
    for seed in range(RUNS):
        pfi = IncrementalPFI(
            None,
            FEATURES,
            loss="squared_error",
            sampler=sampler,
            reservoir_size=size,
            warm_up=warm_up,
            seed=seed,
            evaluator=summed,
        )
        smoothed = ExponentialMeans(len(FEATURES), ALPHAS)
        for values in np.random.default_rng(seed).normal(size=(n + warm_up, len(FEATURES))):
            x = dict(zip(FEATURES, values.tolist(), strict=True))
            pfi.explain_one(x, values.sum().item())
            if pfi.increments:
                smoothed.update(np.array([list(pfi.increments.values())]))
        assert smoothed.n == n
        for alpha, values in zip(smoothed.alphas, smoothed.values, strict=True):
            squares[alpha].append(float(np.mean((values - MEAN) ** 2)))
    for alpha in ALPHAS:
        yield alpha, *mean_and_tolerance(squares[alpha], checks=len(ALPHAS) + 1)


@pytest.mark.parametrize(
    "size", [pytest.param(2, marks=pytest.mark.slow), 10, pytest.param(50, marks=pytest.mark.slow)]
)
def test_theorem_3_the_variance_with_a_geometric_reservoir(size: int) -> None:
    """It is O(α) + O(1/L): below the proof's bound, and exactly what the proof's cases add up to.

    The reservoir's draws at different times are dependent: one observation may be drawn twice, with
    probability p(1-p)^k at a lag of k (the paper's independent draws: 1/(2-p) of that).
    """
    n, p = 300, 1.0 / size
    measured, exact = {}, {}
    for alpha, variance, tolerance in measured_variances("geometric", n, size, warm_up=size):
        measured[alpha] = (variance, tolerance)
        exact[alpha] = geometric_variance(alpha, n, size)
        assert abs(variance - exact[alpha]) < tolerance
        bound = 4.0 * alpha / (2.0 - alpha) + 4.0 / (2.0 - alpha) * p / (2.0 - p)
        assert variance < VARIANCE * bound + tolerance
    assert_slope(measured, exact)
    # without the observations that increments share it would be less: the test can tell
    w, (variance, tolerance) = weights(min(ALPHAS), n), measured[min(ALPHAS)]
    assert variance - VARIANCE * float(w @ w) > tolerance


def test_theorem_3_the_variance_with_uniform_draws_from_the_whole_past() -> None:
    """It is O(-α log α): below Proposition 2 with collisions of 1/s, and exactly its cases' sum."""
    n = 100
    measured, exact = {}, {}
    for alpha, variance, tolerance in measured_variances("uniform", n, n + 1, warm_up=1):
        measured[alpha] = (variance, tolerance)
        exact[alpha] = uniform_variance(alpha, n, n + 1)
        assert abs(variance - exact[alpha]) < tolerance
        w = weights(alpha, n)
        collisions = 1.0 / np.arange(1.0, n + 1.0)
        cases = w @ np.tril(np.ones((n, n)), -1) @ (w * collisions)
        assert variance < VARIANCE * float(4.0 * (w @ w) + 2.0 * cases) + tolerance
    assert_slope(measured, exact)


@pytest.mark.slow
def test_a_uniform_reservoir_of_bounded_size_leaves_a_variance_of_order_1_over_its_size() -> None:
    """Beyond the paper, whose uniform draws are from the whole past.

    What is stored hardly changes any more, so what it happens to hold shifts all increments: the
    variance is about V[E[f | drawn]] / L however small α is.
    """
    n, alpha = 300, min(ALPHAS)
    measured, exact = {}, {}
    for size in (2, 8, 32):
        found = {a: rest for a, *rest in measured_variances("uniform", n, size, warm_up=size)}
        variance, tolerance = found[alpha]
        measured[float(size)] = (variance, tolerance)
        exact[float(size)] = uniform_variance(alpha, n, size)
        assert abs(variance - exact[size]) < tolerance
    assert_slope(measured, exact)
    assert measured[2.0][0] > SHARED / 2.0 - measured[2.0][1]

"""Standard errors of exponential means: their formula, and how often they hold the expectation."""

import math
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPDP, dependence
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import NUMBERS, PROPERTY, Linear, Scripted
from tests.measure.coverage.__main__ import ROWS, USED, estimates

ALPHAS = 0.001, 0.01, 0.05

RUNS = 12
"""Runs of explanations; all of them may hold the truth, so only few are unlikely."""


def autoregressive(phi: float, n: int, runs: int, seed: int = 1) -> Floats:
    """Return numbers of variance 1, each correlated with the one before, shape (n, runs)."""
    found = np.random.default_rng(seed).normal(size=(n, runs))
    found[1:] *= math.sqrt(1.0 - phi * phi)
    for i in range(1, n):
        found[i] += phi * found[i - 1]
    return found


@pytest.mark.sampled(9)
@pytest.mark.parametrize("n", [2500, 20_000])
@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_two_of_them_hold_the_expectation_in_95_percent(alpha: float, phi: float, n: int) -> None:
    runs = 400
    means = ExponentialMeans(runs, [alpha])
    means.update(autoregressive(phi, n, runs))
    held = np.mean(np.abs(means.values) <= 2.0 * means.std_errors)
    # three standard deviations of a share of 400 beside 92 to 98 %
    assert 0.92 - 0.041 <= held <= 0.98 + 0.021


@pytest.mark.parametrize("alpha", ALPHAS)
def test_numbers_that_repeat_others_are_no_news(alpha: float) -> None:
    """Each number ten times: the error of the mean is that of a tenth of the numbers."""
    runs, n = 200, 20_000
    once = autoregressive(0.0, n // 10, runs)
    means = ExponentialMeans(runs, [alpha])
    means.update(np.repeat(once, 10, axis=0))
    spread = means.values.std()
    assert np.median(means.std_errors) == pytest.approx(spread, rel=0.25)


@pytest.mark.parametrize("alpha", [1.0, *ALPHAS])
def test_too_few_numbers_have_no_error(alpha: float) -> None:
    means = ExponentialMeans(1, [alpha])
    known = [math.inf]
    for each in autoregressive(0.5, 1000, 1):
        means.update(each[None])
        known.append(means.std_error(0, 0))
    first = next(n for n, error in enumerate(known) if math.isfinite(error))
    # two degrees of freedom, of which the span of the sums takes as many numbers each
    assert first == pytest.approx(2.0 * (min(1.0 / alpha, 1.83 * 200)), rel=0.12, abs=2)
    assert all(map(math.isfinite, known[first:]))
    assert min(known[first:]) > 0.0


def direct(values: list[float], span: float, reach: int) -> tuple[float, float, float]:
    """Return the variance and both mean products, from the definitions."""
    centre, deviations, kept = 0.0, list[float](), [0.0, 0.0, 0.0]
    for n, value in enumerate(values, 1):
        before = value - centre
        centre += dependence.rate(1.0 / (dependence.CENTRES * reach), n) * before
        now = value - centre
        own = before * now
        sums = [
            sum(d * (1.0 - decay) ** age for age, d in enumerate(reversed(deviations), 1))
            for decay in (1.0 / span, min(1.0, 2.0 / span))
        ]
        share = dependence.rate(1.0 / (dependence.MEMORY * reach), n)
        news = (own, now * sums[0], now * sums[1])
        kept = [old + share * (new - old) for old, new in zip(kept, news, strict=True)]
        deviations.append(now)
    return kept[0], kept[1], kept[2]


@PROPERTY
@given(st.lists(NUMBERS, min_size=1, max_size=40), st.integers(1, 30), st.floats(1.0, 60.0))
def test_what_is_kept_are_products_of_deviations_with_decaying_sums(
    values: list[float], reach: int, span: float
) -> None:
    kept = np.zeros(dependence.COLUMNS)
    for n, value in enumerate(values, 1):
        centre, product = dependence.rates(reach, n)
        dependence.follow(kept, value, span, centre, product)
    found = kept[[dependence.OWN, dependence.PRODUCT, dependence.HALF_PRODUCT]]
    scale = max(map(abs, values)) ** 2
    assert found.tolist() == pytest.approx(direct(values, span, reach), rel=1e-9, abs=1e-9 * scale)


def test_numbers_that_alternate_have_a_small_error_but_one() -> None:
    means = ExponentialMeans(1, [0.01])
    means.update(np.tile([[1.0], [-1.0]], (2000, 1)))
    assert 0.0 < means.std_errors.item() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("stream", ["independent", "AR .9"])
def test_the_errors_of_explanations_hold_the_truth(stream: str) -> None:
    """Increments share a reservoir or a store, and records may be autocorrelated besides."""
    found = [estimates(stream, 1500, seed) for seed in range(RUNS)]
    for row, *of_runs in zip(ROWS, *found, strict=True):
        values, errors, truths = np.array(of_runs).transpose(1, 0, 2)
        if (row.method, row.samples) == ("isage", 1):
            assert np.isinf(errors).all(), "nothing tells the bias of a single draw"
        else:
            held = (np.abs(values - truths) <= 2.0 * errors).sum(axis=0)
            assert (row, held.min() >= fewest(RUNS)) == (row, True)
            # features depend on each other a little, the points of a curve wholly: one of each
            of_features = held[:: len(held) // len(USED)]
            assert (row, of_features.sum() >= fewest(RUNS * len(USED))) == (row, True)


def fewest(intervals: int) -> int:
    """Return the least number that hold the truth, but for 1 in 1,000, if each does with 95 %."""
    chances = (
        math.comb(intervals, k) * 0.95**k * 0.05 ** (intervals - k) for k in range(intervals + 1)
    )
    return next(k for k, below in enumerate(accumulate(chances)) if below > 0.001)


def test_the_least_number_of_intervals_is_that_of_the_binomial_distribution() -> None:
    # none of 3 has the chance 0.05³; at most 7 of 12 has 0.02 %, at most 8 has 0.2 %
    assert [fewest(n) for n in (1, 2, 3, 12)] == [0, 0, 1, 8]


def test_the_importance_of_a_curve_whose_range_moves_has_no_error() -> None:
    pdp = IncrementalPDP(Linear({"a": 1.0}), ["a"], seed=1)
    rng, known = np.random.default_rng(1), []
    for t in range(4_000):
        pdp.explain_one({"a": max(t - 2_000, 0) / 100.0 + rng.normal()})
        known.append(math.isfinite(pdp.std_errors["a"]))
    assert known[2_000]
    assert not known[-1]


@pytest.mark.slow
def test_the_error_of_an_importance_includes_that_moving_points_smear_a_step() -> None:
    step = Scripted(lambda x: math.tanh(5.0 * float(x["a"])))
    truth = float(np.std([math.tanh(5.0 * 1.645 * u) for u in np.linspace(-1, 1, 10)], ddof=1))
    for run in autoregressive(0.9, 2_500, 4, seed=3).T.tolist():
        pdp = IncrementalPDP(step, ["a"], seed=1)
        for a in run:
            pdp.explain_one({"a": a})
        value, bias = pdp.values["a"], pdp._known().ranks.smearing(0)
        assert 0.05 < truth - value < 2.0 * pdp.std_errors["a"]
        assert bias == pytest.approx(truth - value, abs=0.06)


def test_the_importance_of_a_line_is_not_smeared() -> None:
    pdp = IncrementalPDP(Linear({"a": 1.0}), ["a"], seed=1)
    for a in autoregressive(0.5, 800, 1)[:, 0].tolist():
        pdp.explain_one({"a": a})
    assert abs(pdp._known().ranks.smearing(0)) < 0.01 * pdp.values["a"]

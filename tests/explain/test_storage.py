"""Reservoirs and storages: what they keep, and with what probability."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding, Value
from fluxplain.explain.storage import (
    CategoryStorage,
    NumberStorage,
    Reservoir,
    RollingExtremes,
    make_reservoir,
)
from tests.kit.support import NUMBERS, PROPERTY
from tests.theory.bounds import chi_squared

SAMPLERS = ("uniform", "geometric", "window")


def filled(sampler: str, size: int, n: int, seed: int) -> Reservoir:
    reservoir, encoding = make_reservoir(sampler, size, random.Random(seed)), Encoding()
    for t in range(n):
        reservoir.update(encoding.observe({"t": t}))
    return reservoir


def chi_squared_bound(degrees: int) -> float:
    """Mean plus four standard deviations of the χ² distribution."""
    return degrees + 4.0 * math.sqrt(2.0 * degrees)


@PROPERTY
@given(st.sampled_from(SAMPLERS), st.integers(1, 20), st.integers(0, 80), st.integers(0, 99))
def test_a_reservoir_holds_size_different_past_observations(
    sampler: str, size: int, n: int, seed: int
) -> None:
    rows = [row["t"] for row in filled(sampler, size, n, seed).rows]
    assert len(rows) == min(size, n)
    assert len(set(rows)) == len(rows)
    assert set(rows) <= set(range(n))
    if sampler == "window":
        assert set(rows) == set(range(max(n - size, 0), n))
    assert sampler == "uniform" or not n or n - 1 in rows, "the newest one is there"


def test_an_unknown_sampler_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"'best'.*uniform, geometric, window"):
        make_reservoir("best", 5, random.Random(1))


@pytest.mark.parametrize("probability", [0.0, -0.5, 1.5, math.nan])
def test_an_entrance_probability_out_of_range_is_named(probability: float) -> None:
    rng = random.Random(1)
    for make in (
        lambda: NumberStorage(5, [rng], entrance_probability=probability),
        lambda: CategoryStorage(5, rng, probability),
    ):
        with pytest.raises(ValueError, match="entrance_probability is"):
            make()


@PROPERTY
@given(
    st.lists(NUMBERS | st.integers(-3, 3), min_size=1, max_size=80),
    st.integers(1, 20),
    st.floats(0.0, 1.0),
)
def test_quantiles_are_those_of_the_last_values(values: list[float], size: int, q: float) -> None:
    storage = NumberStorage(size, [random.Random(1)])
    for v in values:
        storage.update(np.array([v], np.float64))
    kept = values[-size:]
    assert storage.counts.item() == len(kept)
    scale = max(map(abs, kept))
    assert storage.quantiles(np.array([q])).item() == pytest.approx(
        float(np.quantile(kept, q, method="median_unbiased")), rel=0, abs=1e-12 * scale
    )


@PROPERTY
@given(st.lists(st.sampled_from(["a", "b", 1, 2, "c", 10, "10"]), max_size=60), st.integers(1, 8))
def test_categories_are_those_of_the_last_values(values: list[Value], size: int) -> None:
    storage = CategoryStorage(size, random.Random(1))
    for v in values:
        storage.update(v)
    kept = values[-size:]
    assert len(storage) == len(kept)
    order = [1, 2, 10, "10", "a", "b", "c"]  # whatever that of arrival was
    assert storage.categories() == [v for v in order if v in kept]


@pytest.mark.parametrize("is_categorical", [False, True])
def test_with_an_entrance_probability_the_storage_spans_size_over_it_values(
    is_categorical: bool,
) -> None:
    """The i-th newest stored value has the age of i successes: mean i/p, variance i(1-p)/p²."""
    size, p = 100, 0.1
    rng = random.Random(1)
    categories, numbers = (
        CategoryStorage(size, rng, p),
        NumberStorage(size, [rng], entrance_probability=p),
    )
    for t in range(5_000):
        if is_categorical:
            categories.update(t)
        else:
            numbers.update(np.array([float(t)]))
    assert size in {len(categories), numbers.counts.item()}
    if is_categorical:
        oldest = 5_000 - float(categories.categories()[0])
    else:
        oldest = 5_000 - numbers.quantiles(np.array([0.0])).item()
    assert abs(oldest - size / p) < 4.0 * math.sqrt(size * (1 - p)) / p


@PROPERTY
@given(
    st.lists(NUMBERS | st.integers(-3, 3), min_size=1, max_size=80),
    st.integers(1, 20),
)
def test_extremes_are_those_of_the_last_values(values: list[float], size: int) -> None:
    extremes = RollingExtremes(size)
    for t, v in enumerate(values, start=1):
        extremes.update(v)
        window = values[max(t - size, 0) : t]
        assert (extremes.low, extremes.high) == (min(window), max(window))


@pytest.mark.parametrize("sign", [1, -1])
def test_of_a_monotone_sequence_all_values_are_kept(sign: int) -> None:
    """The worst case: any of them may become the extreme."""
    extremes = RollingExtremes(7)
    for t in range(30):
        extremes.update(float(sign * t))
    assert {len(extremes._falling), len(extremes._rising)} == {1, 7}


def test_of_two_values_the_older_one_goes_in_proportion_to_its_age() -> None:
    """The age k of the older one has the probability 1/(k! (e - 2)), for k from 2 on.

    The newer one has age 1, so the older one stays with probability 1/(k + 1), and then has age
    k + 1; else the other one is the older one next, of age 2.
    """
    n, last = 40_000, 6
    storage = NumberStorage(2, [random.Random(1)], by_age=True)
    ages: Counter[int] = Counter()
    for t in range(n):
        storage.update(np.array([float(t)]))
        # 8 steps apart, so that the chain, which starts anew with 2/3 at least, forgets
        if t % 8 == 7:
            ages[min(t + 1 - int(storage.quantiles(np.array([0.0])).item()), last)] += 1
    draws = n // 8
    shares = [1.0 / (math.factorial(k) * (math.e - 2.0)) for k in range(2, last)]
    expected = [draws * share for share in (*shares, 1.0 - sum(shares))]
    observed = [ages[k] for k in range(2, last + 1)]
    assert chi_squared(observed, expected) < chi_squared_bound(last - 2)


@pytest.mark.parametrize("which", ["low", "high"])
def test_nothing_can_be_had_from_what_is_empty(which: str) -> None:
    with pytest.raises(ValueError, match="no value is stored yet"):
        getattr(RollingExtremes(2), which)

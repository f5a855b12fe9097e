"""Reservoirs and storages: what they keep, and with what probability."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.evaluate import Value
from pipeline.explain.storage import (
    CategoryStorage,
    FrequencyStorage,
    GeometricReservoir,
    Reservoir,
    UniformReservoir,
    make_reservoir,
)
from tests.support import NUMBERS, PROPERTY, pickled

SAMPLERS = ("uniform", "geometric")


def filled(sampler: str, size: int, n: int, seed: int) -> Reservoir:
    reservoir = make_reservoir(sampler, size, random.Random(seed))
    for t in range(n):
        reservoir.update({"t": t})
    return reservoir


def chi_squared_bound(degrees: int) -> float:
    """Mean plus four standard deviations of the χ² distribution."""
    return degrees + 4.0 * math.sqrt(2.0 * degrees)


def chi_squared(observed: list[int], expected: list[float]) -> float:
    return sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))


@PROPERTY
@given(st.sampled_from(SAMPLERS), st.integers(1, 20), st.integers(0, 80), st.integers(0, 99))
def test_a_reservoir_holds_size_different_past_observations(
    sampler: str, size: int, n: int, seed: int
) -> None:
    rows = [row["t"] for row in filled(sampler, size, n, seed).rows]
    assert len(rows) == min(size, n)
    assert len(set(rows)) == len(rows)
    assert set(rows) <= set(range(n))


@PROPERTY
@given(st.sampled_from(SAMPLERS), st.integers(1, 20), st.integers(0, 80), st.integers(0, 99))
def test_the_same_seed_gives_the_same_sample(sampler: str, size: int, n: int, seed: int) -> None:
    assert filled(sampler, size, n, seed).rows == filled(sampler, size, n, seed).rows


@PROPERTY
@given(st.sampled_from(SAMPLERS), st.integers(0, 40), st.integers(0, 99))
def test_a_pickled_reservoir_goes_on_the_same(sampler: str, cut: int, seed: int) -> None:
    original = filled(sampler, 5, cut, seed)
    copy = pickled(original)
    for t in range(cut, cut + 40):
        original.update({"t": t})
        copy.update({"t": t})
    assert copy.rows == original.rows


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("before", [0, 30])
def test_a_reservoir_holds_copies(sampler: str, before: int) -> None:
    reservoir = filled(sampler, 5, before, seed=1)
    for t in range(100, 200):
        x: dict[str, Value] = {"t": t}
        reservoir.update(x)
        x["t"] = -1
    assert all(row["t"] != -1 for row in reservoir.rows)


def test_uniform_means_every_past_observation_is_equally_likely() -> None:
    n, repetitions = 30, 6_000
    drawn = Counter(
        filled("uniform", 4, n, seed).rows[seed % 4]["t"] for seed in range(repetitions)
    )
    counts = [drawn[t] for t in range(n)]
    assert chi_squared(counts, [repetitions / n] * n) < chi_squared_bound(n - 1)


def test_geometric_ages_follow_the_geometric_distribution() -> None:
    """p(1-p)^(age-1) with p = 1/L: mean age L."""
    size, draws, apart = 5, 5_000, 50  # apart: the draws share a row with probability (4/5)^50
    p, last = 1.0 / size, 25
    rng = random.Random(2)
    reservoir = GeometricReservoir(size, random.Random(1))
    ages = []
    for t in range(draws * apart):
        reservoir.update({"t": t})
        if t % apart == apart - 1:
            ages.append(t + 1 - int(rng.choice(reservoir.rows)["t"]))
    counts = Counter(min(age, last) for age in ages)
    expected = [draws * p * (1 - p) ** (a - 1) for a in range(1, last)]
    expected.append(draws * (1 - p) ** (last - 1))
    observed = [counts[a] for a in range(1, last + 1)]
    assert chi_squared(observed, expected) < chi_squared_bound(last - 1)
    assert abs(sum(ages) / draws - size) < 4.0 * math.sqrt((1 - p) / p**2 / draws)


def test_the_newest_observation_is_always_in_a_geometric_reservoir() -> None:
    reservoir = GeometricReservoir(3, random.Random(1))
    for t in range(50):
        reservoir.update({"t": t})
        assert {"t": t} in reservoir.rows


def test_an_unknown_sampler_is_named_with_what_is_allowed() -> None:
    with pytest.raises(ValueError, match=r"'best'.*uniform, geometric"):
        make_reservoir("best", 5, random.Random(1))


@pytest.mark.parametrize("size", [0, -1])
def test_a_size_below_one_is_refused(size: int) -> None:
    for kind in (UniformReservoir, GeometricReservoir, FrequencyStorage, CategoryStorage):
        with pytest.raises(ValueError, match=f"size is {size}"):
            kind(size, random.Random(1))


@pytest.mark.parametrize("probability", [0.0, -0.5, 1.5, math.nan])
def test_an_entrance_probability_out_of_range_is_named(probability: float) -> None:
    for kind in (FrequencyStorage, CategoryStorage):
        with pytest.raises(ValueError, match="entrance_probability is"):
            kind(5, random.Random(1), probability)


@PROPERTY
@given(
    st.lists(NUMBERS | st.integers(-3, 3), min_size=1, max_size=80),
    st.integers(1, 20),
    st.floats(0.0, 1.0),
)
def test_quantiles_are_those_of_the_last_values(values: list[float], size: int, q: float) -> None:
    storage = FrequencyStorage(size, random.Random(1))
    for v in values:
        storage.update(v)
    kept = values[-size:]
    assert len(storage) == len(kept)
    scale = max(map(abs, kept))
    assert storage.quantile(q) == pytest.approx(
        float(np.quantile(kept, q)), rel=0, abs=1e-12 * scale
    )


@PROPERTY
@given(st.lists(st.sampled_from(["a", "b", 1, 2, "c"]), max_size=60), st.integers(1, 8))
def test_categories_are_those_of_the_last_values(values: list[Value], size: int) -> None:
    storage = CategoryStorage(size, random.Random(1))
    for v in values:
        storage.update(v)
    kept = values[-size:]
    assert len(storage) == len(kept)
    assert set(storage.categories()) == set(kept)
    assert len(storage.categories()) == len(set(kept))


@PROPERTY
@given(st.permutations(["b", "a", 2, 10, "10"]))
def test_the_order_of_categories_does_not_depend_on_the_order_of_arrival(
    values: list[Value],
) -> None:
    storage = CategoryStorage(5, random.Random(1))
    for v in values:
        storage.update(v)
    assert storage.categories() == [2, 10, "10", "a", "b"]


@pytest.mark.parametrize("kind", [FrequencyStorage, CategoryStorage])
def test_with_an_entrance_probability_the_storage_spans_size_over_it_values(
    kind: type[FrequencyStorage] | type[CategoryStorage],
) -> None:
    """The i-th newest stored value has the age of i successes: mean i/p, variance i(1-p)/p²."""
    size, p = 100, 0.1
    storage = kind(size, random.Random(1), p)
    for t in range(5_000):
        storage.update(t)
    assert len(storage) == size
    if isinstance(storage, FrequencyStorage):
        oldest = 5_000 - storage.quantile(0.0)
    else:
        oldest = 5_000 - float(storage.categories()[0])
    assert abs(oldest - size / p) < 4.0 * math.sqrt(size * (1 - p)) / p

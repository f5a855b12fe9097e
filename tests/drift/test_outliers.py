"""Values outside of all before, and features that have moved."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.outliers import LEAST, Outliers
from fluxplain.schemas.record import Value
from tests.kit.support import PROPERTY


def found(values: list[Value], *, categorical: bool = False) -> list[int]:
    outliers = Outliers(categorical=categorical)
    for seq, value in enumerate(values):
        outliers.add(seq, value)
    return [each.seq for each in outliers.newest]


def usual(n: int = 1000, seed: int = 1) -> list[Value]:
    rng = random.Random(seed)
    return [rng.gauss(1000.0, 10.0) for _ in range(n)]


@pytest.mark.parametrize("bad", [5503.8, 0.0, -999.0, 10_000.0, 1e30])
def test_corrupt_numbers_are_found_each_time(bad: float) -> None:
    values = usual()
    values[700], values[701], values[900] = bad, 1.001 * bad, bad
    assert found(values) == [700, 701, 900]


def test_usual_numbers_are_none() -> None:
    assert [found(usual(5000, seed)) for seed in range(10)] == [[]] * 10


def test_a_feature_that_has_moved_has_none_after_a_while() -> None:
    values = usual() + [value + 200.0 for value in usual(2000)]  # type: ignore[operator]
    assert found(values) == [*range(1000, 1000 + 20)]


def test_a_new_category_is_found_once() -> None:
    values: list[Value] = ["a", "b"] * LEAST
    assert found([*values, "c", "a", "c"], categorical=True) == [2 * LEAST]


def test_at_the_start_nothing_is_known() -> None:
    assert found([0.0, 1000.0, *usual(50)]) == []


@PROPERTY
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.2, 9.0, -40.0, None]), min_size=100, max_size=300),
    st.integers(1, 40),
)
def test_how_values_are_grouped_changes_nothing(values: list[float | None], size: int) -> None:
    alone, together = Outliers(categorical=False), Outliers(categorical=False)
    for begin in range(0, len(values), size):
        group = values[begin : begin + size]
        together.add_all([*range(begin, begin + len(group))], group)
        for seq, value in enumerate(group, begin):
            if value is not None:
                alone.add(seq, value)
        assert vars(together) == vars(alone)

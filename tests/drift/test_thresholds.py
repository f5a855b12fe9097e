"""Thresholds with few digits that divide observed values as the original ones do."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.behind import with_what_is_behind
from fluxplain.drift.recent_observations import Recent
from fluxplain.drift.thresholds import shortest_between
from fluxplain.schemas.change_wording import where
from tests.drift.test_behind import BEGIN, END, change
from tests.kit import records
from tests.kit.support import PROPERTY


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (74_998.31, 75_031.2, 75_000.0),
        (39.0, 40.0, 39.0),
        (39.58, 40.01, 40.0),
        (-0.1, 0.2, 0.0),
        (0.0, 1e-9, 0.0),
        (-75_031.2, -74_998.31, -75_000.0),
        (1_700_000_802.9, 1_700_000_810.0, 1_700_000_803.0),
        (1_700_000_802.9, 1_700_000_803.0, 1_700_000_802.9),
        (0.1 + 0.2, np.nextafter(0.1 + 0.2, 1.0), 0.1 + 0.2),
        (5e-324, 1.0, 5e-324),
        (0.3, 0.4, 0.3),
        (12_345.678, float("inf"), 20_000.0),
    ],
)
def test_the_shortest_number_is_found(low: float, high: float, expected: float) -> None:
    assert shortest_between(low, high) == expected


def digits(number: float) -> int:
    return len(Decimal(repr(number)).normalize().as_tuple().digits)


@PROPERTY
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False))
def test_it_divides_numbers_as_before_and_has_no_more_digits(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    found = shortest_between(low, high)
    assert found == low if low == high else low <= found < high
    assert digits(found) <= digits(low)


def test_the_published_threshold_divides_the_observations_as_its_coverage_says() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(1_700_000_000.0 + rng.random(END) * 1_000.0)
    times = rng.permutation(times)
    increments = rng.normal(0.1, 0.1, END)
    is_late = times > 1_700_000_802.9
    increments[BEGIN:][is_late[BEGIN:]] += 0.5
    recent = Recent(categorical=[], series=1, emit_every=10, length=4000)
    for first in range(0, END, 10):
        part = slice(first, first + 10)
        known = {"increments": increments[part].tolist(), "values": times[part].tolist()}
        explanation = records.explanation("a", first + 9, 0.0)
        recent.add(replace(explanation, seqs=[*range(first, first + 10)], **known), first - 1)
    region = with_what_is_behind(change(), recent, before=1000, seed="1").region
    assert region is not None
    [condition] = region.conditions
    assert condition.op == ">"
    assert isinstance(condition.value, float)
    covered = (times[BEGIN:] > condition.value).mean()
    assert covered == pytest.approx(region.coverage, abs=0.002), "the last ten are not known yet"
    assert f"a > {condition.value:,}".removesuffix(".0") in where(region)

"""How long records resemble each other, and what follows from it: they wait, and ranges widen."""

import itertools
import pickle
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain import IncrementalPFI, IncrementalSAGE, kernels
from fluxplain.explain.storage import Delay, NumberStorage
from fluxplain.explain.storage.autocorrelation import Autocorrelations
from tests.kit.support import PROPERTY, Linear

SPAN = 50


def autoregressive(phi: float, n: int, seed: int = 1) -> Floats:
    found = np.random.default_rng(seed).normal(size=n)
    found[1:] *= np.sqrt(1.0 - phi * phi)
    for i in range(1, n):
        found[i] += phi * found[i - 1]
    return found


def followed(values: Floats) -> Autocorrelations:
    found = Autocorrelations(1, SPAN)
    for value in values:
        found.update(np.array([value]))
    return found


@pytest.mark.parametrize("phi", [0.5, 0.9, 0.97])
def test_the_sum_is_that_of_the_autocorrelations(phi: float) -> None:
    found = np.mean([followed(autoregressive(phi, 10_000, seed)).sums.item() for seed in range(6)])
    assert found == pytest.approx(phi / (1.0 - phi * (1.0 - 1.0 / SPAN)), rel=0.35)


@pytest.mark.parametrize("n", [30, 300, 6_000])
def test_that_of_independent_values_is_noise(n: int) -> None:
    found = [followed(autoregressive(0.0, n, seed)) for seed in range(40)]
    assert sum(each.sums.item() > 0.0 for each in found) <= 2


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_it_does_not_depend_on_the_unit(unit: float) -> None:
    values = autoregressive(0.8, 500)
    assert followed(values * unit).sums == followed(values).sums


def test_missing_values_and_an_outlier_change_little() -> None:
    values = autoregressive(0.9, 5_000)
    plain = followed(values).sums.item()
    values[4_000] = 1e200
    values[4_100] = 1e6
    assert followed(values).sums.item() == pytest.approx(plain, rel=0.3)
    assert followed(np.insert(values, 4_000, np.nan)).sums.item() > 0.0
    assert followed(np.full(100, 3.0)).sums.item() == 0.0


@pytest.mark.parametrize("shift", [1.0, 3.0, 100.0])
def test_a_shift_of_independent_values_is_not_taken_for_autocorrelation(shift: float) -> None:
    values = autoregressive(0.0, 6_000) + shift * (np.arange(6_000) >= 3_100)
    found, sums = Autocorrelations(1, SPAN), []
    for value in values:
        found.update(np.array([value]))
        sums.append(found.sums.item())
    assert max(sums[1_000:]) == 0.0
    steps = followed((np.arange(6_000) >= 3_100).astype(float))
    assert steps.sums.item() == 0.0


def waits(values: list[float], delay: Delay) -> list[float]:
    """Return those that have left."""
    encoding = Encoding()
    rows = [{"a": value} for value in values]
    return [float(x["a"]) for row in rows for x in delay.through(encoding.observe(row))]


@PROPERTY
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=60), st.integers(1, 5))
def test_all_leave_in_order_and_few_wait(steps: list[float], span: int) -> None:
    values, delay = [*itertools.accumulate(steps)], Delay(("a",), span)
    left = waits(values, delay)
    assert left == values[: len(left)]
    assert len(left) + len(delay) == len(values)
    assert len(delay) <= 4 * span


def test_independent_records_do_not_wait_and_others_until_they_are_unlike() -> None:
    still, moving = Delay(("a",), SPAN), Delay(("a",), SPAN)
    waits(autoregressive(0.0, 5_000).tolist(), still)
    waits(autoregressive(0.9, 5_000).tolist(), moving)
    assert (len(still), still.correlation) == (0, 0.0)
    assert 0.9 ** len(moving) < 0.1


def test_the_reservoir_is_renewed_while_the_queue_grows() -> None:
    delay = Delay(("a",), SPAN)
    encoding, left = Encoding(), []
    for t in range(3_000):
        left.append(len([*delay.through(encoding.observe({"a": float(t)}))]))
    assert len(delay) == 4 * SPAN
    assert min(np.convolve(left, np.ones(4), "valid")) >= 1.0


def test_categories_wait_too_and_it_resumes_the_same() -> None:
    rng, value = random.Random(1), "u"
    rows: list[dict[str, float | str]] = []
    for _ in range(3_000):
        value = rng.choice("uvw") if rng.random() < 0.05 else value
        rows.append({"c": value, "n": rng.random()})
    delay, resumed, encoding = Delay(("c", "n"), SPAN), Delay(("c", "n"), SPAN), Encoding()
    for row in rows:
        left = [*delay.through(encoding.observe(row))]
        # another process assigns other codes
        assert left == [*resumed.through(Encoding().observe(row))]
        resumed = pickle.loads(pickle.dumps(resumed))
    assert 0.95 ** len(delay) < 0.1


@pytest.mark.slow
def test_importances_of_records_that_resemble_each_other_are_not_too_small() -> None:
    """Of the last 100 records half of each value would be the record's own."""
    values: dict[str, list[float]] = {"ipfi": [], "isage": []}
    for seed in range(4):
        model, rng = Linear({"a": 1.0}), np.random.default_rng(seed)
        explainers = {
            "ipfi": IncrementalPFI(model, ["a"], loss="squared_error", seed=seed),
            "isage": IncrementalSAGE(model, ["a"], loss="squared_error", seed=seed),
        }
        for a in autoregressive(0.98, 6_000, seed).tolist():
            for explainer in explainers.values():
                explainer.explain_one({"a": a}, a + 0.1 * rng.normal())
        for method, explainer in explainers.items():
            values[method].append(explainer.values["a"])
    assert np.mean(values["ipfi"]) == pytest.approx(2.0, rel=0.2)
    assert np.mean(values["isage"]) == pytest.approx(1.0, rel=0.25)


@pytest.mark.parametrize(("phi", "rel"), [(0.0, 0.02), (0.8, 0.05), (0.95, 0.1)])
def test_the_range_of_a_short_time_becomes_that_of_a_long_one(phi: float, rel: float) -> None:
    storage, widths = NumberStorage(100, [random.Random(1)]), []
    for t, value in enumerate(autoregressive(phi, 40_000).tolist()):
        storage.update(np.array([value]))
        if t % 50 == 49 and t > 1_000:
            low, high = storage.quantile_ranges(0.05, 0.95, 2)[0].tolist()
            widths.append(high - low)
    assert np.mean(widths) == pytest.approx(2.0 * 1.645, rel=rel)


def test_a_range_has_no_value_that_was_never_seen_and_widens_at_most_to_the_double() -> None:
    storage = NumberStorage(20, [random.Random(1)])
    for value in range(200):
        storage.update(np.array([float(value)]))
    low, high = storage.quantile_ranges(0.05, 0.95, 2)[0].tolist()
    assert 180.0 - 20.0 / 2.0 <= low < 180.0
    assert high == 199.0
    widened = [kernels.widening(each, 100, 100) for each in (0.0, 1.0, 8.0, 40.0, 99.0)]
    assert widened == sorted(widened)
    assert (widened[0], widened[-1]) == (1.0, 2.0)

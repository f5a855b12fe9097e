"""The detector of changes of the mean: false alarms, delays, units, outliers, memory."""

import math
import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift import glr_kernels as kernels
from fluxplain.drift import glr_rows
from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.glr import GLR
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.evaluate.compiled import plain
from fluxplain.evaluate.encoding import Floats
from tests.kit.changes import shifts_at
from tests.kit.support import PROPERTY


class Alarm(NamedTuple):
    at: int
    width: int
    widest: int


def alarms(numbers: Floats, false_alarms: float = 1.0) -> list[Alarm]:
    detector, found = GLR(false_alarms), []
    for t, number in enumerate(numbers.tolist()):
        detector.update(number)
        if detector.drift_detected:
            found.append(Alarm(t, detector.width, detector.widest))
    return found


def autoregressive(rng: np.random.Generator, n: int, correlation: float) -> Floats:
    """Return numbers of variance 1 that depend on the one before."""
    noise = rng.normal(size=n) * math.sqrt(1.0 - correlation**2)
    numbers = np.zeros(n)
    for t in range(1, n):
        numbers[t] = correlation * numbers[t - 1] + noise[t]
    return numbers


def squared_differences(rng: np.random.Generator, n: int, correlation: float = 0.9) -> Floats:
    """Return what iPFI's increments are if the inputs depend on those before."""
    one, other = autoregressive(rng, n, correlation), autoregressive(rng, n, correlation)
    return (one - other) ** 2


Series = Callable[[np.random.Generator, int], Floats]

SERIES: dict[str, Series] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.normal(size=n) ** 2,
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "heavy tails": lambda rng, n: rng.standard_t(2.5, size=n),
    "lognormal": lambda rng, n: np.exp(1.5 * rng.normal(size=n)),
    "dependent": lambda rng, n: autoregressive(rng, n, 0.5),
    "very dependent": lambda rng, n: autoregressive(rng, n, 0.9),
    "hardly moving": lambda rng, n: autoregressive(rng, n, 0.99),
    "iPFI, dependent inputs": squared_differences,
}


@pytest.mark.parametrize("name", SERIES)
def test_there_are_at_most_as_many_false_alarms_as_are_allowed(name: str) -> None:
    runs, length, allowed = 4, 25_000, 10.0
    found = sum(
        len(alarms(SERIES[name](np.random.default_rng(seed), length), allowed))
        for seed in range(runs)
    )
    expected = allowed * runs * length / 100_000
    assert found <= expected + 4.0 * math.sqrt(expected)
    if name == "normal":
        assert found >= expected - 2.5 * math.sqrt(expected), "fewer would mean later detections"


def test_while_the_dependence_is_hardly_known_few_alarms_are_false() -> None:
    begun = (squared_differences(np.random.default_rng(seed), 1_000, 0.98) for seed in range(300))
    found = sum(len(alarms(numbers)) for numbers in begun)
    assert found <= 24  # 35 if it is taken for known


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_large_change_is_found_though_the_dependence_is_hardly_known(correlation: float) -> None:
    for seed in range(30):
        numbers = autoregressive(np.random.default_rng(seed), 1_300, correlation)
        numbers[300:] += 5.0
        assert any(alarm.at >= 300 for alarm in alarms(numbers))


@pytest.mark.parametrize(
    ("name", "shift", "within"),
    [("normal", 1.0, 60), ("skewed", 2.0, 60), ("rare", 0.2, 100), ("dependent", 1.5, 150)],
)
def test_a_change_is_found_where_it_is(name: str, shift: float, within: int) -> None:
    runs, at = 40, 2_000
    delays, is_inside = [], 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        numbers = SERIES[name](rng, at + 2_000)
        numbers[at:] += shift if name != "rare" else rng.random(2_000) < shift
        [first, *_] = [alarm for alarm in alarms(numbers) if alarm.at >= at]
        delays.append(first.at - at)
        is_inside += first.at - first.widest < at
    assert np.median(delays) <= within
    assert is_inside >= 0.9 * runs


@pytest.mark.parametrize("late", range(8))
def test_dependent_numbers_that_all_change_their_sign_are_found_soon(late: int) -> None:
    """Wherever in a block of eight the change is."""
    found, at = 0, 2_000 + late
    for seed in range(8):
        numbers = np.abs(autoregressive(np.random.default_rng(seed), at + 200, 0.9)) + 0.05
        numbers[:at] *= -1.0
        found += [alarm.at >= at for alarm in alarms(numbers)] == [True]
    assert found >= 7


def test_the_statistic_without_a_burst_is_that_of_the_other_numbers() -> None:
    def rows(means: list[float]) -> Floats:
        made = np.zeros((len(means), glr_rows.FIELDS))
        for mean, row in zip(means, made, strict=True):
            glr_rows.append(np.full(8, mean), row[None], 0, 0.0, 1.0)
        return made

    before = rows([0.0])[0]
    burst = kernels.without_burst(before, rows([0.0, 1.0, 1.0, 1.0, 0.0, 0.0]), 1.0, 1.5)
    assert burst == 0.0
    assert kernels.without_burst(before, rows([1.0] * 3), 1.0, 1.5) == 0.0, "nothing else is known"
    step = kernels.without_burst(before, rows([1.0] * 6), 1.0, 1.5)
    assert step == pytest.approx(1.0 / (1.0 / 24.0 + 1.0 / 8.0) / kernels.REST)
    longer = kernels.without_burst(before, rows([1.0] * 8), 1.0, 9.0)
    assert longer == pytest.approx(1.0 / (1.0 / 16.0 + 1.0 / 8.0) / kernels.REST)


def test_rare_days_are_hardly_a_change() -> None:
    """Numbers of a day resemble each other, and those of a few days are far from all others."""
    found = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        days = rng.standard_t(2.0, size=209).repeat(48)
        found += len(alarms(0.3 * days[32:] + rng.normal(size=10_000)))
    assert found <= 10


@PROPERTY
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(0, 10**6))
def test_units_do_not_matter(zero: float, unit: float, seed: int) -> None:
    numbers = np.random.default_rng(seed).normal(size=800)
    numbers[500:] += 1.0
    # with a larger zero, digits are lost
    assert alarms(zero * unit + unit * numbers) == alarms(numbers)


@PROPERTY
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=glr_rows.CARRIERS), st.integers(300, 590)
)
def test_a_few_outliers_are_no_change(outliers: list[float], at: int) -> None:
    numbers = np.random.default_rng(at).normal(size=600)
    numbers[at : at + len(outliers)] = outliers
    assert alarms(numbers) == []


def test_numbers_that_vary_more_are_hardly_a_change() -> None:
    found = 0
    for seed in range(10):
        numbers = np.random.default_rng(seed).normal(size=20_000)
        numbers[10_000:] *= 4.0
        found += len(alarms(numbers, 0.01))
    assert found <= 10, "about one each, then it knows how they vary"


@PROPERTY
@given(st.integers(0, 3_000), st.integers(0, 10**6))
def test_rows_hold_all_numbers_in_little_memory(n: int, seed: int) -> None:
    blocks = np.random.default_rng(seed).normal(size=(n // 8, 8))
    rows, count = np.zeros((200, glr_rows.FIELDS)), 0
    for block in blocks:
        count = glr_rows.append(block, rows, count, 0.0, 8.0)
    numbers, kept = blocks.ravel(), rows[:count]
    begin = 0
    for row in kept:
        part = np.sort(numbers[begin : begin + int(row[glr_rows.SIZE])])
        begin += len(part)
        assert row[glr_rows.PLAIN] == pytest.approx(part.sum())
        assert row[glr_rows.SUM] == pytest.approx(part.sum() / 8.0)
        assert row[glr_rows.SQUARES] == pytest.approx(((part / 8.0) ** 2).sum())
        assert row[glr_rows.SMALLEST : glr_rows.LARGEST].tolist() == part[:3].tolist()
        assert row[glr_rows.LARGEST :].tolist() == part[::-1][:3].tolist()
    assert begin == len(numbers)
    assert count <= 9 * math.log2(max(n, 8))


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_the_variance_is_that_of_a_mean_of_many(correlation: float) -> None:
    found = np.empty(kernels.SIZES)
    ratios = []
    for seed in range(20):
        numbers = autoregressive(np.random.default_rng(seed), 5_000, correlation)
        sums = np.zeros((kernels.SIZES, kernels.SUMS))
        for block in numbers.reshape(-1, 8):
            kernels.note_sum(float(block.sum()), sums)
        sizes = kernels.note_variances(sums, found)
        ratios.append(found[sizes - 1] / ((1.0 + correlation) / (1.0 - correlation)))
    assert 0.9 <= np.median(ratios) <= 1.6, "the largest of several estimates is rather too large"


def test_what_is_after_a_large_change_is_that_alone() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        watch = SignalWatch(DetectorSettings("increment", "glr", {}), "")
        numbers = [*rng.normal(size=1_000 + seed), *(10.0 + rng.normal(size=300))]
        [shift] = [s for t, each in enumerate(numbers) for s in shifts_at(watch, t, each)]
        assert shift.before is not None
        assert shift.before.mean == pytest.approx(0.0, abs=0.5)
        assert shift.after.mean == pytest.approx(10.0, abs=1.0)


@pytest.mark.parametrize("gap", [40, 70, 100])
def test_a_second_change_soon_after_a_first_is_found(gap: int) -> None:
    numbers = np.random.default_rng(gap).normal(size=4_000)
    numbers[2_000 : 2_000 + gap] += 10.0
    numbers[2_000 + gap :] -= 10.0
    found = [alarm.at for alarm in alarms(numbers)]
    assert len(found) == 2
    assert found[0] - 2_000 < 50
    assert found[1] - 2_000 - gap < 50


@pytest.mark.parametrize("first", ["zeros", "small", "smaller"])
def test_a_beginning_unlike_the_rest_does_not_make_it_blind(first: str) -> None:
    rng = np.random.default_rng(1)
    numbers = 10.0 + rng.normal(size=4_000)
    small = rng.random(64)
    numbers[:64] = {"zeros": 0.0 * small, "small": small, "smaller": 10.0 + small / 1e3}[first]
    numbers[3_000:] += 10.0
    found = [alarm.at for alarm in alarms(numbers) if alarm.at >= 3_000]
    assert found
    assert found[0] < 3_050


def test_with_and_without_the_compiler_it_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(1).exponential(size=1_500)
    numbers[700:] += 2.0
    numbers[1_100:] -= 2.0
    expected = alarms(numbers)
    assert len(expected) >= 2
    functions = {name: each for name, each in vars(kernels).items() if hasattr(each, "py_func")}
    for name, each in functions.items():
        monkeypatch.setattr(kernels, name, plain(each))
    assert alarms(numbers) == expected


def test_it_goes_on_after_an_alarm() -> None:
    rng = random.Random(1)
    levels = [0.0, 1.0, 0.0, 5.0]
    numbers = [level + rng.gauss(0.0, 0.1) for level in levels for _ in range(600)]
    found = alarms(np.array(numbers))
    assert [alarm.at // 600 for alarm in found] == [1, 2, 3]
    assert all(alarm.at % 600 < 60 for alarm in found)


def from_almost_nothing(seed: int, ramp: int) -> list[float]:
    """Return dependent numbers that vary with their level, which rises to 17 times as much."""
    rng = np.random.default_rng(seed)
    level = 0.01 + 0.16 * np.clip((np.arange(5000) - 3000) / ramp, 0.0, 1.0)
    noise = rng.normal(size=5000) * 0.5 * math.sqrt(1.0 - 0.9 * 0.9)
    for t in range(1, 5000):
        noise[t] += 0.9 * noise[t - 1]
    numbers: list[float] = (level * np.exp(noise)).tolist()
    return numbers


@pytest.mark.parametrize("ramp", [200, 600])
def test_a_rise_from_almost_nothing_is_found_though_the_unit_is_lost(ramp: int) -> None:
    found = 0
    for seed in range(10):
        detector = GLR(0.05)
        alarms = list[int]()
        for t, number in enumerate(from_almost_nothing(seed, ramp)):
            detector.update(number)
            alarms += [t] if detector.drift_detected else []
        found += any(3000 <= t <= 3000 + 2 * ramp for t in alarms)
    assert found >= 9

"""What becomes of a change: confirmed, unclear, transient or reverted, with the level then."""

import math
import pickle
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.detectors import DetectorSettings
from fluxplain.drift.effect_gate import EffectGate
from fluxplain.drift.follow_up import MOST_OPEN, OpenChanges, Outcome, Series, series_of
from fluxplain.drift.noticed import noticed
from fluxplain.drift.sentences import sentence
from fluxplain.drift.signal_watch import SignalWatch
from fluxplain.drift.windows import Part
from fluxplain.schemas import FIRST_INCARNATION, Change
from tests.kit.support import PROPERTY

BEFORE, LENGTH = 1_000, 400

GLR = DetectorSettings("increment", "glr", {})


def published(
    numbers: Sequence[float], *, every: int = 0, min_effect: float = 0.0, length: int = LENGTH
) -> list[Change]:
    """Return the changes of a series, as a stage publishes them.

    With ``every``, the state is written and read again after so many numbers.
    """
    watch, gate, changes = SignalWatch(GLR, "", length), EffectGate(min_effect), OpenChanges()
    found: list[Change] = []
    for t, number in enumerate(numbers):
        if every and t % every == 0:
            watch, gate, changes = pickle.loads(pickle.dumps((watch, gate, changes)))
        for each in watch.update(t, float(number), None):
            if isinstance(each, Outcome):
                series: Series = None, "loss", "increment"
                change = changes.completed(series, FIRST_INCARNATION, each, others=0.0)
            else:
                about: dict[str, Any] = {"stream": "s-0", "seq": t, "ts": None, "method": "loss"}
                change = gate.passed(noticed(each, signal=watch.signal, **about))
                if change is not None:
                    changes.add(change)
            if change is not None:
                found.append(change)
    return found


def steps(seed: int, *levels: tuple[int, float]) -> list[float]:
    """Return noise around levels, each for so many numbers."""
    rng = np.random.default_rng(seed)
    return [float(number) for n, level in levels for number in level + rng.normal(size=n)]


def statuses(changes: Sequence[Change]) -> list[str | None]:
    return [change.status for change in changes]


def outcome_of_first(changes: Sequence[Change]) -> Change:
    """Return the second record of the first change."""
    first, second = [change for change in changes if change.id == changes[0].id]
    assert first.status == "noticed"
    return second


def test_a_step_that_stays_is_confirmed_with_its_new_level() -> None:
    for seed in range(10):
        noticed, confirmed = published(steps(seed, (BEFORE, 0.0), (800, 2.0)))
        assert (noticed.status, confirmed.status) == ("noticed", "confirmed")
        assert confirmed.id == noticed.id
        assert confirmed.event_id != noticed.event_id
        assert (noticed.status_seq, confirmed.status_seq) == (noticed.seq, noticed.seq + LENGTH)
        assert confirmed.after == pytest.approx(2.0, abs=4.0 / math.sqrt(LENGTH))
        assert confirmed.window == LENGTH
        assert confirmed.after_std_error == pytest.approx(1.0 / math.sqrt(LENGTH), rel=0.7)
        assert (confirmed.before, confirmed.lasted) == (noticed.before, None)


def test_a_small_step_is_confirmed_only_by_many_numbers() -> None:
    unclear = 0
    for seed in range(8):
        numbers = steps(seed, (2 * BEFORE, 0.0), (4 * BEFORE, 0.3))
        few, many = (
            outcome_of_first([c for c in published(numbers, length=n) if c.seq > 2 * BEFORE])
            for n in (150, 2 * BEFORE)
        )
        assert few.status in {"unclear", "transient"}
        assert many.status == "confirmed"
        if few.status == "unclear":
            unclear += 1
            assert (few.lasted, few.direction) == (None, "rose")
            assert sentence(few).startswith("not certain: the loss seems to have risen from ")
    assert unclear >= 4


@pytest.mark.parametrize(
    ("level", "status"), [(-0.6, "confirmed"), (0.3, "transient"), (-0.01, "unclear")]
)
def test_a_reversal_is_confirmed_if_the_sign_has_changed(level: float, status: str) -> None:
    [step, _] = published(steps(0, (BEFORE, 0.0), (800, 2.0)))
    change = replace(step, method="ipdp", signal="trend", before=1.0, after=-0.25)
    change = replace(change, before_std_error=0.03, after_std_error=0.05)
    part = Part(LENGTH, level, LENGTH * 0.4)
    outcome = Outcome(7, 5, 9, part, part, part, None, lasted=3, inflation=1.0)
    assert outcome.completed(change, others=0.0).status == status


@pytest.mark.parametrize("overshoot", [60, 150])
def test_a_step_that_was_larger_at_first_is_confirmed_if_the_level_is_another_one(
    overshoot: int,
) -> None:
    for seed in range(10):
        lasting = steps(seed, (BEFORE, 3.0), (overshoot, -6.0), (800, 0.0))
        assert outcome_of_first(published(lasting)).status == "confirmed"
        passing = steps(seed, (BEFORE, 3.0), (overshoot, -6.0), (800, 2.5))
        assert outcome_of_first(published(passing)).status in {"transient", "reverted"}


def test_a_short_step_is_not_confirmed() -> None:
    for seed in range(10):
        outcome = outcome_of_first(published(steps(seed, (BEFORE, 0.0), (60, 1.5), (800, 0.0))))
        assert outcome.status in {"transient", "reverted"}
        assert outcome.lasted == pytest.approx(60, abs=60)
        if outcome.status == "transient":
            assert outcome.after == pytest.approx(0.0, abs=0.3)


def test_a_step_that_a_further_one_undoes_is_reverted() -> None:
    for seed in range(10):
        numbers = steps(seed, (BEFORE, 0.0), (200, 3.0), (800, 0.0))
        first, back, reverted, confirmed = published(numbers)
        assert [first.id, back.id] == [reverted.id, confirmed.id] != [first.id, first.id]
        assert statuses([first, back, reverted, confirmed]) == [
            *("noticed", "noticed", "reverted", "confirmed")
        ]
        assert reverted.lasted == pytest.approx(200, abs=40)
        assert reverted.after == pytest.approx(3.0, abs=0.4), "the level up to the further change"
        assert back.before == pytest.approx(3.0, abs=0.4)
        assert confirmed.after == pytest.approx(0.0, abs=0.3)


def test_a_step_that_rises_further_lasts_until_it_is_undone() -> None:
    for seed in range(5):
        numbers = steps(seed, (BEFORE, 0.0), (150, 1.8), (150, 3.6), (800, 0.0))
        reverted = outcome_of_first(published(numbers))
        assert reverted.status == "reverted"
        assert reverted.lasted == pytest.approx(300, abs=50)
        assert reverted.after == pytest.approx(2.7, abs=0.5)


def test_only_so_many_changes_wait_for_their_outcomes() -> None:
    levels = [(100, 4.0 * (i % 2)) for i in range(3 * MOST_OPEN)]
    changes = published(steps(2, (BEFORE, 0.0), *levels), length=10**9)
    found = statuses(changes)
    ended = len(found) - found.count("noticed")
    assert found.count("noticed") > MOST_OPEN + 8
    assert found.count("noticed") - ended == MOST_OPEN
    # the oldest first
    noticed = [change.id for change in changes if change.status == "noticed"]
    assert [change.id for change in changes if change.status != "noticed"] == noticed[:ended]


def test_a_step_that_goes_on_in_a_second_one_is_confirmed_later() -> None:
    numbers = steps(1, (BEFORE, 0.0), (200, 3.0), (800, 6.0))
    first, second, confirmed, last = published(numbers)
    assert statuses([first, second, confirmed, last]) == [*["noticed"] * 2, *["confirmed"] * 2]
    assert (confirmed.id, last.id) == (first.id, second.id)
    assert confirmed.status_seq == first.seq + LENGTH
    assert confirmed.after == pytest.approx(4.5, abs=0.4), "of all that came since"
    assert last.after == pytest.approx(6.0, abs=0.3)


def test_a_step_that_a_burst_interrupts_is_confirmed() -> None:
    for seed in range(10):
        numbers = steps(seed, (BEFORE, 0.0), (150, 3.0), (60, 0.0), (800, 3.0))
        assert outcome_of_first(published(numbers)).status == "confirmed"


def test_what_a_notice_says_is_not_too_large_on_average() -> None:
    ratios = []
    for seed in range(60):
        numbers = steps(seed, (2 * BEFORE, 0.0), (BEFORE, 0.7))
        change = next(c for c in published(numbers) if c.seq >= 2 * BEFORE)
        assert change.after is not None
        assert change.before is not None
        ratios.append((change.after - change.before) / 0.7)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.12)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.2)


def test_small_changes_have_no_second_record_until_they_add_up() -> None:
    numbers = [100.0 + x for x in steps(3, (BEFORE, 0.0), (BEFORE, 3.0), (BEFORE, 6.0))]
    noticed, confirmed = published(numbers, min_effect=0.05)
    assert noticed.before == pytest.approx(100.0, abs=0.3)
    assert confirmed.after == pytest.approx(106.0, abs=0.3)
    assert confirmed.effect_size == pytest.approx(6.0 / 106.0, rel=0.1)


levels = st.lists(st.tuples(st.integers(20, 500), st.floats(-6.0, 6.0)), max_size=6)


@pytest.mark.slow
@PROPERTY
@given(levels, st.integers(0, 1_000), st.integers(1, 200))
def test_each_change_has_one_second_record_at_most_and_state_survives(
    later: list[tuple[int, float]], seed: int, every: int
) -> None:
    numbers = steps(seed, (BEFORE, 0.0), *later)
    changes = published(numbers)
    assert published(numbers, every=every) == changes
    open_ids: list[str] = []
    for change in changes:
        assert change.status_seq is not None
        if change.status == "noticed":
            open_ids.append(change.id)
            continue
        open_ids.remove(change.id)
        assert change.seq < change.status_seq
        assert (change.lasted is None) == (change.status in {"confirmed", "unclear"})
    end = len(numbers) - 1
    open_ones = [change for change in changes if change.id in open_ids]
    assert all(change.seq > end - 2 * LENGTH for change in open_ones), "the others are known"
    places = [(change.status_seq, change.seq) for change in changes]
    assert places == sorted(places), "readers drop repeated records by this"
    assert {series_of(change) for change in changes} <= {(None, "loss", "increment")}

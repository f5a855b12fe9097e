"""Changes of distributions: which are found, and how rarely one is reported without any."""

import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.distribution import NumberDistribution, ShareWatch
from fluxplain.drift.follow_up import MOST_OPEN, Outcome
from fluxplain.drift.glr_rows import BLOCK
from fluxplain.drift.share_history import (
    MOST_BLOCKS,
    MOST_CATEGORIES,
    MOST_CHARACTERS,
    ShareHistory,
    Shares,
)
from tests.kit.support import PROPERTY

BEFORE, AFTER = 1_600, 800

Rng = np.random.Generator


class Seen(NamedTuple):
    """A shift: where it was noticed and began, of which signal and category, and both means."""

    seq: int
    after_seq: int
    signal: str
    category: Any
    before: float | None
    after: float


def shifts(values: Sequence[Any], *, share: bool, false_alarms: float = 0.1) -> list[Seen]:
    """Return the shifts of numbers, or of categories."""
    watch = (ShareWatch if share else NumberDistribution)(false_alarms, 1000)
    rows = [{each: 1.0} for each in values] if share else [*map(float, values)]
    found = []
    for begin in range(0, len(rows) - BLOCK + 1, BLOCK):
        seqs = range(begin, begin + BLOCK)
        for each, by in watch.update_block(seqs, rows[begin : begin + BLOCK]):  # type: ignore[arg-type]
            if not isinstance(each, Outcome):
                before = each.before and each.before.mean
                where = seqs[-1], each.after_seq, by.signal, by.category
                found.append(Seen(*where, before, each.after.mean))
    return found


def autocorrelated(rng: Rng, n: int) -> list[float]:
    value, numbers = rng.normal(), []
    for noise in rng.normal(scale=math.sqrt(1.0 - 0.81), size=n).tolist():
        value = 0.9 * value + noise
        numbers.append(value)
    return numbers


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", [1.0, -1.0])
def test_a_step_of_the_mean_is_found_and_no_change_of_the_spread(seed: int, step: float) -> None:
    rng = np.random.default_rng(seed)
    found = shifts([*rng.normal(size=BEFORE), *rng.normal(40.0 * step, size=AFTER)], share=False)
    [mean] = found
    assert mean.signal == "mean"
    assert mean.before == pytest.approx(0.0, abs=0.2)
    assert mean.after == pytest.approx(40.0 * step, rel=0.1)
    assert abs(mean.after_seq - BEFORE) <= BLOCK


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("factor", [2.0, 0.5])
def test_another_spread_is_found_with_standard_deviations(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    numbers = [*rng.normal(7.0, 3.0, BEFORE), *rng.normal(7.0, 3.0 * factor, AFTER)]
    [spread] = shifts(numbers, share=False)
    assert spread.signal == "spread"
    assert spread.before == pytest.approx(3.0, rel=0.1)
    assert spread.after == pytest.approx(3.0 * factor, rel=0.25)
    assert abs(spread.after_seq - BEFORE) < 100


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([0.25, 0.25, 0.25, 0.25], [0.05, 0.45, 0.25, 0.25], id="equally frequent"),
        pytest.param([0.1, 0.4, 0.1, 0.4], [0.4, 0.1, 0.1, 0.4], id="swapped"),
    ],
)
def test_shares_that_move_from_one_category_to_another_are_found(
    seed: int, before: list[float], after: list[float]
) -> None:
    rng = np.random.default_rng(seed)
    values = [*rng.choice(4, BEFORE, p=before), *rng.choice(4, AFTER, p=after)]
    found = shifts([f"c{each}" for each in values], share=True)
    assert found[0].category in {"c0", "c1"}
    assert abs(found[0].after_seq - BEFORE) < 150


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("known", [2, 20])
def test_a_new_category_is_found_and_named(seed: int, known: int) -> None:
    rng = np.random.default_rng(seed)
    later = [-1 if rng.random() < 0.25 else rng.integers(known).item() for _ in range(AFTER)]
    found = shifts([*rng.integers(known, size=BEFORE).tolist(), *later], share=True)
    assert found[0].category == -1
    assert found[0].before == pytest.approx(0.0, abs=0.01)
    assert found[0].after == pytest.approx(0.25, abs=0.15)
    assert found[0].seq < BEFORE + 300


def test_a_shift_of_two_probabilities_is_that_of_the_second_class() -> None:
    rng = np.random.default_rng(1)
    watch, found = ShareWatch(0.1, 1000), []
    for begin in range(0, BEFORE + AFTER, BLOCK):
        level = 0.1 if begin < BEFORE else 0.3
        ps = (level + 0.05 * rng.normal(size=BLOCK)).tolist()
        rows: list[Shares] = [{True: p, False: 1.0 - p} for p in ps]
        found += [each for each, _ in watch.update_block(range(begin, begin + BLOCK), rows)]
    [shift] = found
    assert not isinstance(shift, Outcome)
    assert watch.category is True
    assert shift.before is not None
    assert shift.before.mean == pytest.approx(0.1, abs=0.01)
    assert shift.before.std_error == pytest.approx(0.05 / math.sqrt(shift.before.n), rel=0.1)
    assert shift.after.mean == pytest.approx(0.3, abs=0.05)


STATIONARY: dict[str, tuple[bool, Callable[[Rng, int], Sequence[Any]]]] = {
    "normal": (False, lambda rng, n: rng.normal(size=n).tolist()),
    "lognormal": (False, lambda rng, n: np.exp(rng.normal(size=n)).tolist()),
    "autocorrelated": (False, autocorrelated),
    "constant": (False, lambda _, n: [3.0] * n),
    "huge": (False, lambda rng, n: (1e149 * rng.normal(size=n)).tolist()),
    "two": (True, lambda rng, n: rng.integers(2, size=n).tolist()),
    "twenty": (True, lambda rng, n: [f"c{each}" for each in rng.integers(20, size=n)]),
    "all different": (True, lambda _, n: [f"id-{each}" for each in range(n)]),
    "one": (True, lambda _, n: [True] * n),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_without_a_change_alarms_are_as_rare_as_the_settings_say(name: str) -> None:
    """At 1 in 100,000, 20,000 observations have more than 3 in fewer than one of 10,000 cases."""
    share, make = STATIONARY[name]
    values = make(np.random.default_rng(5), 20_000)
    assert len(shifts(values, share=share, false_alarms=1.0)) <= 3


def test_ids_look_like_no_change_when_their_places_become_random() -> None:
    alarms = 0
    for seed in range(25):
        ids = np.random.default_rng(seed).integers(10**9, size=2_000).tolist()
        alarms += len(shifts(ids, share=True, false_alarms=1.0))
    assert alarms <= 2


def test_a_history_and_open_changes_are_bounded() -> None:
    watch = ShareWatch(1.0, 10**9)
    rng = np.random.default_rng(1)
    for period in range(30):
        for block in range(30):
            begin = BLOCK * (30 * period + block)
            values = [f"{period % 2}-{rng.integers(3)}" for _ in range(BLOCK)]
            [*watch.update_block(range(begin, begin + BLOCK), [{each: 1.0} for each in values])]
    assert len(watch._open) <= MOST_OPEN
    history = ShareHistory()
    for n in range(2 * MOST_BLOCKS):
        history.add(BLOCK * n, [{f"{BLOCK * n + i}": 1.0} for i in range(BLOCK)])
    assert len(history._blocks) == MOST_BLOCKS
    assert history._older is not None
    assert len(history._older.sums) == MOST_CATEGORIES
    assert history.n == 2 * MOST_BLOCKS * BLOCK


def test_long_texts_in_a_history_are_bounded() -> None:
    history = ShareHistory()
    for n in range(2 * MOST_BLOCKS):
        rows: list[Shares] = [{f"{BLOCK * n + i}".ljust(1000): 1.0} for i in range(BLOCK)]
        history.add(BLOCK * n, rows)
    assert len(pickle.dumps(history)) < 3 * MOST_CHARACTERS
    assert history.n == 2 * MOST_BLOCKS * BLOCK
    assert len(history._blocks) == MOST_CHARACTERS // (1000 * BLOCK)
    history.forget(BLOCK)
    assert history.n == BLOCK


def test_classes_are_not_counted_again_in_each_block() -> None:
    history = ShareHistory(math.inf)
    row: Shares = {f"{each}".ljust(100): 0.01 for each in range(100)}
    for n in range(MOST_BLOCKS):
        history.add(BLOCK * n, [row] * BLOCK)
    assert len(history._blocks) == MOST_BLOCKS


def test_a_block_with_too_many_characters_is_kept_until_the_next_one() -> None:
    history = ShareHistory()
    for n in range(3):
        row: Shares = {f"{each}".ljust(1000): 0.001 for each in range(1_000)}
        history.add(BLOCK * n, [row] * BLOCK)
        assert len(history._blocks) == 1


def test_a_new_category_is_found_among_long_texts() -> None:
    texts = [f"{n}".ljust(1000) for n in range(BEFORE)]
    later = [text if n % 2 else "new" for n, text in enumerate(texts[:AFTER])]
    found = shifts([*texts, *later], share=True)
    assert found[0].category == "new"
    assert found[0].before == pytest.approx(0.0, abs=0.05)


@PROPERTY
@given(st.integers(0, 99), st.sampled_from([False, True]), st.sets(st.integers(0, 99), max_size=3))
def test_a_state_that_is_written_and_read_gives_the_same(
    seed: int, share: bool, stops: set[int]
) -> None:
    rng = np.random.default_rng(seed)
    numbers = [*rng.integers(3, size=600).tolist(), *rng.integers(5, size=200).tolist()]
    whole, stopped = ((ShareWatch if share else NumberDistribution)(100.0, 50) for _ in range(2))
    for n in range(len(numbers) // BLOCK):
        if n in stops:
            stopped = pickle.loads(pickle.dumps(stopped))
        seqs = range(n * BLOCK, (n + 1) * BLOCK)
        values: Any = [{numbers[i]: 1.0} if share else float(numbers[i]) for i in seqs]
        one = [found for found, _ in whole.update_block(seqs, values)]
        assert one == [found for found, _ in stopped.update_block(seqs, values)]

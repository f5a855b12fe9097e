"""What is remembered of numbers, coarsely: where windows begin, and what was at some time."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.history import ThinnedHistory
from fluxplain.drift.windows import PER_LEVEL, SMALLEST, Part, Windows
from tests.kit.support import PROPERTY

LOSSES = st.none() | st.floats(0.0, 10.0)


@PROPERTY
@given(st.lists(LOSSES, min_size=1, max_size=600), st.integers(1, 600))
def test_where_the_newest_numbers_begin_is_known_to_about_an_eighth(
    losses: list[float | None], newest: int
) -> None:
    windows = Windows()
    for seq, loss in enumerate(losses):
        windows.add(10 + seq, -seq, loss)
    newest = min(newest, len(losses))
    before, after = windows.split(newest)
    assert abs(after.part.n - newest) <= max(SMALLEST, newest / 8)
    assert after.part.n + (before.part.n if before else 0) == len(losses)
    assert after.seq == 10 + len(losses) - after.part.n
    for part, own in ((before, losses[: -after.part.n]), (after, losses[-after.part.n :])):
        known = [loss for loss in own if loss is not None]
        if part is None or not known:
            assert part is None or part.mean_loss is None
        else:
            assert part.mean_loss == pytest.approx(sum(known) / len(known), abs=1e-9)


@PROPERTY
@given(st.integers(1, 400), st.integers(1, 400), st.integers(0, 400))
def test_what_is_forgotten_was_before_the_newest_numbers(n: int, newest: int, more: int) -> None:
    windows = Windows()
    for seq in range(n):
        windows.add(seq, 0.0, 0.0)
    _, kept = windows.split(newest)
    windows.forget(newest)
    assert windows.split(n) == (None, kept)
    for seq in range(n, n + more):
        windows.add(seq, 0.0, 0.0)
    before, after = windows.split(1)
    assert (before or after).seq == kept.seq == windows.seq
    assert after.part.n + (before.part.n if before else 0) == kept.part.n + more


@PROPERTY
@given(st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=SMALLEST * PER_LEVEL))
def test_a_change_of_the_mean_is_where_two_means_leave_the_least_squares(
    numbers: list[float],
) -> None:
    windows = Windows()
    for seq, number in enumerate(numbers):
        windows.add(seq, number, None)
    before, after = windows.split_by_mean()
    assert (before is None) == (len(numbers) <= SMALLEST)
    if before is None:
        assert after.part == Part.of(numbers)
        return
    # nothing is merged yet, so that a change may be at each beginning of a bucket
    splits = [(numbers[:i], numbers[i:]) for i in range(SMALLEST, len(numbers), SMALLEST)]
    least = min(sum(Part.of(part).squares for part in split) for split in splits)
    assert before.part.squares + after.part.squares == pytest.approx(least, abs=1e-9)
    for bucket, own in ((before, numbers[: after.seq]), (after, numbers[after.seq :])):
        assert bucket.part == pytest.approx(Part.of(own), abs=1e-9)


@PROPERTY
@given(st.integers(1, 3000), st.integers(0, 3000))
def test_what_was_at_some_time_is_found_at_most_an_eighth_further_back(n: int, back: int) -> None:
    thinned = ThinnedHistory[int]()
    for t in range(n):
        thinned.add(t, t)
    asked = n - 1 - min(back, n - 1)
    found = thinned.at(asked)
    # of the very first there may be none left
    if found is None:
        assert asked < (n - 1 - asked) / 8 + 1
    else:
        assert 0 <= asked - found <= (n - asked) / 7 + 1
    assert thinned.at(-1) is None


def test_memory_grows_with_the_logarithm() -> None:
    windows, thinned = Windows(), ThinnedHistory[int]()
    for t in range(100_000):
        windows.add(t, 0.0, 0.5)
        thinned.add(t, t)
    assert len(thinned) <= 9 * math.log2(100_000)
    assert len(pickle.dumps(windows)) < 10_000

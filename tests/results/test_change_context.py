"""What surrounds a change: each record once, in bounded memory."""

import random
import statistics
from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.drift.windows import Part
from fluxplain.results.change_context import (
    MAX_BINS,
    NOTHING,
    Bins,
    ChangeContext,
    Window,
    strongest,
)
from fluxplain.results.selection import SelectedResults
from fluxplain.schemas import Record
from tests.kit.records import change, explanation, prediction
from tests.kit.support import PROPERTY
from tests.monitor.figures.samples import DRIFT, drift_of, drift_of_loss, stream_of, value_of


@PROPERTY
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_moments_are_the_mean_and_its_standard_error(numbers: list[float]) -> None:
    moments = reduce(Part.with_number, numbers, NOTHING)
    assert moments.mean == pytest.approx(statistics.fmean(numbers), abs=1e-6)
    expected = statistics.stdev(numbers) / len(numbers) ** 0.5
    assert moments.std_error == pytest.approx(expected, rel=1e-6, abs=1e-6)


def context_of(records: Iterable[Record]) -> ChangeContext:
    context = ChangeContext(drift_of("f0", "ipfi"))
    SelectedResults.of(records, contexts=[context])
    return context


def test_moves_are_the_means_of_increments_before_and_after() -> None:
    context = context_of(stream_of(6))
    moves = {move.feature: move for move in context.moves("ipfi")}
    assert list(moves)[:2] == ["f1", "f0"]
    window = context.window
    assert (window.before, window.after, window.seen) == (DRIFT - 200, DRIFT, DRIFT + 200)
    before = [value_of(0, seq) for seq in range(window.before, window.after)]
    after = [value_of(0, seq) for seq in range(window.after, window.seen + 1)]
    assert moves["f0"].before.mean == pytest.approx(statistics.fmean(before))
    assert moves["f0"].after.mean == pytest.approx(statistics.fmean(after))
    assert moves["f0"].after.n == 201


def test_what_comes_again_or_in_another_order_counts_once() -> None:
    records = list(stream_of(6))
    again = records + records[1000:3000]
    random.Random(1).shuffle(again[:2000])
    once, twice = context_of(records), context_of(again)
    assert once.moves("ipfi") == twice.moves("ipfi")
    assert list(once.losses) == list(twice.losses)
    for column, other in zip(once.trend.points, twice.trend.points, strict=True):
        assert column.tolist() == other.tolist()


def test_increments_that_are_grouped_with_seen_ones_count_once() -> None:
    first = replace(explanation("f0", 1499, 0.1), seqs=[1498, 1499], increments=[1.0, 2.0])
    regrouped = replace(explanation("f0", 1501, 0.1), seqs=[1499, 1501], increments=[2.0, 4.0])
    increments = context_of([first, regrouped]).increments
    assert [moments.n for _, moments in increments] == [2, 1]


def test_memory_is_bounded_however_many_observations_surround_a_change() -> None:
    context = ChangeContext(replace(drift_of_loss(), seq=10**6, after_seq=5 * 10**5, replay_seq=0))
    for seq in range(0, 2 * 10**6, 97):
        context.add(prediction(seq))
    assert len(list(context.losses)) <= MAX_BINS + 2
    assert sum(moments.n for _, moments in context.losses) == len(range(0, 1_250_001, 97))


def test_records_of_other_streams_and_far_away_do_not_count() -> None:
    context = ChangeContext(drift_of("f0", "ipfi"))
    context.add(prediction(1600, stream="features-1"))
    context.add(prediction(10))
    context.add(prediction(10_000))
    context.add(prediction(1600, loss=None))
    assert list(context.losses) == []


def test_a_mean_before_is_about_what_follows_the_change_before() -> None:
    window = Window.of(replace(drift_of("f0"), previous_seq=DRIFT - 100))
    assert window.since == window.before == DRIFT - 99


def test_the_clearest_changes_keep_their_order() -> None:
    def clear(seq: int, error: float) -> Record:
        drift = replace(change("f0", seq), id=str(seq), before_std_error=error)
        return replace(drift, after_std_error=error)

    errors = {10: 0.1, 20: 0.01, 30: 0.001, 40: 0.5}
    changes = [clear(seq, error) for seq, error in errors.items()]
    assert [each.seq for each in strongest(changes, 2)] == [20, 30]  # type: ignore[arg-type]
    assert [each.seq for each in strongest([change("f0", 7)], 2)] == [7]
    gap = replace(change("f0", 7), kind="gap")
    assert strongest([gap], 2) == []


def test_a_bin_that_mostly_lies_before_the_window_is_not_shown() -> None:
    bins = Bins(Window(begin=0, since=0, before=50, after=154, seen=250, end=600))
    for seq in range(600):
        bins.add(seq, 35.0 if seq < 3 else 1.0)
    assert bins.width == 10
    assert next(moments.mean for _, moments in bins) == 1.0
    assert sum(moments.n for _, moments in bins) == 600 - 4

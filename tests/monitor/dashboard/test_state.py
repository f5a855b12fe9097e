"""What the dashboard knows: each result once, no news without any, never more than so much."""

import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest

from pipeline.monitor.dashboard import curves, performance, state, stories
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.performance import Performance
from pipeline.monitor.dashboard.state import State
from schemas import Change, Explanation, Record
from tests.monitor.dashboard.stream import STREAM, change, letter, name, records


def filled(published: Iterable[Record]) -> State:
    known = State()
    for record in published:
        known.add(record, 0)
    return known


def line(known: State, feature: str) -> Line:
    return known.streams[STREAM].lines["ipfi", 0.001][feature]


def test_what_is_published_again_after_a_crash_counts_once() -> None:
    published = [*records(1500), letter(3), letter(7)]
    once, again = filled(published), filled([*published, *published[500:]])
    stream, same = once.streams[STREAM], again.streams[STREAM]
    assert (same.records, same.change_count, again.letter_count) == (1500, 5, 2)
    assert same.performance.course(50) == stream.performance.course(50)
    assert len(line(again, name(1))) == len(line(once, name(1))) == 150
    assert [each for _, each in same.changes] == [each for _, each in stream.changes]


def test_predictions_of_two_partitions_may_come_one_after_the_other() -> None:
    published = list(records(1000, features=0))
    mixed, apart = State(), State()
    for seq, record in enumerate(published):
        mixed.add(record, seq % 2)
    for partition in (0, 1):
        for record in published[partition::2]:
            apart.add(record, partition)
    course = mixed.streams[STREAM].performance.course(20)
    other = apart.streams[STREAM].performance.course(20)
    assert other["seq"] == course["seq"]
    assert other["loss"] == pytest.approx(course["loss"])
    assert apart.streams[STREAM].records == 1000


def test_an_explanation_without_news_is_not_drawn() -> None:
    published = [r for r in records(100) if isinstance(r, Explanation)]
    newest = max(published, key=lambda record: record.seq)
    silent = replace(newest, seq=newest.seq + 1000, seqs=[], increments=[])
    assert line(filled([*published, silent]), newest.feature).seq == newest.seq


def test_numbers_that_nobody_can_draw_are_left_out() -> None:
    [first, *_] = [r for r in records(1) if isinstance(r, Explanation)]
    known = filled([replace(first, value=1e300), replace(first, std_error=float("inf"))])
    assert not known.streams


def test_a_story_comes_back_as_it_was_published() -> None:
    told = change("f1", 700, "ipfi")
    known = filled([told])
    assert Change.decode(known.stories.get(told.id)) == told
    [(_, short)] = known.streams[STREAM].changes
    assert short["id"] == told.id
    assert "curve_before" not in short


def test_a_notice_of_another_role_is_told_without_a_stream_of_its_own() -> None:
    gap = Change.notice(
        kind="gap", stream="fluxplain.evaluations-2", seq=7, detail="some were lost"
    )
    known = filled([gap])
    assert [notice["detail"] for notice in known.notices] == ["some were lost"]
    assert not known.streams


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a short stream reaches."""
    monkeypatch.setattr(state, "MAX_LINE_POINTS", 40)
    monkeypatch.setattr(state, "MAX_CURVE_BYTES", 9 * 4000)
    monkeypatch.setattr(state, "MAX_CHANGES", 20)
    monkeypatch.setattr(state, "MAX_LETTERS_SEEN", 50)
    monkeypatch.setattr(performance, "MAX_BUCKETS", 40)
    monkeypatch.setattr(stories.Stories.__init__, "__defaults__", (20_000,))


@pytest.mark.usefixtures("small")
def test_memory_does_not_grow_with_the_stream() -> None:
    tracemalloc.start()
    try:
        known, sizes = State(), []
        for block in range(12):
            for i, record in enumerate(records(500, first=500 * block, half=3000)):
                known.add(record, 0, now=500.0 * block + i)
            for seq in range(500 * block, 500 * block + 500, 10):
                known.add(change("f1", seq, "ipfi"), 0)
                known.add(letter(seq), 0)
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert known.streams[STREAM].records == 6000
    assert known.streams[STREAM].change_count > 500
    # it goes up and down: what is thinned grows again
    assert max(sizes[6:]) < 1.1 * max(sizes[:6])


@pytest.mark.parametrize("n", [1, 39, 40, 41, 1000])
def test_a_line_keeps_its_first_and_newest_points_in_order(n: int) -> None:
    thinned = Line()
    for seq in range(n):
        thinned.add(seq, float(seq), 0.0, version=seq, most=40)
    assert len(thinned) <= 40
    kept = thinned.between(0, n, most=100).seq.tolist()
    assert (kept[0], kept[-1]) == (0, n - 1)
    gaps = {b - a for a, b in pairwise(kept[:-1])}
    assert len(gaps) <= 1


def test_a_closer_look_has_more_points() -> None:
    known = filled(records(2000, features=3))
    whole = line(known, "f1").between(0, 2000, most=20)
    closer = line(known, "f1").between(1000, 1200, most=20)
    assert len(whole.seq) <= 21
    assert sum(1000 <= seq <= 1200 for seq in whole.seq) < 4
    assert sum(1000 <= seq <= 1200 for seq in closer.seq) > 8
    assert closer.seq[0] <= 1000
    assert closer.seq[-1] >= 1200


def test_as_many_lines_and_streams_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "MAX_LINES", 6)
    monkeypatch.setattr(state, "MAX_STREAMS", 1)
    known = filled([*records(1, features=3), *records(1, stream="fluxplain.features-1")])
    assert list(known.streams) == [STREAM]
    assert sum(map(len, known.streams[STREAM].lines.values())) == 6
    assert known.dropped == 3 + 1 + 27


def test_earlier_curves_are_spread_over_the_whole_stream() -> None:
    known = filled(records(2000, features=3))
    stack = known.streams[STREAM].curves["f1", 0.001]
    seqs = [orjson.loads(curve)["seq"] for curve in stack.earlier]
    assert 6 <= len(seqs) <= curves.MAX_EARLIER
    assert seqs[0] == 0
    assert len({b - a for a, b in pairwise(seqs)}) == 1
    assert orjson.loads(stack.current)["seq"] == 1990
    assert len(orjson.loads(stack.ice)) == 5


def test_a_small_loss_is_exact_after_a_large_one() -> None:
    course = Performance()
    for seq in range(3000):
        course.add(seq, 1e15 if seq < 1000 else 1e-3, None)
    assert course.course(10)["loss"][-1] == pytest.approx(1e-3)

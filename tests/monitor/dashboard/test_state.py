"""What the dashboard knows: each result once, no news without any, never more than so much."""

import random
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.monitor.dashboard import curves, letters, performance, state, stories
from pipeline.monitor.dashboard.lines import Line
from pipeline.monitor.dashboard.performance import Performance
from pipeline.monitor.dashboard.state import State
from schemas import Change, Explanation, Record
from schemas.explanation import Ice
from schemas.record import Value
from tests.monitor.dashboard.stream import STREAM, change, explanation, name, records
from tests.monitor.records import letter
from tests.support import PROPERTY


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
    assert (same.records, same.change_count, again.letters.count) == (1500, 5, 2)
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
    assert known.left_out == {state.UNFIT: 2}


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
    monkeypatch.setattr(letters, "MAX_SEEN", 50)
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


LONG = "x" * 100_000

PDP = explanation(0, 0, 1000, random.Random(1), method="ipdp")

ICE = Ice(seq=0, grid=[0.0, 1.0], effect=[0.0, 1.0])

DRIFT = change("f0", 0, "ipfi")

LETTER = letter(0)

HOSTILE: dict[str, tuple[Callable[[int], Record], str | None]] = {
    "streams": (lambda i: replace(PDP, stream=f"s-{i}"), state.NO_ROOM),
    "features": (lambda i: replace(PDP, feature=f"x{i}"), state.NO_ROOM),
    "rates": (lambda i: replace(PDP, alpha=1.0 / (i + 2)), state.NO_ROOM),
    "long streams": (lambda i: replace(PDP, stream=f"{LONG}-{i}"), state.UNFIT),
    "long features": (lambda i: replace(PDP, feature=f"{LONG}{i}"), state.UNFIT),
    "offsets": (lambda i: replace(PDP, seq=2**64 - 1 - i), state.UNFIT),
    "large values": (lambda i: replace(PDP, seq=i, value=1e300), state.UNFIT),
    "grids": (
        lambda i: replace(PDP, seq=i, grid=[*range(600)], effect=[float(i)] * 600),
        state.NO_CURVE,
    ),
    "texts in grids": (
        lambda i: replace(PDP, seq=i, grid=[f"{LONG}{i}"], effect=[1.0], ice=None),
        state.NO_CURVE,
    ),
    "classes": (
        lambda i: replace(PDP, seq=i, classes=[*range(300)], effect=[[1.0] * 5] * 300, ice=None),
        state.NO_CURVE,
    ),
    "single observations": (lambda i: replace(PDP, seq=i, ice=[ICE] * 150), state.NO_CURVE),
    "curves of another length": (lambda i: replace(PDP, seq=i, effect=[1.0]), state.NO_CURVE),
    "curves of many features": (
        lambda i: replace(PDP, seq=i, feature=f"x{i % 40}", grid=[*range(100)], effect=[1.0] * 100),
        None,
    ),
    "changes": (lambda i: replace(DRIFT, feature=f"x{i}", id=f"{i}"), state.NO_ROOM),
    "changes' streams": (lambda i: replace(DRIFT, stream=f"s-{i}"), state.NO_ROOM),
    "long sentences": (lambda i: replace(DRIFT, seq=i, id=f"{i}", detail=f"{LONG}{i}"), None),
    "long identities": (lambda i: replace(DRIFT, seq=i, id=f"{LONG}{i}"), state.UNFIT),
    "long incidents": (lambda i: replace(DRIFT, seq=i, incident=f"{LONG}{i}"), state.UNFIT),
    "long notices": (
        lambda i: Change.notice(kind="gap", stream="s-0", seq=i, detail=f"{LONG}{i}"),
        None,
    ),
    "letters' topics": (lambda i: replace(LETTER, topic=f"{LONG}{i}"), None),
    "letters' partitions": (lambda i: replace(LETTER, partition=i), None),
    "long keys": (lambda i: replace(LETTER, offset=i, key=f"{LONG}{i}"), None),
    "long reasons": (lambda i: replace(LETTER, offset=i, reason=f"{LONG}{i}"), None),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("record", "why"), HOSTILE.values(), ids=HOSTILE)
def test_what_others_wrote_does_not_fill_the_memory(
    record: Callable[[int], Record], why: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "MAX_CURVE_BYTES", 5_000)
    monkeypatch.setattr(state, "MAX_LINES", 50)
    monkeypatch.setattr(state, "MAX_STREAMS", 4)
    tracemalloc.start()
    try:
        known, sizes = State(), []
        for i in range(400):
            known.add(record(i), 0)
            if i % 200 == 199:
                sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sizes[0] < 300_000
    assert sizes[1] < sizes[0] + 20_000
    assert not why or why in known.left_out


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.sampled_from([0.1, 0.2]), st.integers(1, 80)), max_size=400
    )
)
@settings(PROPERTY, max_examples=40)
def test_points_and_curves_of_all_lines_never_take_more_than_their_room(
    added: list[tuple[int, float, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "MAX_POINTS", 200)
        patch.setattr(state, "MAX_CURVE_BYTES", 5_000)
        known = State()
        for seq, (feature, alpha, points) in enumerate(added):
            grid: list[Value] = [float(i) for i in range(points)]
            curve = replace(PDP, grid=grid, effect=[0.5] * points, ice=[ICE] * (points % 7))
            known.add(replace(curve, feature=f"x{feature}", alpha=alpha, seq=seq), 0)
            lines = [
                line for each in known.streams[STREAM].lines.values() for line in each.values()
            ]
            assert sum(map(len, lines)) <= 200
            assert all(lines), "each has its newest point"
            assert sum(stack.size for stack in known.streams[STREAM].curves.values()) <= 5_000


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
    assert known.left_out == {state.NO_ROOM: 3 + 1 + 27}


def test_earlier_curves_are_spread_over_the_whole_stream() -> None:
    known = filled(records(2000, features=3))
    stack = known.streams[STREAM].curves["f1", 0.001]
    seqs = [orjson.loads(curve)["seq"] for curve in stack.earlier]
    assert 6 <= len(seqs) <= curves.MAX_EARLIER
    assert seqs[0] == 0
    assert len({b - a for a, b in pairwise(seqs)}) == 1
    assert stack.current
    assert orjson.loads(stack.current)["seq"] == 1990
    assert len(orjson.loads(stack.ice)) == 5


def test_a_small_loss_is_exact_after_a_large_one() -> None:
    course = Performance()
    for seq in range(3000):
        course.add(seq, 1e15 if seq < 1000 else 1e-3, None)
    assert course.course(10)["loss"][-1] == pytest.approx(1e-3)

"""All streams side by side: a row each, in bounded memory, whatever stands in the topics."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest

from pipeline.monitor.dashboard import state
from pipeline.monitor.dashboard.choice import Chooser
from pipeline.monitor.dashboard.overview import POINTS, TOP, Row, overview
from pipeline.monitor.dashboard.state import State
from schemas import Change, Record
from schemas.explanation import Method
from schemas.prediction import LabelCounts
from tests.monitor.dashboard.stream import change, name, records
from tests.monitor.records import letter, prediction
from tests.support import make_config

TOPIC = "fluxplain.features"

CONFIG = make_config(
    features={name(i): "numeric" for i in range(5)},
    explain={"alpha": 0.001},
    streams={2: {"explain": {"alpha": [0.2, 0.001]}}},
)


def stream(partition: int) -> str:
    return f"{TOPIC}-{partition}"


def filled(*published: Iterable[Record]) -> State:
    known = State(TOPIC)
    for partition, each in enumerate(published):
        for record in each:
            known.add(record, partition)
    return known


def rows(known: State, method: Method | None = None) -> list[Row]:
    return overview(known, Chooser(CONFIG), method, now=0.0)


def test_the_newest_change_is_first_and_streams_without_one_are_in_their_order() -> None:
    known = filled(*(records(20, features=1, stream=stream(i)) for i in (10, 2, 1, 3)))
    known.add(change("f0", 5, "ipfi", stream=stream(1)), 0, at=1_000)
    known.add(change("f0", 9, "ipfi", stream=stream(10)), 0, at=2_000)
    # one that came before, of another feature, and a notice
    known.add(change("f1", 3, "ipfi", stream=stream(10)), 0, at=1_500)
    assert [row.stream for row in rows(known)] == [stream(i) for i in (10, 1, 2, 3)]
    first, second, third, _ = rows(known)
    assert (first.changed_at, second.changed_at, third.changed_at) == (2_000, 1_000, 0)
    assert first.change is not None
    assert first.change["seq"] == 9
    assert third.change is None
    gap = Change.notice(kind="gap", stream=stream(3), seq=7, detail="lost")
    known.add(gap, 0, at=3_000)
    assert rows(known)[0].stream == stream(3)


def test_a_row_says_what_the_stream_shows_now() -> None:
    known = filled(records(1_600, features=5))
    [row] = rows(known)
    assert (row.records, row.newest_seq, row.method, row.alpha) == (1_600, 1_599, "ipfi", 0.001)
    course = known.streams[stream(0)].performance.course(100)
    assert (row.loss, row.accuracy) == (course["loss"][-1], course["accuracy"][-1])
    assert row.top[0].feature == "f2"
    values = [top.value for top in row.top]
    assert values == sorted(values, reverse=True)
    assert len(values) == TOP
    for top in row.top:
        line = known.streams[stream(0)].lines["ipfi", 0.001][top.feature]
        newest = line.between(line.seq, line.seq, most=1)
        assert (top.value, top.std_error) == (newest.value[-1], newest.std_error[-1])
        assert (top.seq[-1], top.course[-1]) == (line.seq, top.value)
        assert len(top.seq) == len(top.course) <= POINTS


def test_a_stream_is_ranked_by_the_method_and_rate_that_it_has() -> None:
    only = (r for r in records(50, stream=stream(1)) if getattr(r, "method", "isage") != "ipfi")
    slow = records(50, features=2, stream=stream(2))
    fast = records(50, features=2, stream=stream(2), alpha=0.2)
    known = filled(records(50, features=2), only, [*slow, *fast])
    assert [(row.method, row.alpha) for row in rows(known)] == [
        ("ipfi", 0.001),
        ("isage", 0.001),
        ("ipfi", 0.2),
    ]
    assert [row.method for row in rows(known, "ipdp")] == ["ipdp"] * 3


def test_dead_letters_are_counted_by_stream_and_alone_make_one_known() -> None:
    known = filled(records(20, features=1))
    letters = [letter(i, partition=i % 2, topic=TOPIC) for i in range(5)]
    foreign = letter(1, partition=1, topic="fluxplain.evaluations")
    for each in [*letters, letters[0], foreign]:
        known.add(each, 0)
    assert known.letters.count == 6
    assert {row.stream: row.letters for row in rows(known)} == {stream(0): 3, stream(1): 2}
    alone = next(row for row in rows(known) if row.stream == stream(1))
    assert (alone.records, alone.newest_seq, alone.top, alone.method) == (0, -1, [], None)
    assert (alone.loss, alone.accuracy, alone.change) == (None, None, None)


def test_labels_that_come_later_are_told() -> None:
    counts = LabelCounts(waiting=7, joined=3, missing=1, repeated=0, unknown=0)
    known = filled([replace(prediction(0, stream=stream(0)), labels=counts)])
    assert [row.labels for row in rows(known)] == [counts]


def test_it_is_told_that_there_are_more_streams_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state, "MAX_STREAMS", 2)
    known = filled(*(records(1, features=1, stream=stream(i)) for i in (1, 2)))
    assert not known.has_more_streams
    known.add(letter(0, partition=3, topic=TOPIC), 0)
    assert known.has_more_streams
    assert [row.stream for row in rows(known)] == [stream(1), stream(2)]


def test_numbers_that_cannot_be_shown_are_none() -> None:
    known = filled([prediction(0, loss=None, stream=stream(0)), prediction(1, stream=stream(0))])
    [row] = rows(known)
    assert row.loss is None, "of so few a mean says little"
    assert math.isfinite(row.rate)

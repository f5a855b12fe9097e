"""All streams side by side: a row each, in bounded memory, whatever stands in the topics."""

from collections.abc import Iterable
from dataclasses import replace

from fluxplain.results.store import Store
from fluxplain.results.stream_results import TOP, Alphas, Row, overview
from fluxplain.schemas import Change, Note, Record
from fluxplain.schemas.methods import Method
from fluxplain.schemas.prediction import LabelCounts
from tests.kit.records import letter, prediction
from tests.kit.support import make_config
from tests.monitor.dashboard.stream import change, name, records

TOPIC = "fluxplain.features"

CONFIG = make_config(
    features={name(i): "numeric" for i in range(5)},
    explain={"alpha": 0.001},
    streams={2: {"explain": {"alpha": [0.2, 0.001]}}},
)


def stream(partition: int) -> str:
    return f"{TOPIC}-{partition}"


def filled(*published: Iterable[Record]) -> Store:
    known = Store(TOPIC)
    for partition, each in enumerate(published):
        for record in each:
            known.add(record, partition)
    return known


def rows(known: Store, method: Method | None = None) -> list[Row]:
    return overview(known.streams, Alphas.configured(CONFIG), method, now=0.0)


def test_the_latest_change_is_first_and_streams_without_one_are_in_their_order() -> None:
    known = filled(*(records(20, features=1, stream=stream(i)) for i in (10, 2, 1, 3)))
    known.add(change("f0", 5, "ipfi", stream=stream(1)), 0, at=1_000)
    known.add(change("f0", 9, "ipfi", stream=stream(10)), 0, at=2_000)
    # one that came before, of another feature, and a notice
    known.add(change("f1", 3, "ipfi", stream=stream(10)), 0, at=1_500)
    assert [row.stream for row in rows(known)] == [stream(i) for i in (10, 1, 2, 3)]
    first, second, third, _ = rows(known)
    assert [row.results.changed_at for row in (first, second, third)] == [2_000, 1_000, 0]
    assert first.change is not None
    assert first.change.seq == 9
    assert third.change is None
    gap = Change.notice(kind="gap", stream=stream(3), seq=7, detail="lost")
    known.add(gap, 0, at=3_000)
    assert rows(known)[0].stream == stream(3)


def test_the_latest_change_is_of_no_muted_feature_and_may_be_acknowledged() -> None:
    known = filled(records(20, features=2, stream=stream(0)))
    heard = change("f0", 5, "ipfi", stream=stream(0))
    for each in (heard, change("f1", 9, "ipfi", stream=stream(0))):
        known.add(each, 0)
    at = "2026-03-01T12:00:00Z"
    known.add(Note("muted", at, feature="f1", text="noise"))
    [row] = overview(known.streams, Alphas(), None, 0.0, known.notes)
    assert row.change == known.streams[stream(0)].changes[0][1]
    assert row.note is None
    known.add(Note("acknowledged", at, change=heard.id, by="Ada"))
    [row] = overview(known.streams, Alphas(), None, 0.0, known.notes)
    assert row.note is not None
    assert row.note.by == "Ada"


def test_a_row_says_what_the_stream_shows_now() -> None:
    counts = LabelCounts(waiting=7, joined=3, missing=1, repeated=0, unknown=0)
    late = replace(prediction(1_600, stream=stream(0)), labels=counts)
    known = filled([*records(1_600, features=5), late])
    [row] = rows(known)
    assert (row.results.records, row.method, row.alpha) == (1_601, "ipfi", 0.001)
    assert row.results.labels == counts
    trend = known.streams[stream(0)].performance.trend(100)
    assert (row.loss, row.accuracy) == (trend["loss"][-1], trend["accuracy"][-1])
    assert [feature for feature, _ in row.top[:2]] == ["f2", "f0"]
    values = [series.newest.value for _, series in row.top]
    assert values == sorted(values, reverse=True)
    assert len(values) == TOP


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
    assert known.letter_count == 6
    assert {row.stream: row.results.letters for row in rows(known)} == {stream(0): 3, stream(1): 2}
    alone = next(row for row in rows(known) if row.stream == stream(1))
    assert (alone.results.records, alone.top, alone.method) == (0, [], None)
    assert (alone.loss, alone.accuracy, alone.change) == (None, None, None)

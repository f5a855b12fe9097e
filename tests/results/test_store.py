"""The store: each result once, no news without any, and bounded memory."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
from hypothesis import given, settings

from fluxplain.results import pdp_history, store
from fluxplain.results.duplicates import Duplicates
from fluxplain.results.performance import Performance, Throughput
from fluxplain.results.series import Estimate, Series
from fluxplain.results.store import MAX_CHANGES, PATIENCE, Store
from fluxplain.schemas import Change, Evaluation, Record
from fluxplain.schemas.change import Region
from tests.kit import records as plain
from tests.kit.any_records import any_record
from tests.kit.records import letter, prediction, store_of
from tests.kit.support import PROPERTY
from tests.monitor.dashboard.stream import STREAM, change, name, records


def series_of(known: Store, feature: str) -> Series:
    return known.streams[STREAM].series["ipfi", 0.001][feature]


def test_repetitions_after_a_crash_change_nothing() -> None:
    published = [*records(1500), letter(3), letter(7)]
    once, again = store_of(published), store_of([*published, *published[500:]])
    stream, same = once.streams[STREAM], again.streams[STREAM]
    assert (same.records, same.change_count, again.letter_count) == (1500, 5, 2)
    assert same.performance.trend(50) == stream.performance.trend(50)
    assert len(series_of(again, name(1))) == len(series_of(once, name(1))) == 150
    assert [each for _, each in same.changes] == [each for _, each in stream.changes]


def test_predictions_of_a_stream_may_come_from_partitions_one_after_the_other() -> None:
    published = list(records(1000, features=0))
    mixed, apart = Store(), Store()
    for seq, record in enumerate(published):
        mixed.add(record, seq % 2)
    for partition in (0, 1):
        for record in published[partition::2]:
            apart.add(record, partition)
    trend = mixed.streams[STREAM].performance.trend(20)
    other = apart.streams[STREAM].performance.trend(20)
    assert other["seq"] == trend["seq"]
    assert other["loss"] == pytest.approx(trend["loss"])
    assert (apart.streams[STREAM].records, apart.streams[STREAM].newest_seq) == (1000, 999)


def test_an_explanation_without_increments_is_no_news() -> None:
    known = store_of([plain.explanation("a", 10, 0.1)])
    assert not known.add(replace(plain.explanation("a", 20, 0.1), seqs=[], increments=[]))
    view = known.streams[plain.STREAM].at()
    assert (view.series["ipfi"]["a"].seq, view.results.newest_seq) == (10, 10)


def test_a_view_has_the_newest_estimates_of_each_feature_and_method() -> None:
    known = store_of(
        [
            plain.explanation("a", 10, 0.1),
            plain.explanation("a", 20, 0.2),
            plain.explanation("a", 10, 0.3, method="ipdp"),
            plain.explanation("b", 10, 0.4),
        ]
    )
    view = known.streams[plain.STREAM].at()
    newest = {m: {f: s.newest.value for f, s in each.items()} for m, each in view.series.items()}
    assert newest == {"ipfi": {"a": 0.2, "b": 0.4}, "ipdp": {"a": 0.3}}
    assert view.series["ipfi"]["a"].before(20) == Estimate(10, 0.1, 0.01)
    assert view.series["ipfi"]["a"].before(10) is None
    assert (view.features, view.methods) == (["a", "b"], ["ipfi", "ipdp"])


@pytest.mark.parametrize(
    ("alphas", "shown"),
    [([], 0.001), ([0.5], 0.5), ([0.001], 0.001), ([7.0, 0.5], 0.5), ([7], 0.001)],
)
def test_of_several_smoothing_rates_the_preferred_one_is_shown(
    alphas: list[float], shown: float
) -> None:
    slow = plain.explanation("a", 1, 0.1)
    known = store_of([slow, replace(slow, alpha=0.5, value=1.0)])
    view = known.streams[plain.STREAM].at(alphas)
    assert view.alpha == shown
    assert view.series["ipfi"]["a"].newest.value == (1.0 if shown == 0.5 else 0.1)


def test_a_change_comes_back_as_it_was_published_and_is_listed_without_curves() -> None:
    published = replace(change("f1", 700, "ipfi"), region=Region([], 0.5, 1.0), evidence=[])
    known = store_of([published])
    assert Change.decode(known.stories.get(published.id)) == published
    [(_, short)] = known.streams[STREAM].changes
    assert short == replace(change("f1", 700, "ipfi"), curve_before=None, curve_after=None)


def test_a_notice_is_a_change_of_a_known_stream_but_makes_none_known() -> None:
    gap = Change.notice(kind="gap", stream="fluxplain.evaluations-2", seq=7, detail="lost")
    cold = Change.notice(kind="cold-start", stream=plain.STREAM, seq=7, detail="started cold")
    known = store_of([gap, gap, prediction(0), cold])
    assert [notice.detail for notice in known.notices] == ["lost", "started cold"]
    assert list(known.streams) == [plain.STREAM]
    assert known.streams[plain.STREAM].at().changes == [cold]


@given(any_record(Evaluation))
@settings(PROPERTY, max_examples=5)
def test_records_of_other_kinds_are_ignored(run: Evaluation) -> None:
    assert not Store().add(run)


def test_the_newest_changes_are_kept_by_seq_and_all_are_counted() -> None:
    seqs = list(range(MAX_CHANGES + 500))
    # four features, each in order, one after the other: so are the partitions of a topic read
    known = store_of(plain.change(f"f{i}", seq) for i in range(4) for seq in seqs[i::4])
    stream = known.streams[plain.STREAM]
    assert stream.change_count == len(seqs)
    assert [each.seq for each in stream.at().changes] == seqs[-MAX_CHANGES:]


def test_many_streams_share_the_room_for_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_ALL_CHANGES", 80)
    known = Store()
    for i in range(8):
        for seq in range(100):
            known.add(plain.change("a", seq, stream=f"s-{i}"))
        assert sum(len(stream.changes) for stream in known.streams.values()) <= 80
    assert all(len(stream.changes) == 10 for stream in known.streams.values())


def test_dead_letters_of_all_topics_are_counted_and_the_last_ones_kept() -> None:
    known = store_of([letter(5), letter(3, "newest"), letter(5, partition=1), letter(5)])
    assert known.letter_count == 3
    assert [each["offset"] for each in known.letters] == [5, 3, 5]
    assert (known.letters[-1]["partition"], known.letters[1]["reason"]) == (1, "newest")
    assert (known.streams, known.current) == ({}, None)


def test_one_stream_is_current_as_long_as_it_has_data() -> None:
    known = Store()
    for seq in range(2 * PATIENCE):
        known.add(prediction(seq, stream="features-0"))
        known.add(prediction(seq, stream="features-1"))
    assert known.current == "features-0"
    for seq in range(2 * PATIENCE, 3 * PATIENCE + 1):
        known.add(prediction(seq, stream="features-1"))
    assert known.current == "features-1"


@pytest.mark.parametrize("n", [1, 2, 39, 40, 41, 12_345])
def test_a_series_is_thinned_evenly_and_keeps_both_ends(n: int) -> None:
    thinned = Series()
    for seq in range(n):
        thinned.add(seq, float(seq), 0.0, version=seq, most=40)
    kept = thinned.points.seq.tolist()
    assert min(n, 20) <= len(kept) <= 40
    assert (kept[0], kept[-1]) == (0, n - 1)
    assert len({b - a for a, b in pairwise(kept[:-1])}) <= 1
    assert thinned.since(n - 2, most=10).seq.tolist() == [n - 1]


def test_as_many_series_and_streams_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_SERIES", 6)
    monkeypatch.setattr(store, "MAX_STREAMS", 1)
    known = store_of(records(1, features=3))
    assert not known.has_more_streams
    for record in records(1, stream="fluxplain.features-1"):
        assert not known.add(record)
    assert known.has_more_streams
    assert list(known.streams) == [STREAM]
    assert sum(map(len, known.streams[STREAM].series.values())) == 6
    assert known.left_out == {store.NO_ROOM: 3 + 1 + 27}


def test_earlier_curves_are_spread_over_the_whole_stream() -> None:
    history = store_of(records(2000, features=3)).streams[STREAM].curves["f1", 0.001]
    seqs = [curve.seq for curve in history.curves]
    assert 6 <= len(seqs) - 1 <= pdp_history.MAX_EARLIER
    assert (seqs[0], seqs[-1]) == (0, 1990)
    assert len({b - a for a, b in pairwise(seqs[:-1])}) == 1
    assert len(history.ice_curves) == len(orjson.loads(history.ice)) == 5


def test_a_small_loss_is_exact_after_a_large_one() -> None:
    means = Performance()
    for seq in range(3000):
        means.add(seq, 1e15 if seq < 1000 else 1e-3, None)
    assert means.trend(10)["loss"][-1] == pytest.approx(1e-3)


def test_means_cover_the_last_500_labelled_records() -> None:
    known = store_of(prediction(seq, loss=9.0, correct=False) for seq in range(100))
    for seq in range(100, 600):
        known.add(prediction(seq, loss=0.25 if seq % 2 else 0.75, correct=seq % 4 != 0))
    for seq in range(600, 700):
        known.add(prediction(seq, loss=None))
    stream = known.streams[plain.STREAM]
    assert stream.records == 700
    trend = stream.performance.trend(1)
    assert trend["labelled"] == 500
    assert trend["loss"] == [pytest.approx(0.5)]
    assert trend["accuracy"] == [pytest.approx(0.75)]


@pytest.mark.parametrize(
    ("published", "loss", "accuracy"),
    [
        ([prediction(seq, regression=True) for seq in range(50)], [0.5], [None]),
        ([prediction(seq) for seq in range(5)], [None], [None]),
        ([prediction(seq, loss=None) for seq in range(50)], [], []),
    ],
    ids=["regression has no accuracy", "few labels have no mean", "nor have none"],
)
def test_what_is_not_known_has_no_mean(
    published: Iterable[Record], loss: list[float | None], accuracy: list[float | None]
) -> None:
    trend = store_of(published).streams[plain.STREAM].performance.trend(1)
    assert (trend["loss"], trend["accuracy"]) == (loss, accuracy)


def test_throughput_covers_the_last_seconds() -> None:
    throughput = Throughput()
    assert throughput.rate(now=0.0) == 0.0
    for tick in range(10_000):
        throughput.add(now=100 + tick / 1000)
    assert throughput.rate(now=110.0) == pytest.approx(1000, rel=0.06)
    assert throughput.rate(now=112.5) == pytest.approx(500, rel=0.1)
    assert throughput.rate(now=130.0) == 0.0


def test_identities_beyond_the_bound_are_neither_new_nor_old() -> None:
    known, seen = Duplicates(max_keys=1), [("a", 1), ("b", 1), ("a", 1), ("a", 2)]
    found = [known.is_new(prediction(seq, stream=stream), 0) for stream, seq in seen]
    assert found == [True, None, False, True]

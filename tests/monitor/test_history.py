import pickle
import random
from dataclasses import replace
from itertools import pairwise

import pytest

from pipeline.monitor.history import (
    MAX_CHANGES,
    MAX_POINTS,
    PATIENCE,
    History,
    Point,
    Seen,
    Series,
    Throughput,
)
from pipeline.monitor.rates import Rates
from schemas import Change, Evaluation, Record
from schemas.explanation import Method
from tests.monitor.records import STREAM, change, explanation, letter, prediction


def test_keeps_the_latest_explanation_of_each_feature_and_method() -> None:
    history = History.of(
        [
            explanation("a", 10, 0.1),
            explanation("a", 20, 0.2),
            explanation("a", 10, 0.3, method="ipdp"),
            explanation("b", 10, 0.4),
        ]
    )
    state = history.streams[STREAM]
    values = {key: e.value for key, e in state.latest.items()}
    assert values == {("a", "ipfi"): 0.2, ("a", "ipdp"): 0.3, ("b", "ipfi"): 0.4}
    assert state.series["a", "ipfi"].points == [Point(10, 0.1, 0.01), Point(20, 0.2, 0.01)]
    assert state.features == ["a", "b"]
    assert state.methods == ["ipfi", "ipdp"]
    assert state.newest_seq == 20


@pytest.mark.parametrize(
    "record", [prediction(3), explanation("a", 3, 0.1), change("a", 3), letter(3)]
)
def test_drops_what_came_before(record: Record) -> None:
    history = History()
    assert history.add(record)
    once = pickle.dumps(history)
    assert not history.add(record)
    assert pickle.dumps(history) == once


def test_drops_older_explanations_and_changes() -> None:
    history = History.of([explanation("a", 20, 0.2), change("a", 20)])
    assert not history.add(explanation("a", 10, 0.1))
    assert not history.add(change("a", 10))
    assert history.add(change("a", 10, method="isage"))
    assert history.streams[STREAM].change_count == 2


@pytest.mark.parametrize(
    ("alpha", "kept"), [(None, [0.1, 0.2]), (0.5, [1.0, 2.0]), (0.001, [0.1, 0.2]), (7, [0.1, 0.2])]
)
def test_of_several_smoothing_rates_one_is_kept(alpha: float | None, kept: list[float]) -> None:
    history = History(rates=Rates(alpha))
    for seq in (1, 2):
        slow = explanation("a", seq, 0.1 * seq)
        for record in (slow, replace(slow, alpha=0.5, value=1.0 * seq)):
            # the first rate that comes is kept until there is the one that is wanted
            first = record.alpha == 0.001 and seq == 1
            assert history.add(record) == (first or record.value in kept)
    state = history.streams[STREAM]
    assert [point.value for point in state.series["a", "ipfi"].points] == kept
    assert state.alpha == (0.5 if alpha == 0.5 else 0.001)
    assert state.alphas == [0.001, 0.5]


def test_an_explanation_without_anything_new_is_no_news() -> None:
    history = History.of([explanation("a", 10, 0.1)])
    before = pickle.dumps(history)
    assert not history.add(replace(explanation("a", 20, 0.1), seqs=[], increments=[]))
    assert pickle.dumps(history) == before


def test_the_courses_of_loss_and_accuracy_are_bounded() -> None:
    history = History.of(prediction(seq, correct=seq % 2 == 0) for seq in range(100_000))
    state = history.streams[STREAM]
    for course, value in ((state.loss_course, 0.5), (state.accuracy_course, 0.5)):
        assert 500 < len(course.points) <= MAX_POINTS
        assert course.points[-1] == Point(99_999, value, 0.0)


def test_predictions_of_one_stream_come_from_several_partitions() -> None:
    order = [0, 4, 8, 1, 5, 2, 6, 3, 7, 8, 4]
    history = History.of(prediction(seq) for seq in order)
    assert history.streams[STREAM].predictions == 9
    assert history.streams[STREAM].newest_seq == 8


def test_seen_forgets_the_oldest_and_counts_them_as_seen() -> None:
    seen = Seen(max_seen=10)
    assert all(seen.add(i) for i in range(1000))
    assert not any(seen.add(i) for i in range(1000))
    assert len(pickle.dumps(seen)) < 500


def test_counts_dead_letters_of_all_topics_without_a_stream_of_their_own() -> None:
    history = History.of([letter(5), letter(3, "newest"), letter(5, partition=1), letter(5)])
    assert history.dead_letters == 3
    assert history.last_dead_letter == letter(5, partition=1)
    assert history.streams == {}
    assert history.current is None


def test_ignores_records_of_other_kinds() -> None:
    run = Evaluation(
        stream=STREAM,
        feature="a",
        previous_seq=None,
        seqs=[0],
        ts=[None],
        y=[None],
        loss=[None],
        classes=None,
        prediction=[0.0],
        coverage=[1.0],
        skipped=[0],
        ipfi=[None],
        isage=[None],
        ipdp_points=[None],
        ipdp=[None],
    )
    assert not History().add(run)


def test_mean_loss_and_accuracy_are_about_the_last_500_labelled_ones() -> None:
    history = History.of(prediction(seq, loss=9.0, correct=False) for seq in range(100))
    for seq in range(100, 600):
        history.add(prediction(seq, loss=0.25 if seq % 2 else 0.75, correct=seq % 4 != 0))
    for seq in range(600, 700):
        history.add(prediction(seq, loss=None))
    state = history.streams[STREAM]
    assert state.predictions == 700
    assert state.mean_loss == pytest.approx(0.5)
    assert state.accuracy == pytest.approx(0.75)


def test_regression_has_no_accuracy_and_no_labels_no_loss() -> None:
    regression = History.of([prediction(0, regression=True)]).streams[STREAM]
    unlabelled = History.of([prediction(0, loss=None)]).streams[STREAM]
    assert (regression.mean_loss, regression.accuracy) == (0.5, None)
    assert (unlabelled.mean_loss, unlabelled.accuracy) == (None, None)


def test_keeps_the_newest_changes_by_seq_and_counts_all() -> None:
    seqs = list(range(MAX_CHANGES + 500))
    # four features, each in order, one after the other: so are the partitions of a topic read
    history = History.of(change(f"f{i}", seq) for i in range(4) for seq in seqs[i::4])
    state = history.streams[STREAM]
    assert state.change_count == len(seqs)
    assert [c.seq for c in state.changes] == seqs[-MAX_CHANGES:]


def test_notices_are_changes_too() -> None:
    notice = Change.notice(kind="cold-start", stream=STREAM, seq=7, detail="started cold")
    assert History.of([notice]).streams[STREAM].changes == [notice]


def test_keeps_the_explanations_just_before_a_known_drift() -> None:
    history = History.of(
        (explanation("a", seq, seq / 100) for seq in range(0, 100, 10)), drift_seq=50
    )
    state = history.streams[STREAM]
    assert state.before_drift["a", "ipfi"].seq == 40
    assert state.latest["a", "ipfi"].seq == 90


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 12_345])
def test_a_series_is_thinned_evenly_and_keeps_both_ends(n: int) -> None:
    series = Series[Point](max_points=100)
    for seq in range(n):
        series.add(Point(seq, 0.0, 0.0))
    seqs = [point.seq for point in series.points]
    assert seqs[0] == 0
    assert seqs[-1] == n - 1
    assert min(n, 50) <= len(seqs) <= 100
    gaps = [b - a for a, b in pairwise(seqs[:-1])]
    assert len(set(gaps)) <= 1


def test_memory_is_bounded() -> None:
    history, methods = History.of([prediction(0)]), ("ipfi", "isage", "ipdp")
    history.streams[STREAM].seen = Seen(max_seen=1000)  # the default takes too long to reach
    rng = random.Random(1)

    def feed(start: int, stop: int) -> int:
        for seq in range(start, stop):
            method: Method = methods[seq % 3]  # type: ignore[assignment]
            history.add(explanation("a", seq, rng.random(), method=method))
            history.add(change("a", seq))
            history.add(prediction(seq), now=seq / 100)
        return len(pickle.dumps(history))

    size = feed(0, 15_000)
    assert feed(15_000, 30_000) < 1.2 * size
    longest = max(len(s.points) for s in history.streams[STREAM].series.values())
    assert longest <= MAX_POINTS


def test_shows_one_stream_as_long_as_it_has_data() -> None:
    history = History()
    for seq in range(2 * PATIENCE):
        history.add(prediction(seq, stream="features-0"))
        history.add(prediction(seq, stream="features-1"))
    assert history.current == "features-0"
    for seq in range(2 * PATIENCE, 3 * PATIENCE + 1):
        history.add(prediction(seq, stream="features-1"))
    assert history.current == "features-1"


def test_throughput_is_about_the_last_seconds() -> None:
    throughput = Throughput(window_s=5.0)
    assert throughput.rate(now=0.0) == 0.0
    for tick in range(10_000):
        throughput.add(now=100 + tick / 1000)
    assert throughput.rate(now=110.0) == pytest.approx(1000, rel=0.06)
    assert throughput.rate(now=112.5) == pytest.approx(500, rel=0.1)
    assert throughput.rate(now=130.0) == 0.0
    assert len(pickle.dumps(throughput)) < 1000

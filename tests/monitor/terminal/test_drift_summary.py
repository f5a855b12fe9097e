from typing import Any

from fluxplain.monitor.terminal.drift_summary import Summary, render_summary, summarize
from fluxplain.results.store import Store
from fluxplain.results.stream_results import TOP
from fluxplain.schemas import Change
from tests.kit.records import (
    STREAM,
    change,
    drifting_store,
    error_change,
    explanation,
    loss_change,
    prediction,
    store_of,
)
from tests.monitor.terminal.console import printed


def summarized(store: Store, drift_seq: int = 1000) -> Summary:
    return summarize(store.streams[STREAM].at(), drift_seq)


def shown(summary: Summary, **options: Any) -> str:
    return printed(render_summary(summary, **options))


def test_ranks_the_features_before_and_after() -> None:
    summary = summarized(drifting_store())
    assert summary.view.methods == ["ipfi", "isage", "ipdp"]
    for method in summary.view.methods:
        assert [feature for feature, _ in summary.before(method)[:2]] == ["f0", "f8"]
        assert [feature for feature, _ in summary.view.ranked(method)[:2]] == ["f1", "f8"]
    assert summary.before("ipfi")[0] == ("f0", (990, 0.3, 0.01))
    assert summary.view.ranked("ipfi")[0][1].seq == 1990


def test_finds_the_first_detection_of_each_feature_and_method() -> None:
    summary = summarized(drifting_store())
    found = [(*key, change.seq) for key, change in summary.detections.items()]
    assert found == [("f1", "isage", 1070), ("f0", "ipfi", 1120)]
    assert [c.seq for c in summary.changes_before] == [500]


def test_a_change_at_the_drift_itself_is_after_it() -> None:
    summary = summarized(store_of([explanation("a", 5, 0.1), change("a", 9), change("a", 10)]), 10)
    assert [c.seq for c in summary.changes_before] == [9]
    assert [c.seq for c in summary.detections.values()] == [10]


def test_a_notice_is_no_detection() -> None:
    gaps = [
        Change.notice(kind="gap", stream=STREAM, seq=seq, detail="lost", feature="a", method="ipfi")
        for seq in (5, 20)
    ]
    summary = summarized(store_of([explanation("a", 5, 0.1), *gaps]), 10)
    assert (summary.changes_before, summary.detections) == ([], {})
    assert "it was not" in shown(summary)


def test_the_loss_is_compared_with_the_explanations() -> None:
    store = drifting_store()
    for seq in (300, 1090, 1500):
        store.add(loss_change(seq))
    text = shown(summarized(store))
    assert "By the model's loss: after 90 records (the loss rose from 0.200 to 0.900)" in text
    assert "after 70 records (iSAGE of f1" in text
    assert "Changes reported before record 1,000: 2, 1 of them of the loss" in text
    store.add(error_change(1080))
    sooner = " ".join(shown(summarized(store)).split())
    assert "after 80 records (the share of wrong predictions rose from 0.050 to 0.300)" in sooner
    undetected = summarized(drifting_store())
    assert "By the model's loss: not at all" in shown(undetected)
    assert "By the model's loss: it is not watched" in shown(undetected, loss_watched=False)


def test_shows_the_top_features_and_when_the_change_was_detected() -> None:
    text = shown(summarized(drifting_store()))
    assert "before and after record 1,000" in text
    [ipfi] = [line for line in text.splitlines() if line.startswith("iPFI")]
    assert ipfi.split() == ["iPFI", "f0", "0.300", "±0.010", "f1", "0.300", "±0.010"]
    assert text.count("±") == 3 * 2 * TOP
    sentence = "after 70 records (iSAGE of f1 rose from 0.000 to 0.300)"
    assert sentence in " ".join(text.split())
    assert [line.split() for line in text.splitlines() if line.startswith("f0")] == [
        ["f0", "120", "–", "–"]
    ]
    assert "Changes reported before record 1,000: 1" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_drift_before_the_first_explanation_has_nothing_before() -> None:
    summary = summarized(store_of([prediction(0), explanation("a", 50, 0.3)]), 10)
    assert summary.before("ipfi") == []
    assert "–" in shown(summary)

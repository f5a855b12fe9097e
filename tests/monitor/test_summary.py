import io
from typing import Any

import pytest
from rich.console import Console

from pipeline.monitor.history import History
from pipeline.monitor.summary import Summary, render_summary, summarize
from schemas import Change
from tests.monitor.records import (
    STREAM,
    change,
    drifting_history,
    explanation,
    loss_change,
    prediction,
)


def shown(summary: Summary, **options: Any) -> str:
    console = Console(width=80, no_color=True, file=io.StringIO())
    console.print(render_summary(summary, **options))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_ranks_the_features_before_and_after() -> None:
    summary = summarize(drifting_history(), 1000)
    assert summary.stream == STREAM
    assert summary.records == 200
    assert list(summary.before) == list(summary.after) == ["ipfi", "isage", "ipdp"]
    for method in summary.before:
        assert [i.feature for i in summary.before[method][:2]] == ["f0", "f8"]
        assert [i.feature for i in summary.after[method][:2]] == ["f1", "f8"]
    first = summary.before["ipfi"][0]
    assert (first.seq, first.value, first.std_error) == (990, 0.3, 0.01)
    assert summary.after["ipfi"][0].seq == 1990


def test_finds_the_first_detection_of_each_feature_and_method() -> None:
    summary = summarize(drifting_history(), 1000)
    found = [(d.feature, d.method, d.records_after) for d in summary.detections]
    assert found == [("f1", "isage", 70), ("f0", "ipfi", 120)]
    assert summary.earliest == summary.detections[0]
    assert [c.seq for c in summary.changes_before] == [500]


def test_a_change_at_the_drift_itself_is_after_it() -> None:
    history = History.of([explanation("a", 5, 0.1), change("a", 9), change("a", 10)], drift_seq=10)
    summary = summarize(history, 10)
    assert [c.seq for c in summary.changes_before] == [9]
    assert [d.records_after for d in summary.detections] == [0]


def test_a_notice_is_no_detection() -> None:
    gaps = [
        Change.notice(kind="gap", stream=STREAM, seq=seq, detail="lost", feature="a", method="ipfi")
        for seq in (5, 20)
    ]
    summary = summarize(History.of([explanation("a", 5, 0.1), *gaps], drift_seq=10), 10)
    assert (summary.changes_before, summary.detections) == ([], [])
    assert summary.earliest is None
    assert "it was not" in shown(summary)


def test_says_when_the_loss_told_of_the_drift() -> None:
    history = drifting_history()
    for seq in (300, 1090, 1500):
        history.add(loss_change(seq))
    summary = summarize(history, 1000)
    assert summary.loss is not None
    assert summary.loss.seq == 1090
    assert summary.earliest is not None
    assert summary.earliest.feature == "f1"  # what the loss tells is no explanation
    text = shown(summary)
    assert "By the model's loss: after 90 records (it rose from 0.200 to 0.900)" in text
    assert "Changes reported before record 1,000: 2, 1 of them of the loss" in text
    unnoticed = summarize(drifting_history(), 1000)
    assert "By the model's loss: not at all" in shown(unnoticed)
    assert "By the model's loss: it is not watched" in shown(unnoticed, loss_watched=False)


def test_the_drift_must_be_the_one_that_the_history_knows() -> None:
    with pytest.raises(ValueError, match="made with 1000"):
        summarize(drifting_history(), 999)
    with pytest.raises(ValueError, match="no stream 'features-7'"):
        summarize(drifting_history(), 1000, stream="features-7")
    with pytest.raises(ValueError, match="no stream None"):
        summarize(History(drift_seq=1), 1)


def test_shows_the_top_features_and_when_the_change_was_noticed() -> None:
    text = shown(summarize(drifting_history(), 1000))
    assert "before and after record 1,000" in text
    [ipfi] = [line for line in text.splitlines() if line.startswith("iPFI")]
    assert ipfi.split() == ["iPFI", "f0", "0.300", "±0.010", "f1", "0.300", "±0.010"]
    sentence = "after 70 records (iSAGE of f1 rose from 0.000 to 0.300)"
    assert sentence in " ".join(text.split())
    assert [line.split() for line in text.splitlines() if line.startswith("f0")] == [
        ["f0", "120", "–", "–"]
    ]
    assert "Changes reported before record 1,000: 1" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_shows_as_many_features_as_asked() -> None:
    summary = summarize(drifting_history(), 1000)
    assert shown(summary, top=1).count("±") == 3 * 2
    assert shown(summary, top=99).count("±") == 3 * 2 * 9


def test_a_drift_before_the_first_explanation_has_nothing_before() -> None:
    history = History.of([prediction(0), explanation("a", 50, 0.3)], drift_seq=10)
    summary = summarize(history, 10)
    assert summary.before == {"ipfi": []}
    assert "–" in shown(summary)

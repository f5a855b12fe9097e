import io

import pytest
from rich.console import Console

from pipeline.monitor.history import METHODS, History
from pipeline.monitor.text import measured, number
from pipeline.monitor.watch import render, sorted_features
from schemas import Change
from tests.monitor.records import (
    STREAM,
    change,
    drifting_history,
    explanation,
    letter,
    loss_change,
    prediction,
)


def shown(history: History, *, stream: str | None = None, now: float | None = None) -> str:
    console = Console(width=80, no_color=True, file=io.StringIO(), legacy_windows=False)
    console.print(render(history, title="watching", stream=stream, now=now))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_an_empty_history_says_that_it_waits() -> None:
    assert "waiting for records …" in shown(History())
    assert "waiting for records of features-3" in shown(drifting_history(), stream="features-3")


def test_before_the_first_explanation_it_says_so() -> None:
    text = shown(History.of([prediction(0)]))
    assert "1 record ·" in text
    assert "warming up" in text
    assert "no changes yet" in text


def test_shows_every_feature_sorted_by_importance_with_its_standard_error() -> None:
    lines = shown(drifting_history()).splitlines()
    rows = [line.split()[0] for line in lines if line.startswith("f") and line[1].isdigit()]
    assert rows == ["f1", "f8", "f7", "f6", "f5", "f4", "f3", "f2", "f0"]
    [first] = [line for line in lines if line.startswith("f1 ")]
    assert first.count("0.300 ±0.010") == 3
    assert "██████████" in first
    [last] = [line for line in lines if line.startswith("f0 ")]
    assert "█" not in last


def test_features_that_read_the_same_keep_their_order() -> None:
    history = History.of(
        [
            explanation("big", 1, 0.5),
            explanation("b", 1, 0.01001),
            explanation("a", 1, 0.01003),
            explanation("unknown", 1, 0.9, method="ipdp"),
        ]
    )
    assert sorted_features(history.streams[STREAM], "ipfi") == ["big", "b", "a", "unknown"]


def test_groups_and_the_features_in_them_have_what_there_is_of_each() -> None:
    history = History.of(
        [
            explanation("place", 1, 0.5),
            explanation("place", 1, 0.4, method="isage"),
            explanation("age", 1, 0.2),
            explanation("age", 1, 0.1, method="isage"),
            *[explanation(name, 1, 0.3, method="ipdp") for name in ("lat", "lon", "age")],
        ]
    )
    lines = shown(history).splitlines()
    rows = [line.split() for line in lines if line.split()[:1] in [["place"], ["lat"], ["age"]]]
    assert [row[0] for row in rows] == ["place", "age", "lat"]
    assert rows[0][-1] == "–"
    assert rows[2][1:-2] == ["–", "–"]


def test_a_negative_importance_has_no_bar() -> None:
    text = shown(History.of([explanation("a", 1, 0.5), explanation("b", 1, -0.33)]))
    [row] = [line for line in text.splitlines() if line.startswith("b ")]
    assert row.split() == ["b", "-0.330", "±0.010"]


@pytest.mark.parametrize("scale", [1e-9, 1.23456e-4, 1.23456e-3, 0.5, 123456.0, 1e12])
def test_fits_80_columns_and_cuts_no_number(scale: float) -> None:
    history = History()
    for seq, sign in enumerate((1, -1)):
        history.add(prediction(1_234_567 + seq, loss=scale), now=seq)
        for method in METHODS:
            name = f"a_rather_long_feature_name_{seq}"
            record = explanation(name, 5, sign * scale, method=method, std_error=scale / 7)
            history.add(record)
    for seq in range(20):
        history.add(change("a_rather_long_feature_name", 1_000_000 + seq))
    lines = shown(history, now=2.0).splitlines()
    assert max(len(line) for line in lines) <= 80
    rows = [line for line in lines if "±" in line]
    for row, value in zip(rows, (scale, -scale), strict=True):
        assert row.count(measured(value, scale / 7, scale)) == 3


def test_the_header_counts() -> None:
    history = History()
    for seq in range(1000):
        history.add(prediction(seq, loss=0.25, correct=seq % 4 != 0), now=seq / 100)
    history.add(letter(17))
    text = shown(history, now=10.0)
    assert "1,000 records · 10" in text
    assert "/s · mean loss 0.25 · accuracy 75.0 % · 1 dead letter\n" in text
    assert "last dead letter: features-0 offset 17: x.age is missing" in text
    assert "/s" not in shown(history)


def test_shows_the_newest_changes_first() -> None:
    history = History.of(change("a", seq) for seq in range(100, 1300, 100))
    text = shown(history)
    assert "12 changes" in text
    seqs = [line.split()[0] for line in text.splitlines() if "ipfi of a rose" in line]
    assert seqs == ["1,200", "1,100", "1,000", "900", "800", "700", "600", "500"]


def test_a_change_of_the_loss_is_among_the_changes() -> None:
    text = shown(History.of([explanation("a", 5, 0.1), loss_change(1234)]))
    assert "1 change" in text
    assert "1,234 loss rose from 0.2 to 0.9" in text


def test_a_notice_names_its_kind() -> None:
    notice = Change.notice(kind="cold-start", stream=STREAM, seq=7, detail="x " * 80)
    lines = shown(History.of([notice])).splitlines()
    assert any("7 cold-start: x x" in line for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_shows_the_selected_stream() -> None:
    history = drifting_history()
    history.add(explanation("other", 5, 0.7, stream="features-1"))
    assert "other" not in shown(history)
    text = shown(history, stream="features-1")
    assert "features-1, one of 2 streams" in text
    assert "other" in text


def test_records_cannot_steer_the_terminal() -> None:
    history = History.of([explanation("[red]\x1b[2Jname", 1, 0.5), letter(1, "no\x1b[2J\nway")])
    text = shown(history)
    assert "\x1b" not in text
    assert "[red]" in text
    assert "way" in text


@pytest.mark.parametrize(
    ("value", "scale", "text"),
    [
        (0.12345, 0.5, "0.123"),
        (-0.0001, 0.5, "0.000"),
        (0.0, 0.0, "0.000"),
        (12345.6, 99999.0, "12346"),
        (0.000123, 0.0002, "0.00012"),
        (float("inf"), 1.0, "?"),
    ],
)
def test_numbers_have_three_digits_of_the_scale(value: float, scale: float, text: str) -> None:
    assert number(value, scale) == text
    assert measured(value, 0.0, scale).startswith(f"{text} ±0")

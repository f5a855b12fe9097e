import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from pipeline.monitor.courses import sorted_features
from pipeline.monitor.history import History
from pipeline.monitor.rates import Rates
from pipeline.monitor.text import measured, number
from pipeline.monitor.watch import WatchView
from schemas import Change
from schemas.explanation import METHODS
from tests.monitor.records import (
    STREAM,
    change,
    drifting_history,
    explanation,
    letter,
    loss_change,
    prediction,
)


def shown(history: History, *, width: int = 80, height: int | None = None, **options: Any) -> str:
    console = Console(width=width, no_color=True, file=io.StringIO(), legacy_windows=False)
    view = WatchView(history, title="watching", **options)
    console.print(view, height=height)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def rows(text: str) -> dict[str, str]:
    """Return feature → its row."""
    lines = [line for line in text.splitlines() if "±" in line]
    return {line.split()[0]: line for line in lines}


def test_an_empty_history_says_that_it_waits() -> None:
    assert "waiting for records …" in shown(History())
    assert "waiting for records of features-3" in shown(drifting_history(), stream="features-3")


def test_before_the_first_explanation_it_says_so() -> None:
    text = shown(History.of([prediction(0)]))
    assert "1 record ·" in text
    assert "warming up" in text
    assert "no changes yet" in text


def test_shows_every_feature_sorted_by_importance_with_its_standard_error() -> None:
    found = rows(shown(drifting_history()))
    assert list(found) == ["f1", "f8", "f7", "f6", "f5", "f4", "f3", "f2", "f0"]
    assert found["f1"].count("0.300 ±0.010") == 3


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
    found = rows(shown(history))
    assert list(found) == ["place", "age", "lat", "lon"]
    assert found["place"].split()[-1] == "–"
    assert found["lat"].split()[1:-2] == ["–", "–"]


def test_a_course_shows_how_an_importance_moved_and_where_it_changed() -> None:
    history = drifting_history()
    history.add(change("f0", 1200, before=0.3, after=0.0))
    found = rows(shown(history, method="ipfi"))
    assert found["f1"].count("±") == 1
    course = found["f1"].split()[-1]
    assert course.startswith("▁▁▁")
    assert course.endswith("███")
    # one at 500 of 2,000
    assert course.index("▲") == len(course) // 4
    fallen = found["f0"].split()[-1]
    assert fallen.startswith("███")
    assert 0.5 < fallen.index("▼") / len(fallen) < 0.65
    assert set(found["f2"].split()[-1]) == {"▁"}  # all features have one scale


def test_more_columns_make_the_courses_longer_and_give_one_to_each_method() -> None:
    lengths = {}
    for width in (80, 100, 160):
        text = shown(drifting_history(), width=width)
        assert max(map(len, text.splitlines())) <= width
        lengths[width] = [len(word) for word in rows(text)["f3"].split() if set(word) == {"▁"}]
    assert len(lengths[80]) == len(lengths[100]) == 1
    assert lengths[80] < lengths[100]
    assert len(lengths[160]) == 3


def test_one_method_is_shown_if_it_is_asked_for() -> None:
    text = shown(drifting_history(), method="ipdp")
    [heading] = [line for line in text.splitlines() if line.startswith("feature")]
    assert heading.split() == ["feature", "iPDP"]
    assert rows(text)["f1"].count("±") == 1
    history = History.of([explanation("a", 1, 0.5)])
    assert "no explanation by iPDP yet" in shown(history, method="ipdp")


def test_features_without_room_are_told_of() -> None:
    text = shown(drifting_history(features=30), height=24)
    assert len(text.splitlines()) == 24
    assert "iPFI" in text
    assert "24 features more" in text
    assert "4 changes" in text
    everything = shown(drifting_history(features=30))
    assert len(rows(everything)) == 30
    assert "features more" not in everything


def test_24_lines_have_room_for_courses_a_band_changes_and_lag() -> None:
    history = drifting_history()
    for seq in range(3000, 3400, 50):
        history.add(change("f2", seq))
    history.add(letter(1))
    lines = shown(history, height=24, lags={"model": 7}).splitlines()
    assert len(lines) == 24
    text = "\n".join(lines)
    assert len(rows(text)) == 5
    assert "lag: model 7" in text
    [title] = [i for i, line in enumerate(lines) if line.startswith("iPFI of f1, ░ two standard")]
    band = lines[title + 1 : title + 5]
    assert ["┤" in line or "│" in line for line in band] == [True] * 4
    assert sum("iPFI of f2 rose" in line for line in lines) == 3


def test_more_lines_show_all_features_then_changes_then_a_higher_band() -> None:
    history = drifting_history()
    for seq in range(3000, 3400, 50):
        history.add(change("f2", seq))
    found = []
    for height in (24, 27, 32, 36):
        lines = shown(history, height=height).splitlines()
        assert len(lines) == height
        band = sum(line.count("│") + line.count("┤") for line in lines)
        found.append((len(rows("\n".join(lines))), sum("rose" in line for line in lines) - 1, band))
    assert found == [(6, 3, 4), (9, 3, 4), (9, 8, 4), (9, 8, 8)]


def test_a_terminal_is_never_filled_beyond_its_height_but_a_file_has_all() -> None:
    history = drifting_history(features=30)
    file = io.StringIO()
    terminal = Console(
        width=80, height=24, no_color=True, force_terminal=True, file=file, legacy_windows=False
    )
    terminal.print(WatchView(history))
    assert len(file.getvalue().splitlines()) == 24
    assert len(shown(history).splitlines()) > 40


def test_without_room_for_a_band_there_is_none() -> None:
    lines = shown(drifting_history(), height=18).splitlines()
    assert len(lines) == 18
    assert not any("░" in line for line in lines)
    assert len(rows("\n".join(lines))) >= 5


def test_the_band_of_a_feature_is_drawn_if_it_is_asked_for() -> None:
    assert "iPFI of f3, ░" in shown(drifting_history(), feature="f3")
    text = shown(drifting_history(), feature="f3", method="isage", width=120)
    assert text.index("iSAGE of f3, ░") < text.index("iSAGE of f1, ░")
    text = shown(drifting_history(), feature="agee")
    assert "no explanation of agee yet" in text
    assert "iPFI of f1, ░" in text


def test_a_feature_that_the_first_method_does_not_explain_has_the_band_of_another() -> None:
    records = [explanation("place", 1, 0.5), explanation("lat", 1, 0.4, method="ipdp")]
    assert "iPDP of lat, ░" in shown(History.of(records), feature="lat")


def test_another_smoothing_rate_is_shown_and_told() -> None:
    history = History(rates=Rates(0.5))
    history.add(explanation("a", 1, 0.25))
    text = shown(history, alpha=0.5)
    assert "0.250 ±" in text
    assert "no explanation with alpha 0.5: shown are those with 0.001 (there are: 0.001)" in text
    history.add(replace(explanation("a", 1, 0.75), alpha=0.5))
    text = shown(history, alpha=0.5)
    assert "0.750 ±" in text
    assert "no explanation with" not in text


def test_the_lag_of_each_role_is_shown_if_it_is_known() -> None:
    lags = {"model": 1234, "explainer": 0, "drift": 5}
    assert "· lag: model 1,234, explainer 0, drift 5 ·" in shown(drifting_history(), lags=lags)
    assert "lag" not in shown(drifting_history())


def test_loss_and_accuracy_have_a_course() -> None:
    history = History()
    for seq in range(4000):
        history.add(prediction(seq, loss=seq / 4000, correct=seq < 2000))
    [line] = [line for line in shown(history).splitlines() if "mean loss" in line]
    loss, accuracy = line.split(" · ")
    assert loss.startswith("mean loss 0.9")
    assert list(loss.split()[-1]) == sorted(loss.split()[-1])
    assert accuracy.split()[-1].startswith("███")
    assert accuracy.split()[-1].endswith("▁▁▁")
    regression = History.of(prediction(seq, regression=True) for seq in range(100))
    assert "accuracy" not in shown(regression)


def test_without_labels_there_is_neither() -> None:
    text = shown(History.of(prediction(seq, loss=None) for seq in range(100)))
    assert "loss" not in text
    assert "accuracy" not in text


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
    numbers = [line for line in lines if "±" in line]
    for row, value in zip(numbers, (scale, -scale), strict=True):
        assert row.count(measured(value, scale / 7, scale)) == 3


def test_the_header_counts() -> None:
    history = History()
    for seq in range(1000):
        history.add(prediction(seq, loss=0.25, correct=seq % 4 != 0), now=seq / 100)
    history.add(letter(17))
    text = shown(history, now=10.0)
    assert "1,000 records · 10" in text
    assert "/s · 1 dead letter\n" in text
    assert "mean loss 0.25 " in text
    assert "accuracy 75.0 % " in text
    assert "last dead letter: features-0 offset 17: x.age is missing" in text
    assert "/s" not in shown(history)


def test_shows_the_newest_changes_first() -> None:
    history = History.of(change("a", seq) for seq in range(100, 1300, 100))
    text = shown(history)
    assert "12 changes" in text
    seqs = [line.split()[0] for line in text.splitlines() if "iPFI of a rose" in line]
    assert seqs == ["1,200", "1,100", "1,000", "900", "800", "700", "600", "500"]


def test_a_change_of_the_loss_is_among_the_changes() -> None:
    text = shown(History.of([explanation("a", 5, 0.1), loss_change(1234)]))
    assert "1 change" in text
    assert f"1,234 {loss_change(1234).id} the loss rose from 0.2 to 0.9" in text


def test_changes_have_their_ids_and_incidents() -> None:
    alone, of_many = change("a", 100), replace(change("b", 250), incident="features-0@200")
    text = shown(History.of([alone, of_many]))
    assert f"100 {alone.id} iPFI of a rose from 0.1 to 0.4 " in text
    assert f"250 {of_many.id} iPFI of b rose from 0.1 to 0.4  @200" in text
    assert "(at record, id, @ the incident)" in text
    assert "incident" not in shown(History.of([alone]))


def test_a_notice_names_its_kind() -> None:
    notice = Change.notice(kind="cold-start", stream=STREAM, seq=7, detail="x " * 80)
    lines = shown(History.of([notice])).splitlines()
    assert any(f"7 {notice.id} cold-start: x x" in line for line in lines)
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

"""What a terminal shows of one stream, as much as there is room for."""

import time
from dataclasses import replace
from typing import Any, get_args

import pytest

from fluxplain.monitor.terminal.importances import sorted_features
from fluxplain.monitor.terminal.watch import STYLES, WatchView
from fluxplain.results.headline import Tone
from fluxplain.results.pipeline_status import RoleStatus
from fluxplain.results.store import Store
from fluxplain.schemas import Change, Note
from fluxplain.schemas.wording import measured, number
from tests.kit.records import (
    METHODS,
    STREAM,
    change,
    drifting_store,
    explanation,
    letter,
    loss_change,
    prediction,
    store_of,
)
from tests.monitor.terminal.console import printed


def shown(store: Store, *, width: int = 80, height: int | None = None, **options: Any) -> str:
    view = WatchView(store, title="watching", **options)
    return printed(view, width=width, height=height)


def rows(text: str) -> dict[str, str]:
    """Return feature → its row."""
    lines = [line for line in text.splitlines() if "±" in line]
    return {line.split()[0]: line for line in lines}


@pytest.mark.parametrize(
    ("store", "options", "expected"),
    [
        (Store(), {}, "waiting for records …"),
        (drifting_store(), {"stream": "features-3"}, "waiting for records of features-3"),
        (store_of([prediction(0)]), {}, "the explainers are still warming up"),
        (store_of([prediction(0)]), {}, "1 record ·"),
        (store_of([prediction(0)]), {}, "no changes yet"),
        (store_of([explanation("a", 1, 0.5)]), {"method": "ipdp"}, "no explanation by iPDP yet"),
        (drifting_store(), {"feature": "agee"}, "no explanation of agee yet"),
        (drifting_store(), {}, "Changed 690 records ago: iSAGE of f1 rose from 0.1 to 0.4"),
        (drifting_store(), {}, "By iPFI, the model relies most on f1 (90 %)"),
    ],
)
def test_what_is_not_there_is_named_and_what_is_known_shown(
    store: Store, options: dict[str, Any], expected: str
) -> None:
    assert expected in shown(store, **options)


def test_each_tone_has_a_style() -> None:
    assert set(STYLES) == set(get_args(Tone))


def test_acknowledged_changes_are_marked_and_those_of_muted_features_left_out() -> None:
    store = store_of([prediction(2000), explanation("a", 1999, 0.5)])
    known, noise = change("a", 1500), change("b", 1600)
    store.add(known)
    store.add(noise)
    at = "2026-03-01T12:00:00Z"
    store.add(Note("acknowledged", at, change=known.id, stream=STREAM, text="ok", by="Ada"))
    assert noise.id in shown(store)
    store.add(Note("muted", at, feature="b", text="noise"))
    text = shown(store)
    assert "iPFI of a rose from 0.1 to 0.4  ✓ Ada: ok" in text
    assert noise.id not in text
    assert "(record, id); 1 muted (`fluxplain mute`)" in text


def test_the_lag_of_each_role_is_shown() -> None:
    store = drifting_store()
    lags = {"model": 1234, "drift": 5}
    store.status.roles = [RoleStatus(n, "", lag, time.monotonic(), True) for n, lag in lags.items()]
    assert "· lag: model 1,234, drift 5 ·" in shown(store)


def test_a_stopped_pipeline_is_said_to_be_whatever_the_height() -> None:
    store = drifting_store()
    store.status.roles = [RoleStatus("model", "features", 300, time.monotonic() - 420.0, True)]
    said = "Stopped: no progress for 7 minutes; model has 300 messages to go"
    for height in (24, None):
        text = shown(store, height=height)
        assert said in " ".join(text.split())
        assert "keeps up" not in text


@pytest.mark.parametrize("height", [24, None])
def test_the_headline_is_wrapped_and_not_cut(height: int | None) -> None:
    store = drifting_store()
    store.add(replace(change("a_rather_long_feature_name", 1985), status="confirmed"))
    store.add(replace(change("f2", 1986), loss_before=0.2, loss_after=0.9))
    text = shown(store, height=height)
    assert max(map(len, text.splitlines())) <= 80
    head = " ".join(text.partition("importance")[0].split())
    assert "with 4 other changes; the loss rose" in head
    assert height is not None or "f1 (90 %). All records are read" in head


def test_shows_every_feature_sorted_by_importance_with_its_standard_error() -> None:
    found = rows(shown(drifting_store()))
    assert list(found) == ["f1", "f8", "f7", "f6", "f5", "f4", "f3", "f2", "f0"]
    assert found["f1"].count("0.300 ±0.010") == 3


def test_features_that_read_the_same_keep_their_order() -> None:
    store = store_of(
        [
            explanation("big", 1, 0.5),
            explanation("b", 1, 0.01001),
            explanation("a", 1, 0.01003),
            explanation("unknown", 1, 0.9, method="ipdp"),
        ]
    )
    assert sorted_features(store.streams[STREAM].at(), "ipfi") == ["big", "b", "a", "unknown"]


def test_groups_and_the_features_in_them_have_what_there_is_of_each() -> None:
    store = store_of(
        [
            explanation("place", 1, 0.5),
            explanation("place", 1, 0.4, method="isage"),
            explanation("age", 1, 0.2),
            explanation("age", 1, 0.1, method="isage"),
            *[explanation(name, 1, 0.3, method="ipdp") for name in ("lat", "lon", "age")],
        ]
    )
    found = rows(shown(store))
    assert list(found) == ["place", "age", "lat", "lon"]
    assert found["place"].split()[-1] == "–"
    assert found["lat"].split()[1:-2] == ["–", "–"]


def test_a_trend_shows_how_an_importance_moved_and_where_it_changed() -> None:
    store = drifting_store()
    store.add(change("f0", 1200, before=0.3, after=0.0))
    found = rows(shown(store, method="ipfi"))
    assert found["f1"].count("±") == 1
    trend = found["f1"].split()[-1]
    assert trend.startswith("▁▁▁")
    assert trend.endswith("███")
    # one at 500 of 2,000
    assert trend.index("▲") == len(trend) // 4
    fallen = found["f0"].split()[-1]
    assert fallen.startswith("███")
    assert 0.5 < fallen.index("▼") / len(fallen) < 0.65
    assert set(found["f2"].split()[-1]) == {"▁"}  # all features have one scale


def test_more_columns_lengthen_the_trends_and_give_one_to_each_method() -> None:
    lengths = {}
    for width in (80, 100, 160):
        text = shown(drifting_store(), width=width)
        assert max(map(len, text.splitlines())) <= width
        lengths[width] = [len(word) for word in rows(text)["f3"].split() if set(word) == {"▁"}]
    assert len(lengths[80]) == len(lengths[100]) == 1
    assert lengths[80] < lengths[100]
    assert len(lengths[160]) == 3


def test_24_lines_have_room_for_trends_a_band_changes_and_lag() -> None:
    store = drifting_store()
    for seq in range(3000, 3400, 50):
        store.add(change("f2", seq))
    store.add(letter(1))
    store.status.roles = [RoleStatus("model", "features", 7, time.monotonic(), True)]
    lines = shown(store, height=24).splitlines()
    assert len(lines) == 24
    text = "\n".join(lines)
    assert len(rows(text)) == 5
    assert "lag: model 7" in text
    [title] = [i for i, line in enumerate(lines) if line.startswith("iPFI of f1, ░ two standard")]
    band = lines[title + 1 : title + 5]
    assert ["┤" in line or "│" in line for line in band] == [True] * 4
    assert sum("iPFI of f2 rose" in line for line in lines) == 1 + 3  # with the headline


def test_more_lines_show_all_features_then_changes_then_a_higher_band() -> None:
    store = drifting_store()
    for seq in range(3000, 3400, 50):
        store.add(change("f2", seq))
    found = []
    for height in (18, 24, 27, 32, 36):
        lines = shown(store, height=height).splitlines()
        assert len(lines) == height
        band = sum(line.count("│") + line.count("┤") for line in lines)
        found.append((len(rows("\n".join(lines))), sum("rose" in line for line in lines) - 2, band))
    assert found == [(6, 3, 0), (6, 3, 4), (9, 3, 4), (9, 8, 4), (9, 8, 8)]


def test_a_terminal_is_never_filled_beyond_its_height_but_a_file_has_all() -> None:
    store = drifting_store(features=30)
    text = printed(WatchView(store), terminal_height=24)
    assert len(text.splitlines()) == 24
    assert "24 more features" in text
    assert "4 changes" in text
    assert len(rows(shown(store))) == 30
    assert "more features" not in shown(store)


def test_the_band_of_a_feature_is_drawn_if_it_is_asked_for() -> None:
    assert "iPFI of f3, ░" in shown(drifting_store(), feature="f3")
    text = shown(drifting_store(), feature="f3", method="isage", width=120)
    assert text.index("iSAGE of f3, ░") < text.index("iSAGE of f1, ░")
    assert "iPFI of f1, ░" in shown(drifting_store(), feature="agee")
    records = [explanation("place", 1, 0.5), explanation("lat", 1, 0.4, method="ipdp")]
    assert "iPDP of lat, ░" in shown(store_of(records), feature="lat")


def test_another_smoothing_rate_is_shown_with_a_warning() -> None:
    store = store_of([explanation("a", 1, 0.25)])
    text = shown(store, alphas=[0.5])
    assert "0.250 ±" in text
    assert "no explanation with alpha 0.5: showing alpha 0.001 (available: 0.001)" in text
    store.add(replace(explanation("a", 1, 0.75), alpha=0.5))
    text = shown(store, alphas=[0.5])
    assert "0.750 ±" in text
    assert "no explanation with" not in text


def test_loss_and_accuracy_have_a_trend() -> None:
    store = Store()
    for seq in range(4000):
        store.add(prediction(seq, loss=seq / 4000, correct=seq < 2000))
    [line] = [line for line in shown(store).splitlines() if "mean loss" in line]
    loss, accuracy = line.split(" · ")
    assert loss.startswith("mean loss 0.9")
    assert list(loss.split()[-1]) == sorted(loss.split()[-1])
    assert accuracy.split()[-1].startswith("███")
    assert accuracy.split()[-1].endswith("▁▁▁")
    regression = store_of(prediction(seq, regression=True) for seq in range(100))
    assert "accuracy" not in shown(regression)
    unlabelled = shown(store_of(prediction(seq, loss=None) for seq in range(100)))
    assert "loss" not in unlabelled
    assert "accuracy" not in unlabelled


@pytest.mark.parametrize("scale", [1e-9, 1.23456e-4, 1.23456e-3, 0.5, 123456.0, 1e12])
def test_fits_80_columns_and_cuts_no_number(scale: float) -> None:
    store = Store()
    for seq, sign in enumerate((1, -1)):
        store.add(prediction(1_234_567 + seq, loss=scale), now=seq)
        for method in METHODS:
            name = f"a_rather_long_feature_name_{seq}"
            record = explanation(name, 5, sign * scale, method=method, std_error=scale / 7)
            store.add(record)
    for seq in range(20):
        store.add(change("a_rather_long_feature_name", 1_000_000 + seq))
    lines = shown(store, now=2.0).splitlines()
    assert max(len(line) for line in lines) <= 80
    numbers = [line for line in lines if "±" in line]
    for row, value in zip(numbers, (scale, -scale), strict=True):
        assert row.count(measured(value, scale / 7, scale)) == 3


def test_the_header_counts() -> None:
    store = Store()
    for seq in range(1000):
        store.add(prediction(seq, loss=0.25, correct=seq % 4 != 0), now=seq / 100)
    store.add(letter(17))
    text = shown(store, now=10.0)
    assert "1,000 records · 10" in text
    assert "/s · 1 dead letter\n" in text
    assert "mean loss 0.25 " in text
    assert "accuracy 75.0 % " in text
    assert "last dead letter: features-0 offset 17: x.age is missing" in text
    assert "/s" not in shown(store)


def test_the_latest_changes_are_first_with_ids_incidents_and_kinds_of_notices() -> None:
    loss, of_many = loss_change(1250), replace(change("b", 1260), incident="features-0@200")
    notice = Change.notice(kind="cold-start", stream=STREAM, seq=1270, detail="x " * 80)
    alone = [change("a", seq) for seq in range(100, 1300, 100)]
    lines = shown(store_of([prediction(0), *alone, loss, of_many, notice])).splitlines()
    [heading] = [i for i, line in enumerate(lines) if line.startswith("15 changes")]
    assert lines[heading] == "15 changes, latest first (record, id, @ incident)"
    assert f"1,270 {notice.id} cold-start: x x" in lines[heading + 1]
    assert max(map(len, lines)) <= 80
    seen = [line.rstrip() for line in lines[heading + 1 :] if " x " not in line]
    assert seen == [
        f"1,260 {of_many.id} iPFI of b rose from 0.1 to 0.4  @200",
        f"1,250 {loss.id} the loss rose from 0.2 to 0.9",
        *(f"{c.seq:5,} {c.id} iPFI of a rose from 0.1 to 0.4" for c in alone[:-6:-1]),
    ]
    assert "incident" not in shown(store_of(alone))


def test_shows_the_selected_stream() -> None:
    store = drifting_store()
    store.add(explanation("elsewhere", 5, 0.7, stream="features-1"))
    assert "elsewhere" not in shown(store)
    text = shown(store, stream="features-1")
    assert "features-1, one of 2 streams" in text
    assert "elsewhere" in text


def test_records_cannot_steer_the_terminal() -> None:
    store = store_of([explanation("[red]\x1b[2Jname", 1, 0.5), letter(1, "no\x1b[2J\nway")])
    text = shown(store)
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

"""The story of a change says what is in the record, fits 80 columns and survives any record."""

from dataclasses import replace

import pytest
from hypothesis import given

from fluxplain.monitor.terminal.change_story import (
    SeqRange,
    range_of,
    render_incident,
    render_list,
    render_story,
)
from fluxplain.schemas import Change
from fluxplain.schemas.change import Curve, Period, Status
from fluxplain.schemas.record import Value
from tests.kit.any_records import any_record
from tests.kit.records import STREAM, change, error_change, loss_change
from tests.kit.support import PROPERTY
from tests.monitor.terminal.console import printed

GRID: list[Value] = [0.0, 0.5, 1.0]

WHOLE = replace(
    change("vicprice", 17760, before=0.0012, after=0.0841),
    ts="2000-05-05",
    before_std_error=0.0003,
    after_std_error=0.0102,
    direction="rose",
    window=224,
    after_seq=17536,
    delay_bound=224,
    replay_seq=17312,
    rank_before=7,
    rank_after=1,
    ranked=8,
    loss_before=0.512,
    loss_after=0.433,
    effect_size=0.21,
    incident="features-0@17650",
    curve_before=Curve(17530, GRID, [0.4, 0.4, 0.4]),
    curve_after=Curve(17759, GRID, [0.3, 0.45, 0.6]),
)


def facts(text: str) -> dict[str, str]:
    """Return name → fact, of the lines that have both."""
    lines = [line.rstrip().split("  ", 1) for line in text.splitlines()]
    return {line[0]: line[1].strip() for line in lines if len(line) == 2}


@pytest.mark.parametrize("status", ["transient", "reverted"])
def test_the_story_of_a_change_that_did_not_last_tells_no_effect(status: Status) -> None:
    undone = replace(WHOLE, status=status, lasted=60)
    found = facts(printed(render_story(undone, [undone], "")))
    assert found["before"] == "0.0012 ±0.0003"
    assert "effect" not in found


def test_a_story_has_all_that_is_known() -> None:
    text = printed(render_story(WHOLE, [WHOLE], "To see it:\n  do this"))
    assert text.startswith(f"{WHOLE.detail}\n")
    found = facts(text)
    assert found["change"] == WHOLE.id
    assert found["when"] == "features-0 seq 17,760, ts 2000-05-05"
    assert found["measured"].startswith("iPFI: loss added")
    assert found["before"] == "0.0012 ±0.0003"
    assert found["after"] == "0.0841 ±0.0102  (mean of the last 224 observations)"
    assert found["effect"] == "rose by 0.0829, 21% of all importance"
    assert found["rank"] == "7 → 1 of 8"
    assert found["model's loss"] == "0.512 → 0.433"
    assert found["began"] == "about seq 17,536, 224 observations earlier (at most 224)"
    assert "Incident features-0@17650: no other change" in text
    assert text.endswith("To see it:\n  do this\n")
    assert max(map(len, text.splitlines())) <= 80


def test_a_story_names_the_period_that_comes_back() -> None:
    back = replace(WHOLE, returns_to=Period(12_000, 18_000))
    found = facts(printed(render_story(back, [back], None)))
    assert found["shares"] == "as between seq 12,000 and 18,000  (of all importance, by feature)"


def test_what_is_not_known_is_left_out() -> None:
    bare = Change.notice(kind="gap", stream=STREAM, seq=7, detail="some were lost")
    text = printed(render_story(bare, [], None))
    assert list(facts(text)) == ["change", "when", "what"]
    assert "None" not in text
    loss = printed(render_story(loss_change(7), [], None))
    assert facts(loss)["measured"] == "loss: loss of the model's predictions"
    assert "Incident" not in loss
    errors = facts(printed(render_story(error_change(7), [], None)))
    assert errors["measured"] == "wrong predictions: their share"
    assert errors["model's loss"] == "0.200 → 0.900"


def curves(before: Curve | None, after: Curve | None) -> list[str]:
    """Return the lines of a story with these curves."""
    story = replace(WHOLE, curve_before=before, curve_after=after)
    return printed(render_story(story, [], None)).splitlines()


def test_curves_stand_side_by_side_on_one_scale() -> None:
    lines = curves(WHOLE.curve_before, WHOLE.curve_after)
    text = "\n".join(lines)
    assert "from 0.300 to 0.600" in text
    assert "before, at 17,530" in text
    assert "after, at 17,759" in text
    rows = [line.split() for line in lines if line.strip().startswith(("0.0", "0.5", "1.0"))]
    assert [row[0] for row in rows] == ["0.00", "0.50", "1.00"]
    assert rows[0][1] == "0.400"
    assert rows[-1][-2:] == ["0.600", "█" * 14]


def test_categories_stand_beside_themselves() -> None:
    lines = curves(Curve(1, ["red", "green"], [0.1, 0.2]), Curve(2, ["green", "blue"], [0.3, 0.4]))
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert rows["green"].count("green") == 2
    assert "–" in rows["red"]
    assert "blue" in rows["–"]


def test_each_class_has_a_curve_and_those_that_move_most_are_first() -> None:
    effect = [[0.0, 0.1 * c, 0.2 * c] for c in range(6)]
    lines = curves(None, Curve(1, GRID, effect, [*"abcdef"]))
    assert [line.split()[-1] for line in lines if line.startswith("class ")] == [*"fedc"]
    assert any("and 2 classes with smaller differences" in line for line in lines)


def test_a_surface_has_a_line_for_each_point_of_the_first() -> None:
    effect = [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
    text = "\n".join(curves(None, Curve(1, [1.0, 2.0], effect, None, GRID)))
    assert "each line along the second feature, from 0.00 to 1.00" in text
    assert "▁▅█" in text
    assert "█▅▁" in text


def test_a_long_curve_is_shown_at_some_of_its_points() -> None:
    effect = [float(x) for x in range(1000)]
    lines = curves(None, Curve(1, [*effect], effect))
    points = [line.split()[0] for line in lines if line.startswith(" ")]
    assert (points[0], points[-1], len(points)) == ("0", "999", 20)


def test_the_other_changes_of_the_incident_are_listed() -> None:
    other = replace(change("nswprice", 17650, method="isage"), incident=WHOLE.incident)
    text = printed(render_story(WHOLE, [other, WHOLE], None))
    assert "1 other change" in text
    assert f"{other.id}  17,650  iSAGE of nswprice rose" in text


def test_an_incident_lists_all_its_changes() -> None:
    other = replace(change("nswprice", 17650), incident=WHOLE.incident)
    text = printed(render_incident([other, WHOLE], "To see it: x"))
    assert text.startswith("Incident features-0@17650: 2 changes\n")
    assert facts(text)["when"].startswith("features-0 seq 17,650 to 17,760")
    assert facts(text)["features"] == "nswprice, vicprice"
    assert WHOLE.id in text
    assert other.id in text


def test_a_list_names_ids_and_streams_if_there_are_several() -> None:
    one, other = change("a", 5), change("b", 7, stream="features-1")
    text = printed(render_list([other, one]))
    assert f"{other.id}  7  features-1: iPFI of b" in text
    assert "of features-0" in printed(render_list([one]))
    assert printed(render_list([])) == "There are no changes yet.\n"


def test_the_observations_that_show_changes_reach_from_the_first_to_the_last() -> None:
    other = replace(change("b", 17650), replay_seq=17000)
    assert range_of([WHOLE]) == SeqRange(STREAM, 17312, 17760)
    assert range_of([other, WHOLE]) == SeqRange(STREAM, 17000, 17760)
    assert range_of([change("a", 5)]) is None


def test_what_stands_on_a_topic_cannot_steer_the_terminal() -> None:
    evil = "[red]\x1b[2J"
    story = replace(WHOLE, id=evil, stream=evil, ts=evil, detail=evil, incident=evil, feature=evil)
    for what in (
        render_story(replace(story, id="x"), [story], None),
        render_story(story, [], None),
        render_incident([story], None),
        render_list([story]),
    ):
        assert "\x1b" not in printed(what)
        assert "[red]" in printed(what)


@PROPERTY
@given(any_record(Change))
def test_any_record_has_a_story(event: Change) -> None:
    text = printed(render_story(event, [WHOLE], None)) + printed(render_incident([event], None))
    assert all(character.isprintable() or character == "\n" for character in text)


def test_points_that_are_numbers_and_texts_are_shown_as_categories() -> None:
    before, after = Curve(5, [0.5, "a"], [0.1, 0.2]), Curve(9, ["a"], [1.0])
    story = replace(WHOLE, curve_before=before, curve_after=after)
    text = printed(render_story(story, [], None))
    assert "0.5" in text
    assert "a" in text


@pytest.mark.parametrize("before", [None, 0.0])
def test_a_change_of_unknown_size_has_no_share(before: float | None) -> None:
    story = replace(WHOLE, before=before, after=0.5, effect_size=None)
    assert "%" not in printed(render_story(story, [], None))


def test_what_would_read_the_same_has_more_digits() -> None:
    story = replace(WHOLE, before=0.21041, after=0.21042, loss_before=0.43301, loss_after=0.43299)
    found = facts(printed(render_story(replace(story, before_std_error=None), [], None)))
    assert found["before"] == "0.21041"
    assert found["after"].startswith("0.21042 ±0.01020")
    assert found["effect"].startswith("rose by 1e-05")
    assert found["model's loss"] == "0.43301 → 0.43299"

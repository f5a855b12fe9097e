"""What people have noted holds until a later note says otherwise."""

from dataclasses import replace

import pytest

from fluxplain.results.notes import MAX_NOTES, Notes, said
from fluxplain.schemas import BadRecordError, Note
from fluxplain.schemas.note import State
from tests.kit.records import STREAM, change

AT = "2026-03-01T12:00:00Z"

MUTED = Note("muted", AT, feature="age", text="noise", by="Ada")

OTHER = "features-7"

CHANGE = change("age", 7)


def acknowledged(state: State = "acknowledged") -> Note:
    return Note(state, AT, change=CHANGE.id, stream=STREAM)


def test_the_latest_note_about_a_change_holds() -> None:
    notes = Notes([acknowledged()])
    assert notes.acknowledged(CHANGE.id) == acknowledged()
    assert notes.acknowledged("0" * 12) is None
    notes.add(acknowledged("open"))
    assert notes.acknowledged(CHANGE.id) is None
    assert notes.all_acknowledged() == []


@pytest.mark.parametrize(
    ("states", "muted_in"),
    [
        ([("muted", None)], {STREAM, OTHER}),
        ([("muted", STREAM)], {STREAM}),
        ([("muted", None), ("unmuted", STREAM)], {OTHER}),
        ([("muted", STREAM), ("unmuted", None)], set()),
        ([("unmuted", STREAM), ("muted", None)], {STREAM, OTHER}),
        ([("muted", None), ("unmuted", None)], set()),
    ],
)
def test_of_notes_about_one_stream_and_about_all_the_later_one_holds(
    states: list[tuple[State, str | None]], muted_in: set[str]
) -> None:
    notes = Notes(replace(MUTED, state=state, stream=stream) for state, stream in states)
    found = {name for name in (STREAM, OTHER) if notes.muted(name, "age")}
    assert found == {name for name in (STREAM, OTHER) if notes.all_muted(name)} == muted_in
    assert notes.hides(CHANGE) is (STREAM in muted_in)
    assert {each.stream for each in notes.all_muted()} <= {None, *muted_in}
    assert bool(notes.all_muted()) is bool(muted_in)


def test_a_mute_ends_when_it_says() -> None:
    notes = Notes([replace(MUTED, until="2026-03-01T13:00:00Z")])
    ends_s = 1_772_370_000.0
    assert notes.muted(STREAM, "age", ends_s - 1.0)
    assert notes.muted(STREAM, "age", ends_s) is None
    assert notes.muted(STREAM, "age") is None, "that is long ago"
    assert said(notes.muted(STREAM, "age", 0.0) or MUTED) == (
        "by Ada, 2026-03-01 12:00 UTC, until 2026-03-01 13:00 UTC: noise"
    )


def test_only_the_latest_notes_are_kept() -> None:
    many = [Note("acknowledged", AT, change=f"{i:012x}", stream="s") for i in range(MAX_NOTES + 1)]
    notes = Notes(many)
    assert len(notes.all_acknowledged()) == MAX_NOTES
    assert notes.acknowledged(many[0].change or "") is None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "acknowledged", "at": AT, "change": CHANGE.id}, "needs change and stream"),
        ({"state": "open", "at": AT, "change": "x", "stream": "s"}, "change: String should match"),
        ({"state": "muted", "at": AT}, "needs feature"),
        ({"state": "muted", "at": AT, "feature": "a", "change": CHANGE.id}, "and no change"),
        ({"state": "muted", "at": "soon", "feature": "a"}, "at: no time in a format of ISO 8601"),
        ({"state": "muted", "at": AT, "feature": "a", "until": "x"}, "until: no time"),
        ({"state": "muted", "at": AT, "feature": "a", "text": "x" * 1001}, "text: String should"),
    ],
)
def test_a_note_is_about_one_thing(fields: dict[str, str], reason: str) -> None:
    with pytest.raises(BadRecordError, match=reason):
        Note.of(fields)


def test_notes_about_the_same_have_the_same_key() -> None:
    assert acknowledged().message_key() == acknowledged("open").message_key() == CHANGE.id
    assert MUTED.message_key() == replace(MUTED, state="unmuted").message_key() == "age@"
    assert replace(MUTED, stream=STREAM).message_key() == f"age@{STREAM}"

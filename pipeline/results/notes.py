"""What people have noted: acknowledged changes, and muted features."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from fluxplain.schemas import Change, Note
from fluxplain.schemas.times import moment, readable
from fluxplain.schemas.wording import printable

Key = TypeVar("Key")

Kept = TypeVar("Kept")

MAX_NOTES = 2_000
"""Latest notes to keep, of changes and of features each: at most 40 MB in all, mostly 2 MB."""

BRIEF = 40
"""Characters of a note in a list."""

Scope = tuple[str, str | None]
"""A feature, and the only stream in which it is muted; None for all."""


class Muted(NamedTuple):
    """A note about a feature, and its place among all notes."""

    place: int
    note: Note


class Notes:
    """The latest note about each change and each feature."""

    def __init__(self, notes: Iterable[Note] = ()) -> None:
        self._of_changes: OrderedDict[str, Note] = OrderedDict()
        self._of_features: OrderedDict[Scope, Muted] = OrderedDict()
        self._count = 0
        for note in notes:
            self.add(note)

    def add(self, note: Note) -> None:
        """Add a note, which replaces earlier ones about the same."""
        self._count += 1
        if note.change is not None:
            _keep(self._of_changes, note.change, note)
        elif note.feature is not None:
            _keep(self._of_features, (note.feature, note.stream), Muted(self._count, note))

    def acknowledged(self, change_id: str) -> Note | None:
        """Return who acknowledged a change, and why; None if it is open."""
        note = self._of_changes.get(change_id)
        return note if note is not None and note.state == "acknowledged" else None

    def muted(self, stream: str, feature: str | None, now_s: float | None = None) -> Note | None:
        """Return who muted a feature in a stream, and why; None if it is not muted.

        ``now_s`` are the seconds since 1970 at which that is asked, by default now.
        """
        if feature is None or not self._of_features:
            return None
        known = (self._of_features.get((feature, each)) for each in (stream, None))
        latest = max(filter(None, known), default=None, key=lambda each: each.place)
        return latest.note if latest is not None and _holds(latest.note, now_s) else None

    def hides(self, change: Change, now_s: float | None = None) -> bool:
        """Return whether a change is of a feature that is muted in its stream."""
        return self.muted(change.stream, change.feature, now_s) is not None

    def all_acknowledged(self) -> list[Note]:
        """Return the notes about acknowledged changes, the latest first."""
        kept = reversed(self._of_changes.values())
        return [note for note in kept if note.state == "acknowledged"]

    def all_muted(self, stream: str | None = None) -> list[Note]:
        """Return the notes about muted features, of one stream or of all, the latest first."""
        return list(self._all_muted(stream))

    def _all_muted(self, stream: str | None) -> Iterator[Note]:
        found = set()
        for feature, own in reversed(self._of_features):
            if stream is None:
                note = self.muted(own or "", feature)
                if note is not None and note.stream == own:
                    yield note
            elif own in {None, stream} and feature not in found:
                found.add(feature)
                note = self.muted(stream, feature)
                if note is not None:
                    yield note


def said(note: Note) -> str:
    """Return who noted something, when, and what, in one line.

    Examples
    --------
    >>> said(Note("acknowledged", "2026-03-01T12:00:00Z", text="a release", by="Ada"))
    'by Ada, 2026-03-01 12:00 UTC: a release'
    """
    parts = [*([f"by {note.by}"] if note.by else []), shown_time(note.at)]
    ends = f", until {shown_time(note.until)}" if note.until else ""
    text = f": {note.text}" if note.text else ""
    return printable(f"{', '.join(parts)}{ends}{text}")


def in_brief(note: Note) -> str:
    """Return who acknowledged a change, and the beginning of the note, for a list.

    Examples
    --------
    >>> in_brief(Note("acknowledged", "2026-03-01T12:00:00Z", text="a release", by="Ada"))
    '✓ Ada: a release'
    """
    text = note.text or ""
    cut = text if len(text) <= BRIEF else f"{text[:BRIEF]}…"
    return printable(f"✓ {': '.join(filter(None, (note.by, cut))) or 'acknowledged'}")


def shown_time(at: str) -> str:
    """Return a note's time, to the minute, in UTC."""
    seconds = moment(at)
    return at if seconds is None else f"{readable(seconds)[:16]} UTC"


NO_NOTES = Notes()
"""For what shows changes of which nobody can have noted anything."""


def _keep(kept: OrderedDict[Key, Kept], key: Key, note: Kept) -> None:
    kept[key] = note
    kept.move_to_end(key)
    if len(kept) > MAX_NOTES:
        kept.popitem(last=False)


def _holds(note: Note, now_s: float | None) -> bool:
    until_s = moment(note.until)
    if note.state != "muted":
        return False
    return until_s is None or (time.time() if now_s is None else now_s) < until_s

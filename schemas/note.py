"""Records of the topic ``notes``: what people note about changes and features."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from fluxplain.schemas.record import BadRecordError, Record
from fluxplain.schemas.times import moment

State = Literal["acknowledged", "open", "muted", "unmuted"]

MAX_TEXT = 1_000
"""Longest note or reason, in characters."""

MAX_BY = 100
"""Longest name of a person, in characters."""

Name = Annotated[str, Field(min_length=1, max_length=500)]


@dataclass(frozen=True, slots=True)
class Note(Record):
    """What a person notes about a change, or about a feature that is noise.

    People write notes, with commands or on the page; the pipeline's roles neither write nor read
    them. So no other record depends on them. Of all notes about the same change, or about the same
    feature of the same stream, the latest holds: it replaces the others, also in the compacted
    topic.

    Attributes
    ----------
    state
        Of a change: ``"acknowledged"``, or ``"open"`` again. Of a feature: ``"muted"``, or
        ``"unmuted"`` again. If a note about a feature of one stream and one about all streams
        differ, the later one holds.
    at
        When it was noted, in a format of ISO 8601; UTC without an offset.
    change
        The id of the change; None for a feature.
    feature
        The feature, group or pair; None for a change.
    stream
        The stream of the change, or the only one in which the feature is muted; None for all.
    text
        The note, or the reason why a feature is muted; None without one.
    by
        Who noted it, as they name themselves; None if they do not.
    until
        When a muted feature is no longer muted, as ``at``; None for no end.
    """

    TOPIC: ClassVar[str] = "notes"

    state: State
    at: Annotated[str, Field(max_length=40)]
    change: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")] | None = None
    feature: Name | None = None
    stream: Name | None = None
    text: Annotated[str, Field(max_length=MAX_TEXT)] | None = None
    by: Annotated[str, Field(max_length=MAX_BY)] | None = None
    until: Annotated[str, Field(max_length=40)] | None = None

    def message_key(self) -> str:
        """Return the change's id, or the feature and the stream, by which notes are compacted."""
        return self.change or f"{self.feature}@{self.stream or ''}"

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Self:
        """Return the record of these fields, which are about a change or about a feature."""
        note = cls.validated(fields)
        if note.state in {"acknowledged", "open"}:
            if note.change is None or note.stream is None or note.feature or note.until:
                raise BadRecordError(
                    f"{note.state}: needs change and stream, and nothing of a mute"
                )
        elif note.feature is None or note.change:
            raise BadRecordError(f"{note.state}: needs feature, and no change")
        for name, time in (("at", note.at), ("until", note.until)):
            if time is not None and moment(time) is None:
                raise BadRecordError(f"{name}: no time in a format of ISO 8601")
        return note

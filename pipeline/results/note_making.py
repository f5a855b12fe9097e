"""Makes notes of what people ask for, and refuses what cannot be meant."""

import time
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches

from fluxplain.config import Config
from fluxplain.errors import UserError
from fluxplain.schemas import BadRecordError, Change, Note
from fluxplain.schemas.times import moment


class NoteError(UserError):
    """A note that cannot be made; the message is the reason."""


def about_changes(
    changes: Iterable[Change], *, text: str | None, by: str | None, undo: bool = False
) -> list[Note]:
    """Return notes that acknowledge changes, or open them again."""
    state = "open" if undo else "acknowledged"
    return [
        _made(state=state, change=each.id, stream=each.stream, text=text, by=by) for each in changes
    ]


def about_feature(
    feature: str,
    known: Collection[str],
    *,
    stream: str | None,
    text: str | None,
    by: str | None,
    until: str | None = None,
    undo: bool = False,
) -> Note:
    """Return a note that mutes a feature, or unmutes it; ``known`` are those of the pipeline."""
    if feature not in known:
        close = get_close_matches(feature, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else f"; use one of {', '.join(known)}"
        raise NoteError(f"there is no feature, group or pair {feature!r}{meant}")
    if undo:
        return _made(state="unmuted", feature=feature, stream=stream, text=text, by=by)
    if not text:
        raise NoteError("a mute needs a reason: others must know why they hear nothing")
    ends_s = moment(until)
    if until is not None and (ends_s is None or ends_s <= time.time()):
        raise NoteError(f"the mute would end at {until!r}, but that is no time from now on")
    return _made(state="muted", feature=feature, stream=stream, text=text, by=by, until=until)


def features_of(config: Config) -> list[str]:
    """Return everything that a change of the pipeline can be about, except the loss."""
    everywhere = [config, *config.own_streams.values()]
    names = (name for each in everywhere for name in (*each.explained, *each.features))
    return list(dict.fromkeys(names))


def in_utc(time_: datetime) -> str:
    """Return a time as notes have it."""
    return time_.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _made(**fields: str | None) -> Note:
    kept = {name: value or None for name, value in fields.items()}
    try:
        return Note.of({**kept, "at": in_utc(datetime.now(UTC))})
    except BadRecordError as error:
        raise NoteError(f"this note cannot be written: {error}") from None

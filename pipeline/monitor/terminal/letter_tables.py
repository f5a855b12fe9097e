"""Shows groups of dead letters, and single ones, in the terminal."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

import orjson
from rich.table import Column, Table
from rich.text import Text

from fluxplain.results.letter_groups import LetterGroup, group_id, pattern_of
from fluxplain.schemas import DeadLetter, stream_name
from fluxplain.schemas.wording import printable

MOST_PLACES = 5
"""Most topic partitions shown of a group."""


def render_groups(groups: Sequence[LetterGroup], *, ids: bool) -> Table:
    """Render groups with what each partition has of them; ``ids`` are for dead letters' own."""
    numbers = [Column(name, justify="right") for name in ("count", "first", "last")]
    count, first, last = numbers
    columns = [count, Column("partition", no_wrap=True), first, last]
    named = [Column("group", no_wrap=True)] if ids else []
    table = Table(*named, *columns, Column("reason", overflow="fold"), box=None)
    for group in groups:
        for i, (place, extent) in enumerate(islice(group.places.items(), MOST_PLACES)):
            name = [group.id if i == 0 else ""] if ids else []
            reason = _reason(group) if i == 0 else Text()
            numbers_of = f"{extent.first:,}", f"{extent.last:,}"
            table.add_row(*name, f"{extent.count:,}", printable(place), *numbers_of, reason)
        if (more := len(group.places) - MOST_PLACES) > 0:
            table.add_row(*([""] if ids else []), "", f"and {more:,} more")
    return table


def _reason(group: LetterGroup) -> Text:
    """Return the newest reason, and the id of its dead letter."""
    text = Text(printable(group.title))
    return text.append(f"\nthe newest: {group.example}", style="dim")


def render_letter(letter: DeadLetter) -> Table:
    """Render a dead letter but for its value."""
    place = stream_name(letter.topic, letter.partition)
    table = Table(Column(no_wrap=True), Column(overflow="fold"), box=None, show_header=False)
    rows = {
        "dead letter": letter.id,
        "reason": letter.reason,
        "message": f"{place} offset {letter.offset}",
        "stream": f"{letter.stream} seq {letter.seq}",
        "incarnation": letter.incarnation,
        "group": group_id(pattern_of(letter.reason)),
        "key": "none" if letter.key is None else letter.key,
        "sha256": letter.sha256 or "none",
        "value": _kind(letter),
    }
    for name, text in rows.items():
        table.add_row(Text(name, style="dim"), Text(printable(text)))
    return table


def _kind(letter: DeadLetter) -> str:
    if letter.value is None:
        return "none: the message had none, or could not be read"
    text = "in base64" if letter.encoding == "base64" else "text"
    return f"{text}, only its first 256 KiB" if letter.truncated else text


def value_lines(letter: DeadLetter) -> Iterator[str]:
    """Yield the lines of a dead letter's value; JSON is indented."""
    if letter.value is None:
        return
    text = letter.value
    # orjson reads deeper nesting than it writes
    with suppress(orjson.JSONDecodeError, TypeError):
        text = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    yield from map(printable, text.splitlines())

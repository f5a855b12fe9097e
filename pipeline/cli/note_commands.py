"""Commands with which people note what they know: acknowledge, mute."""

import getpass
import re
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from fluxplain.cli import common as cli
from fluxplain.config import Config, ConfigError
from fluxplain.results.lookup import find
from fluxplain.results.note_making import about_changes, about_feature, features_of, in_utc
from fluxplain.results.notes import said
from fluxplain.results.notes_topic import read_notes, write_notes
from fluxplain.schemas import Note
from fluxplain.schemas.wording import in_short, plural, printable

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

LISTED = 50
"""Most acknowledged changes to list."""

By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Who notes this; by default your user name."),
]


@cli.app.command(rich_help_panel=cli.LOOK)
def acknowledge(
    change_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A change's id, or at least its first 4 digits; or an incident, such as "
            "fluxplain.features-0@2610, for all its changes so far. Without an id, acknowledged "
            "changes are listed.",
        ),
    ] = None,
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    note: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What you know about it, for all to see.")
    ] = None,
    by: By = None,
    undo: Annotated[bool, typer.Option("--undo", help="Open the change again.")] = False,
) -> None:
    """Acknowledge a change, with a note.

    All who look at this pipeline see who acknowledged it, when, and the note: in `watch`,
    `explain-change` and the dashboard. The headline no longer names the change as news. Further
    changes are news again, also those of the same incident.

    The note is a record of the topic `notes`; it changes nothing that the pipeline computes.
    """
    settings = cli.ready(cli.load(config, "reader"))
    if change_id is None:
        _refuse_options({"--note": note, "--undo": undo or None}, "ID")
        _list(read_notes(settings).all_acknowledged()[:LISTED], "No change is acknowledged.")
        return
    found = find(cli.changes_of(cli.topic_reader(settings)), change_id)
    changes = found.incident if found.change is None else [found.change]
    write_notes(settings, about_changes(changes, text=note, by=by or _user(), undo=undo))
    for change in changes:
        what = "open again" if undo else "acknowledged"
        cli.say(f"{what}: {change.id}, {printable(in_short(change))}")


@cli.app.command(rich_help_panel=cli.LOOK)
def mute(  # noqa: PLR0917  options of a command
    feature: Annotated[
        str | None,
        typer.Argument(
            metavar="FEATURE",
            help="A feature, group or pair. Without one, muted features are listed.",
        ),
    ] = None,
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Why its changes are noise; required.")
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Only in this stream; by default in all."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN", help="When the mute ends: 8h, 7d, 2026-12-24 or 2026-12-24T18:00."
        ),
    ] = None,
    by: By = None,
    undo: Annotated[bool, typer.Option("--undo", help="Unmute the feature.")] = False,
) -> None:
    """Mute a feature whose changes are noise.

    From now on its changes send no alert, and the headline does not name them. `watch` leaves them
    out and says how many they are; the dashboard folds them. All see who muted the feature, when,
    and why. The mute is a record of the topic `notes`; changes are published as before.

    To exclude a feature from alerts alone, and in the settings, use `alerts.mute`.
    """
    settings = cli.ready(cli.load(config, "reader"))
    if feature is None:
        options = {"--reason": reason, "--until": until, "--undo": undo or None}
        _refuse_options({**options, "--stream": stream}, "FEATURE")
        _list(read_notes(settings).all_muted(), "No feature is muted.")
        return
    if stream is not None:
        cli.partition_of(settings, stream)
    if not undo and not reason:
        raise ConfigError("--reason is missing: others must know why they hear nothing")
    ends = None if until is None else _until(until)
    known = features_of(settings)
    written = about_feature(
        feature, known, stream=stream, text=reason, by=by or _user(), until=ends, undo=undo
    )
    if undo:
        _check_muted(settings, written)
    write_notes(settings, [written])
    cli.say(f"{'unmuted' if undo else 'muted'}: {_about(written)}")


def _refuse_options(given: dict[str, object], missing: str) -> None:
    """Raise ConfigError if options were given, but not what they are about."""
    for name, value in given.items():
        if value is not None:
            raise ConfigError(f"{name} needs {missing}: say what it is about")


def _check_muted(settings: Config, undone: Note) -> None:
    """Raise ConfigError unless the feature is muted in that stream, or in all."""
    mutes = [each for each in read_notes(settings).all_muted() if each.feature == undone.feature]
    if any(each.stream == undone.stream or each.stream is None for each in mutes):
        return
    where = "" if undone.stream is None else f" in {undone.stream}"
    elsewhere = [f"--stream {shlex.quote(each.stream)}" for each in mutes if each.stream]
    remedy = f": it is with {' and '.join(elsewhere)}" if elsewhere else ""
    raise ConfigError(f"{undone.feature} is not muted{where}{remedy}")


def _until(text: str) -> str:
    """Return the end of a mute: so long from now, or a date with or without a time of day."""
    found = re.fullmatch(r"(\d{1,4})([mhdw])", text)
    if found:
        return in_utc(datetime.now(UTC) + timedelta(**{UNITS[found[2]]: int(found[1])}))
    try:
        return in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):  # also of a year that is another one in UTC
        raise ConfigError(
            f"--until is {text!r}, but must be as long from now as 8h, 7d or 2w, or a date such as "
            "2026-12-24 or 2026-12-24T18:00"
        ) from None


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return None


def _list(notes: Sequence[Note], none: str) -> None:
    if not notes:
        cli.say(none)
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for note in notes:
        table.add_row(Text(_about(note)), Text(said(note)))
    cli.console.print(table)
    cli.say(plural(len(notes), "note"))


def _about(note: Note) -> str:
    if note.change is not None:
        return printable(f"{note.stream} {note.change}")
    return printable(f"{note.feature} in {note.stream or 'all streams'}")

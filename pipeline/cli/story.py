"""The command that tells what happened at a change."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, console, load
from pipeline.config import ConfigError
from pipeline.kafka.embedded import resolve
from pipeline.monitor.lookup import UnknownChangeError, find, newest
from pipeline.monitor.story import (
    SeqRange,
    range_of,
    render_incident,
    render_list,
    render_story,
)
from pipeline.monitor.text import printable
from pipeline.published import from_files, from_topics
from schemas import Change

PANEL = "Look"

LISTED = 20
"""Changes that are shown if nobody says which."""


@app.command(rich_help_panel=PANEL)
def explain_change(
    change_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A change's id, or its first 4 digits or more; or an incident, as "
            "fluxplain.features-0@2610. Without one, the newest changes are listed.",
        ),
    ] = None,
    config: ConfigPath = DEFAULT_CONFIG,
    local: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Read what `fluxplain local` wrote, instead of topics."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Each record as it is on the topic.")
    ] = False,
) -> None:
    """Tell what happened at a change: before and after, how sure, since when, and what else.

    What it says can be checked: it names the observations that show the change, and how to see
    them.
    """
    changes = _published(config, local)
    if change_id is None:
        listed = newest(changes, LISTED)
        _print_json(listed) if as_json else console.print(render_list(listed))
        return
    try:
        found = find(changes, change_id)
    except UnknownChangeError as error:
        raise ConfigError(str(error)) from None
    asked = found.incident if found.change is None else [found.change]
    if as_json:
        _print_json(asked)
        return
    seqs = range_of(asked)
    look = None if seqs is None else _look(seqs, config, local)
    if found.change is None:
        console.print(render_incident(found.incident, look), crop=False)
    else:
        console.print(render_story(found.change, found.incident, look), crop=False)


def _published(config: Path, local: Path | None) -> Iterator[Change]:
    if local is not None:
        records = from_files(local, [Change.TOPIC])
    else:
        records = from_topics(resolve(load(config, "reader")), [Change.TOPIC])
    return (record for record in records if isinstance(record, Change))


def _look(seqs: SeqRange, config: Path, local: Path | None) -> str:
    if local is not None:
        return (
            f"To see it, look at records {seqs.first:,} to {seqs.last:,} of what `fluxplain local` "
            "read, counted from 0."
        )
    # whoever may write to the topic must not write into the user's shell
    stream = shlex.quote(printable(seqs.stream))
    # what a stream is of, in the pipeline's own topic if labels have one
    topic = "observations" if "observations-" in seqs.stream else "features"
    command = f"fluxplain tail {topic} --stream {stream} --seqs {seqs.first}-{seqs.last}"
    where = "" if config == DEFAULT_CONFIG else f" -c {shlex.quote(str(config))}"
    return f"To see the observations:\n  {command}{where}"


def _print_json(changes: list[Change]) -> None:
    for change in changes:
        print(change.encode().decode())

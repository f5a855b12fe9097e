"""Commands that print records and changes: tail, explain-change."""

import re
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import until_interrupted
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.topics.topic_reader import TopicReader, read_to_end
from fluxplain.monitor.terminal.record_lines import line
from fluxplain.results.lookup import find, newest
from fluxplain.results.notes import NO_NOTES
from fluxplain.results.notes_topic import read_notes
from fluxplain.schemas import OUTPUTS, RECORDS, BadRecordError, stream_name
from fluxplain.schemas.wording import printable

if TYPE_CHECKING:
    from fluxplain.monitor.terminal.change_story import SeqRange

TOPICS = tuple(record.TOPIC for record in RECORDS)

LISTED = 20
"""Most changes to list if no id is given."""


@cli.app.command(rich_help_panel=cli.LOOK)
def tail(  # noqa: PLR0917  options of a command
    topic: Annotated[str, typer.Argument(help=f"One of {', '.join(TOPICS)}.")],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    as_json: cli.AsJson = False,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest record.")
    ] = False,
    until_idle: Annotated[
        float | None,
        typer.Option(min=0.1, metavar="SECONDS", help="End after this long without a record."),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC-PARTITION", help="The stream of --seqs; by default that of partition 0."
        ),
    ] = None,
    seqs: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST-LAST",
            help="Print only these observations of the topic features, and end.",
        ),
    ] = None,
) -> None:
    """Print the records of a topic.

    Records are printed as they arrive, until Ctrl-C; those of one partition appear in order. With
    `--seqs`, only selected observations are printed.
    """
    settings = cli.load_reader(config)
    name = topic.removeprefix(settings.topics.prefix)
    if name not in {*TOPICS, settings.source}:
        raise ConfigError(f"there is no topic {topic!r}: use one of {', '.join(TOPICS)}")
    if seqs is not None:
        if name != settings.source:
            raise ConfigError(f"--seqs is only for {settings.source}, not for {name}")
        _print_observations(settings, stream, seqs, as_json=as_json)
        return
    with (
        until_interrupted(),
        TopicReader(settings, [name], from_beginning=from_beginning) as reader,
    ):
        last = time.monotonic()
        while until_idle is None or time.monotonic() - last < until_idle:
            for message in reader.poll(0.2):
                last = time.monotonic()
                print(_printed(name, message.value(), as_json=as_json))
            sys.stdout.flush()


@cli.app.command(rich_help_panel=cli.LOOK)
def explain_change(
    change_id: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="A change's id, or at least its first 4 digits; or an incident, such as "
            "fluxplain.features-0@2610. Without an id, the latest changes are listed.",
        ),
    ] = None,
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    local: cli.Local = None,
    as_json: cli.AsJson = False,
) -> None:
    """Explain one change or incident.

    The output shows the values before and after, confidence, timing and related changes. It also
    names the observations that show the change, and the command that prints them, so that you can
    verify it.
    """
    read, settings = cli.open_reader(local, config)
    changes = cli.changes_of(read)
    if change_id is None:
        found, selected = None, newest(changes, LISTED)
    else:
        found = find(changes, change_id)
        selected = found.incident if found.change is None else [found.change]
    if as_json:
        for change in selected:
            print(change.encode().decode())
        return
    from fluxplain.monitor.terminal import change_story  # noqa: PLC0415  loads NumPy, unlike tail

    notes = NO_NOTES if settings is None else read_notes(settings)
    if found is None:
        cli.console.print(change_story.render_list(selected, notes))
    else:
        seqs = change_story.range_of(selected)
        look = None if seqs is None else _look(seqs, config, local)
        if found.change is None:
            story = change_story.render_incident(found.incident, look, notes)
        else:
            story = change_story.render_story(found.change, found.incident, look, notes)
        cli.console.print(story, crop=False)


def _print_observations(settings: Config, stream: str | None, seqs: str, *, as_json: bool) -> None:
    partition = 0 if stream is None else cli.partition_of(settings, stream)
    found = re.fullmatch(r"(\d{1,18})-(\d{1,18})", seqs)
    if not found:
        raise ConfigError(f"--seqs is {seqs!r}, but must be a range such as 2400-2627")
    first, last = map(int, found.groups())
    printed = 0
    with until_interrupted():
        for message in read_to_end(settings, settings.source, {partition: first}):
            seq = message.offset() or 0
            if seq > last:
                break
            if seq >= first:
                printed += 1
                text = _printed(settings.source, message.value(), as_json=True)
                print(text if as_json else f"{seq}  {printable(text)}")
    if not printed:
        place = stream_name(settings.topic(settings.source), partition)
        raise ConfigError(f"{place} has no observations {seqs}, or they were deleted")


def _printed(name: str, value: bytes | None, *, as_json: bool) -> str:
    text = (value or b"null").decode(errors="backslashreplace")
    if as_json:
        return text
    if name not in OUTPUTS:
        return printable(text)
    try:
        return printable(line(OUTPUTS[name].decode(value)))
    except BadRecordError:
        return printable(text)


def _look(seqs: "SeqRange", config: Path, local: Path | None) -> str:
    if local is not None:
        return (
            f"To see the observations, look at records {seqs.first:,} to {seqs.last:,} in the "
            "input of `fluxplain local`, counted from 0."
        )
    # the record is untrusted, and the user may paste the command into a shell
    stream = shlex.quote(printable(seqs.stream))
    # with late labels or control, streams are partitions of observations
    topic = "observations" if "observations-" in seqs.stream else "features"
    command = f"fluxplain tail {topic} --stream {stream} --seqs {seqs.first}-{seqs.last}"
    where = "" if config == cli.DEFAULT_CONFIG else f" -c {shlex.quote(str(config))}"
    return f"To see the observations:\n  {command}{where}"

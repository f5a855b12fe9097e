"""The command that writes what is published to a file for other programs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, load, say
from pipeline.config import ConfigError
from pipeline.interruption import until_interrupted
from pipeline.kafka.embedded import resolve
from pipeline.kafka.reader import TopicReader
from pipeline.monitor.text import printable
from pipeline.outputs import OUTPUTS
from schemas import Change, Explanation, Record

if TYPE_CHECKING:
    from pipeline.monitor.export import Choice, Tally

PANEL = "Look"

Values = Iterator[tuple[int, bytes | None]]

ENDINGS = (".parquet", ".csv", ".csv.gz")

STEP = 1000
"""Messages between two looks at how far it is."""


@app.command(rich_help_panel=PANEL)
def export(  # noqa: PLR0917  options of a command
    what: Annotated[str, typer.Argument(metavar="TOPIC", help=f"One of {', '.join(OUTPUTS)}.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="File to write: .parquet, .csv, .csv.gz."),
    ],
    config: ConfigPath = DEFAULT_CONFIG,
    local: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Read what `fluxplain local` wrote, instead of a topic."),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Only of this stream; may be repeated."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only of this feature, group or pair; may be repeated."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD", help="Only of ipfi, isage, ipdp, or of changes loss; may be repeated."
        ),
    ] = None,
    from_seq: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="Only from this seq on.")
    ] = None,
    to_seq: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="Only up to this seq, included.")
    ] = None,
) -> None:
    """Write what a topic holds now, each result once, to a file of Parquet or CSV.

    The columns are described in the documentation, under "As files". Without `--local` the topic
    is read from its beginning to where it ends now.
    """
    kind = OUTPUTS.get(what)
    if kind is None:
        raise ConfigError(f"there is no topic {what!r} to export: use one of {', '.join(OUTPUTS)}")
    _check(kind, what, out, feature, method)
    if from_seq is not None and to_seq is not None and to_seq < from_seq:
        raise ConfigError(f"--to-seq is {to_seq}, but must be at least --from-seq, {from_seq}")
    from pipeline.monitor.export import Choice  # noqa: PLC0415  loads Arrow
    from pipeline.monitor.export import export as write  # noqa: PLC0415

    choice = Choice(
        streams=frozenset(stream or ()),
        features=frozenset(feature or ()),
        methods=frozenset(method or ()),
        first_seq=from_seq,
        last_seq=to_seq,
    )
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    task = progress.add_task(what, total=None)
    with until_interrupted() as interruption, ExitStack() as stack:

        def advance(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total)

        if local is not None:
            values = _from_folder(local, what, advance)
        else:
            settings = resolve(load(config, "reader"))
            reader = stack.enter_context(TopicReader(settings, [what], from_beginning=True))
            values = _from_topic(reader, advance)
        stack.enter_context(progress)
        tally = write(values, kind, out, choice)
    if interruption.by:
        raise typer.Exit(interruption.status)
    if not tally.written:
        raise ConfigError(_nothing(what, local, tally, choice))
    if tally.unusable:
        say(_left_out(tally.unusable))
    say(f"{out}: {tally.written:,} {what if tally.written > 1 else what[:-1]}")


def _check(
    kind: type[Record],
    what: str,
    out: Path,
    feature: list[str] | None,
    method: list[str] | None,
) -> None:
    if not out.name.endswith(ENDINGS):
        raise ConfigError(f"--out is {str(out)!r}, but must end in one of {', '.join(ENDINGS)}")
    if not out.absolute().parent.is_dir():
        raise ConfigError(f"--out is {str(out)!r}, but there is no folder {out.parent}")
    for option, value in (("--feature", feature), ("--method", method)):
        if value and kind not in {Explanation, Change}:
            raise ConfigError(f"{option} is for explanations and changes: {what} have none")
    known = ("ipfi", "isage", "ipdp", *(("loss",) if kind is Change else ()))
    if wrong := [each for each in method or () if each not in known]:
        raise ConfigError(f"--method is {wrong[0]!r}, but must be one of {', '.join(known)}")


def _from_topic(reader: TopicReader, advance: Callable[[int, int], None]) -> Values:
    extent = reader.extent()
    total = sum(map(len, extent.values()))
    for n, message in enumerate(reader.until(extent)):
        if n % STEP == 0:
            advance(n, total)
        yield int(message.partition() or 0), message.value()
    advance(total, total)


def _from_folder(folder: Path, what: str, advance: Callable[[int, int], None]) -> Values:
    path = folder / f"{what}.jsonl"
    if not folder.is_dir():
        raise ConfigError(f"--local is {str(folder)!r}, but there is no such folder")
    if not path.is_file():
        raise ConfigError(f"{folder} has no {path.name}, which `fluxplain local` writes")
    total = path.stat().st_size
    with path.open("rb") as file:
        for n, line in enumerate(file):
            if n % STEP == 0:
                advance(file.tell(), total)
            yield 0, line
    advance(total, total)


def _left_out(messages: int) -> str:
    if messages == 1:
        return "1 message was left out: it holds no such record"
    return f"{messages:,} messages were left out: they hold no such records"


def _nothing(what: str, local: Path | None, tally: "Tally", choice: "Choice") -> str:
    """Return why there is no file."""
    where = f"{local}/{what}.jsonl" if local else f"the topic {what}"
    if tally.seqs is None:
        return f"there is nothing to export: {where} holds no {what}"
    present = "; ".join(
        f"{name} is {', '.join(map(printable, each))}" for name, each in tally.names.items() if each
    )
    bounds = (("--from-seq", choice.first_seq), ("--to-seq", choice.last_seq))
    given = ", ".join(f"{option} {seq}" for option, seq in bounds if seq is not None)
    asked = f"the options ({given})" if given else "the options"
    first, last = tally.seqs
    there = f"{present} (the first that there are); seq is {first} to {last}"
    return f"no {what} fit {asked}. In {where}, {there}"

"""The command that exports published records to a Parquet or CSV file."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress, TaskProgressColumn

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import until_interrupted
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.selection import Selection
from fluxplain.schemas import OUTPUTS, Change, DeadLetter, Explanation, Record
from fluxplain.schemas.methods import METHODS, WATCHED
from fluxplain.schemas.wording import printable

if TYPE_CHECKING:
    from fluxplain.results.export_file import Tally

Values = Iterator[tuple[int, bytes | None]]

MAX_NAMES = 10
"""Most names of each kind in the error that no record matches."""

Several = list[str] | None


@cli.app.command(rich_help_panel=cli.LOOK)
def export(  # noqa: PLR0917  options of a command
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help=f"One of {', '.join(OUTPUTS)}.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE|DIR",
            help="File to write: .parquet, .csv, .csv.gz; or a folder, for a history.",
        ),
    ],
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    local: cli.Local = None,
    stream: Annotated[
        Several, typer.Option(metavar="TOPIC-PARTITION", help="Only of this stream; repeatable.")
    ] = None,
    feature: Annotated[
        Several,
        typer.Option(metavar="NAME", help="Only of this feature, group or pair; repeatable."),
    ] = None,
    method: Annotated[
        Several,
        typer.Option(
            metavar="METHOD",
            help=f"Only of this method: {', '.join(METHODS)} or, for changes, loss; repeatable.",
        ),
    ] = None,
    from_seq: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="Only from this seq on.")
    ] = None,
    to_seq: Annotated[
        int | None, typer.Option(metavar="SEQ", min=0, help="Only up to this seq, included.")
    ] = None,
) -> None:
    """Export a topic to a Parquet or CSV file, or append it to a history.

    Each result is written once. The documentation describes the columns under "Exported files".
    Without `--local`, the topic is read from its beginning to its current end. A folder gets
    Parquet files by day; the next export to it continues where the last one ended.
    """
    kind = OUTPUTS.get(topic)
    if kind is None:
        raise ConfigError(f"there is no topic {topic!r} to export: use one of {', '.join(OUTPUTS)}")
    if out.is_dir() or not out.suffix:
        part = local or stream or feature or method or from_seq is not None or to_seq is not None
        _append(topic, kind, out, config, is_part=bool(part))
        return
    cli.check_out(out, (".parquet", ".csv", ".csv.gz"))
    _check(kind, topic, feature, method)
    if from_seq is not None and to_seq is not None and to_seq < from_seq:
        raise ConfigError(f"--to-seq is {to_seq}, but must be at least --from-seq, {from_seq}")
    from fluxplain.results.export_file import export as write  # noqa: PLC0415  loads Arrow

    streams, features, methods = (frozenset(each or ()) for each in (stream, feature, method))
    choice = Selection(streams, features, methods, from_seq, to_seq)
    progress = cli.progress_bar(TaskProgressColumn())
    if local is None:
        values = _from_topic(cli.load_reader(config), topic, progress)
    else:
        values = _from_folder(local, topic, progress)
    with until_interrupted() as interruption, cli.writing(out), progress:
        tally = write(values, kind, out, choice)
    if interruption.by:
        raise typer.Exit(interruption.status)
    if not tally.written:
        raise ConfigError(_nothing(topic, local, tally, choice))
    _report(topic, out, tally.written, tally.unusable)


def _append(topic: str, kind: type[Record], out: Path, config: Path, *, is_part: bool) -> None:
    if kind is DeadLetter:
        raise ConfigError("dead-letters are exported to a file, not to a folder")
    if is_part:
        raise ConfigError(
            f"--out is the folder '{out}', which gets all that the topic holds: leave out --local, "
            "--stream, --feature, --method, --from-seq and --to-seq"
        )
    from fluxplain.cli.export_history import append_to_history  # noqa: PLC0415  loads Arrow

    settings, progress = cli.load_reader(config), cli.progress_bar(TaskProgressColumn())
    with until_interrupted() as interruption, cli.writing(out), progress:
        counts = append_to_history(settings, topic, kind, out, progress)
    if interruption.by:
        raise typer.Exit(interruption.status)
    _report(topic, out, *counts)


def _report(topic: str, out: Path, written: int, unusable: int) -> None:
    if unusable == 1:
        cli.say("Skipped 1 message that holds no such record")
    elif unusable:
        cli.say(f"Skipped {unusable:,} messages that hold no such records")
    cli.say(f"{out}: {written:,} {topic[:-1] if written == 1 else topic}")


def _check(kind: type[Record], topic: str, feature: Several, method: Several) -> None:
    for option, value in (("--feature", feature), ("--method", method)):
        if value and kind not in {Explanation, Change}:
            raise ConfigError(f"{option} is only for explanations and changes, not for {topic}")
    known: Sequence[str] = WATCHED if kind is Change else [*METHODS]
    if wrong := [each for each in method or () if each not in known]:
        raise ConfigError(f"--method is {wrong[0]!r}, but must be one of {', '.join(known)}")


def _from_topic(settings: Config, topic: str, progress: Progress) -> Values:
    with TopicReader(settings, [topic], from_beginning=True) as reader:
        extent = reader.extent()
        total = sum(map(len, extent.values()))
        for message in progress.track(reader.until(extent), total, description=topic):
            yield int(message.partition() or 0), message.value()


def _from_folder(folder: Path, topic: str, progress: Progress) -> Values:
    path = folder / f"{topic}.jsonl"
    if not folder.is_dir():
        raise ConfigError(f"--local is {str(folder)!r}, but there is no such folder")
    if not path.is_file():
        raise ConfigError(f"{folder} has no {path.name}, which `fluxplain local` writes")
    with progress.open(path, "rb", description=topic) as file:
        for line in file:
            yield 0, line


def _nothing(topic: str, local: Path | None, tally: "Tally", choice: Selection) -> str:
    """Explain why no file was written."""
    where = f"{local}/{topic}.jsonl" if local else f"the topic {topic}"
    if tally.inventory.seqs is None:
        return f"there is nothing to export: {where} holds no {topic}"
    present = "; ".join(
        f"{name} is {', '.join(map(printable, each))}"
        for name, each in tally.inventory.names(MAX_NAMES).items()
    )
    bounds = (("--from-seq", choice.first_seq), ("--to-seq", choice.last_seq))
    given = ", ".join(f"{option} {seq}" for option, seq in bounds if seq is not None)
    options = f"the options ({given})" if given else "the options"
    first, last = tally.inventory.seqs
    content = f"{present} (at most {MAX_NAMES} each); seq is {first} to {last}"
    return f"no {topic} match {options}. In {where}, {content}"

"""Commands that take observations from files: into Kafka, or through all stages at once."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

from pipeline.cli.common import DEFAULT_CONFIG, ConfigPath, app, console, load, ready, say, warn
from pipeline.config import Config
from pipeline.kafka.replay import ReplayOptions
from pipeline.kafka.replay import replay as replay_observations
from pipeline.outputs import OUTPUTS, LocalFiles
from pipeline.sources import Columns, Source, SourceError, open_source, with_label_delay
from schemas.late_label import LabelValue

SOURCE_HELP = (
    "A CSV file (.csv, .csv.gz) with a header, a Parquet file (.parquet), or a River data set: "
    "river:Phishing, river:Agrawal?classification_function=1"
)

PANEL = "Feed"

LabelColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a file with the label; by default label.column of the settings.",
    ),
]

IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="Column of a file with the observation's id, by which a later label finds it.",
    ),
]

TsColumn = Annotated[
    str | None,
    typer.Option("--ts", metavar="COLUMN", help="Column of a file with its time; passed through."),
]

LabelDelay = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Send each label N observations later, as a record of its own; label.wait at most.",
    ),
]


@app.command(rich_help_panel=PANEL)
def replay(  # noqa: PLR0917  options of a command
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    config: ConfigPath = DEFAULT_CONFIG,
    label: LabelColumn = None,
    id_: IdColumn = None,
    ts: TsColumn = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Records to send at most.")] = None,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Records a second.")] = None,
    max_lag: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most records on their way through the pipeline. By default as many as the "
            "embedded broker can hold; no limit on another.",
        ),
    ] = None,
    partition: Annotated[
        int, typer.Option(min=0, help="Partition of features: a source is one stream.")
    ] = 0,
    label_delay: LabelDelay = None,
) -> None:
    """Send recorded observations into the features topic, in order.

    The embedded broker keeps only the newest 5 MiB of a partition, so there this waits for the
    pipeline whenever too many records are on their way.
    """
    settings = ready(load(config))
    records = open_source(source, settings, Columns(label, id_, ts), limit=limit)
    _warn_without_label(source, settings, label)
    options = ReplayOptions(partition=partition, rate=rate, max_lag=max_lag)
    values = _with_delay(records, label_delay, settings.of_stream(partition))
    with _progress() as progress:
        # a label that comes later is a record of features, too, unless labels have a topic
        apart = label_delay is None or settings.label.topic
        total = records.total if apart or records.total is None else 2 * records.total
        task = progress.add_task(records.name, total=total, note="")

        patience = _Patience()
        sent = 0

        def report(now_sent: int, through: int) -> None:
            nonlocal sent
            sent = now_sent
            note = f"{sent - through:,} on their way" if sent > through else ""
            if patience.exhausted(through):
                note += ", waiting for the pipeline: does `fluxplain up` run?"
            progress.update(task, completed=sent, note=note)

        try:
            sent = replay_observations(settings, values, options, report=report)
        finally:
            # also when interrupted: a second try begins behind them
            progress.stop()
            console.print(f"Sent {sent:,} records.", highlight=False)


@app.command(rich_help_panel=PANEL)
def local(  # noqa: PLR0917  options of a command
    source: Annotated[str, typer.Argument(help=SOURCE_HELP)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")],
    config: ConfigPath = DEFAULT_CONFIG,
    label: LabelColumn = None,
    id_: IdColumn = None,
    ts: TsColumn = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Records to take at most.")] = None,
    partition: Annotated[
        int, typer.Option(min=0, help="As which stream: it may have settings of its own.")
    ] = 0,
    label_delay: LabelDelay = None,
) -> None:
    """Run the whole pipeline in this process, without Kafka, and write what it would publish.

    Writes predictions.jsonl, explanations.jsonl, changes.jsonl and dead-letters.jsonl.
    """
    settings = load(config)
    from pipeline.local import LocalPipeline  # noqa: PLC0415  loads much of River

    records = open_source(source, settings, Columns(label, id_, ts), limit=limit)
    _warn_without_label(source, settings, label)
    if records.total is None and limit is None and source.startswith("river:"):
        raise SourceError(f"{source} may have no end: give --limit")
    values = _with_delay(records, label_delay, settings.of_stream(partition))
    pipeline = LocalPipeline(settings, partition)
    if any((out / f"{topic}.jsonl").exists() for topic in OUTPUTS):
        say(f"What an earlier run wrote to {out} is replaced.")
    with _progress() as progress, LocalFiles(out) as files:
        task = progress.add_task(records.name, total=records.total, note="")
        for seq, each in enumerate(values):
            if isinstance(each, LabelValue):
                value = each.value
            else:
                value = each
                progress.update(task, advance=1)
            for record in pipeline.step(seq, value):
                files.write(record)
    for topic, count in files.counts.items():
        console.print(f"{out / topic}.jsonl: {count:,}", markup=False, highlight=False)
    if files.counts["changes"]:
        say(f"What changed: fluxplain explain-change --local {out}")
    if files.last_dead_letter:
        say(f"The last record that could not be used: {files.last_dead_letter.reason}")
        if not files.counts["predictions"]:
            raise SourceError(f"no record of {source} could be used")


class _Patience:
    """Notices that something has not moved for a while."""

    SECONDS = 20.0

    def __init__(self) -> None:
        self._last = -1
        self._since = time.monotonic()

    def exhausted(self, value: int) -> bool:
        if value != self._last:
            self._last, self._since = value, time.monotonic()
        return time.monotonic() - self._since > self.SECONDS


def _with_delay(
    records: Source, delay: int | None, settings: Config
) -> Iterable[bytes | LabelValue]:
    if delay is None:
        return records
    if delay > settings.label.wait:
        raise SourceError(
            f"--label-delay is {delay}, but label.wait is {settings.label.wait}: no observation "
            "waits so long for its label"
        )
    return with_label_delay(records, delay)


def _warn_without_label(source: str, settings: Config, label: str | None) -> None:
    if not source.startswith("river:") and label is None and settings.label.column is None:
        warn(
            "No column holds the label (--label, or label.column in the settings): the model will "
            "predict, but learn nothing, and only iPDP can be computed."
        )


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
    )

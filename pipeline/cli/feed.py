"""Commands that take observations from files: into Kafka, or through all stages at once."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
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

from fluxplain.cli.common import (
    DEFAULT_CONFIG,
    FEED,
    ConfigPath,
    app,
    console,
    load,
    ready,
    say,
    spread,
    warn,
)
from fluxplain.config import Config
from fluxplain.kafka.topics.replay import ReplayOptions
from fluxplain.kafka.topics.replay import replay as replay_observations
from fluxplain.results.local_files import LocalFiles
from fluxplain.schemas import OUTPUTS
from fluxplain.schemas.late_label import LabelValue
from fluxplain.sources import Columns, Source, SourceError, open_source, with_label_delay

PATIENCE_S = 20.0
"""Time without progress after which `replay` asks whether the pipeline runs."""


@dataclass(kw_only=True)
class Recorded:
    """Options of a command that reads recorded observations."""

    source: Annotated[
        str,
        typer.Argument(
            help="A CSV file (.csv, .csv.gz) with a header, a Parquet file (.parquet), or a River "
            "data set: river:Phishing, river:Agrawal?classification_function=1"
        ),
    ]
    config: ConfigPath = DEFAULT_CONFIG
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of a file with the label; by default label.column of the settings.",
        ),
    ] = None
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column of a file with the observation's id, by which a later label finds it.",
        ),
    ] = None
    ts: Annotated[
        str | None,
        typer.Option(
            "--ts", metavar="COLUMN", help="Column of a file with its time; passed through."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=0, help="Most records to read.")] = None
    partition: Annotated[
        int,
        typer.Option(
            min=0,
            help="Partition of features: a source is one stream, and may have settings of its own.",
        ),
    ] = 0
    label_delay: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Send each label N observations later, as a record of its own; label.wait at "
            "most.",
        ),
    ] = None

    def open(self, settings: Config) -> Source:
        """Return the source; warn if there is no label."""
        columns = Columns(self.label, self.id_, self.ts)
        source = open_source(self.source, settings, columns, limit=self.limit)
        column = self.label or settings.label.column
        if not self.source.startswith("river:") and column is None:
            warn(
                "No column holds the label (--label, or label.column in the settings): the model "
                "will predict, but learn nothing, and only iPDP can be computed."
            )
        return source

    def values(self, source: Source, settings: Config) -> Iterable[bytes | LabelValue]:
        """Return the observations, and labels that come later."""
        if self.label_delay is None:
            return source
        wait = settings.of_stream(self.partition).label.wait
        if self.label_delay > wait:
            raise SourceError(
                f"--label-delay is {self.label_delay}, but label.wait is {wait}: no observation "
                "waits so long for its label"
            )
        return with_label_delay(source, self.label_delay)


@app.command(rich_help_panel=FEED)
@spread
def replay(
    recorded: Recorded,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Records per second.")] = None,
    max_lag: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Most records on their way through the pipeline. By default as many as the "
            "embedded broker can hold; no limit on another.",
        ),
    ] = None,
) -> None:
    """Send recorded observations into the features topic, in order.

    The embedded broker keeps only the newest 5 MiB of a partition, so there this waits for the
    pipeline whenever too many records are on their way.
    """
    settings = ready(load(recorded.config))
    source = recorded.open(settings)
    values = recorded.values(source, settings)
    options = ReplayOptions(partition=recorded.partition, rate=rate, max_lag=max_lag)
    # a label that comes later is a record of features, too, unless labels have a topic
    apart = recorded.label_delay is None or settings.label.topic
    total = source.total if apart or source.total is None else 2 * source.total
    with _progress() as progress:
        display = _ReplayDisplay(progress, source.name, total)
        try:
            display.sent = replay_observations(settings, values, options, report=display.report)
        finally:
            # also when interrupted: a second try begins behind them
            progress.stop()
            console.print(f"Sent {display.sent:,} records.", highlight=False)


@app.command(rich_help_panel=FEED)
@spread
def local(
    recorded: Recorded,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")],
) -> None:
    """Run the whole pipeline in this process, without Kafka, and write what it would publish.

    Writes predictions.jsonl, explanations.jsonl, changes.jsonl and dead-letters.jsonl.
    """
    settings = load(recorded.config)
    from fluxplain.local import LocalPipeline  # noqa: PLC0415  loads much of River

    source = recorded.open(settings)
    if source.total is None and recorded.limit is None and source.name.startswith("river:"):
        raise SourceError(f"{source.name} may have no end: give --limit")
    values = recorded.values(source, settings)
    pipeline = LocalPipeline(settings, recorded.partition)
    if any((out / f"{topic}.jsonl").exists() for topic in OUTPUTS):
        say(f"What an earlier run wrote to {out} is replaced.")
    with _progress() as progress, LocalFiles(out) as files:
        task = progress.add_task(source.name, total=source.total, note="")
        for seq, each in enumerate(values):
            value = each.value if isinstance(each, LabelValue) else each
            progress.update(task, advance=1 if value is each else 0)
            for record in pipeline.step(seq, value):
                files.write(record)
    _say_results(out, files, source)


def _say_results(out: Path, files: LocalFiles, source: Source) -> None:
    for topic, count in files.counts.items():
        say(f"{out / topic}.jsonl: {count:,}")
    if files.counts["changes"]:
        say(f"What changed: fluxplain explain-change --local {out}")
    if files.last_dead_letter:
        say(f"The last record that could not be used: {files.last_dead_letter.reason}")
        if not files.counts["predictions"]:
            raise SourceError(f"no record of {source.name} could be used")


class _ReplayDisplay:
    """Shows how many records were sent, and whether the pipeline keeps up."""

    def __init__(self, progress: Progress, name: str, total: int | None) -> None:
        self.sent = 0
        self._progress = progress
        self._task = progress.add_task(name, total=total, note="")
        self._through = -1
        self._moved_at = time.monotonic()

    def report(self, sent: int, through: int) -> None:
        self.sent = sent
        if through != self._through:
            self._through, self._moved_at = through, time.monotonic()
        note = f"{sent - through:,} on their way" if sent > through else ""
        if time.monotonic() - self._moved_at > PATIENCE_S:
            note += ", waiting for the pipeline: does `fluxplain up` run?"
        self._progress.update(self._task, completed=sent, note=note)


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

"""Commands that read recorded observations: into Kafka, or through the pipeline in-process."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from fluxplain.cli import common as cli
from fluxplain.cli.local_summary import Summary
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.topics.replay import ReplayOptions
from fluxplain.kafka.topics.replay import replay as replay_observations
from fluxplain.results.published import LocalFiles
from fluxplain.schemas import OUTPUTS
from fluxplain.schemas.late_label import LabelValue
from fluxplain.schemas.wording import plural
from fluxplain.sources import Columns, Source, SourceError, open_source, with_label_delay

PATIENCE_S = 20.0
"""Seconds without progress after which `replay` asks whether the pipeline runs."""


@dataclass(kw_only=True)
class Recorded:
    """Options of a command that reads recorded observations."""

    source: Annotated[
        str,
        typer.Argument(
            help="A CSV file (.csv, .tsv, .txt) with a header, a Parquet file (.parquet), or a "
            "River data set: river:Phishing, river:Agrawal?classification_function=1"
        ),
    ]
    config: cli.ConfigPath = cli.DEFAULT_CONFIG
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the label in a file; by default label.column of the settings.",
        ),
    ] = None
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Column of the observation's id in a file; late labels refer to it.",
        ),
    ] = None
    ts: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the observation's time in a file; passed through."
        ),
    ] = None
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of records.")] = None
    partition: Annotated[
        int, typer.Option(min=0, help="Partition of features, whose stream the source becomes.")
    ] = 0
    label_delay: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Send each label N observations later, as its own record; at most label.wait.",
        ),
    ] = None

    def open(self, settings: Config) -> Source:
        """Return the source; warn if there is no label."""
        columns = Columns(self.label, self.id_, self.ts)
        source = open_source(self.source, settings, columns, limit=self.limit)
        column = self.label or settings.label.column
        if not self.source.startswith("river:") and column is None:
            cli.warn(
                "No column holds the label (--label, or label.column in the settings): the model "
                "will predict, but learn nothing, and only iPDP can be computed."
            )
        return source

    def values(self, source: Source, settings: Config) -> Iterable[bytes | LabelValue]:
        """Return the observations and late labels."""
        if self.label_delay is None:
            return source
        wait = settings.of_stream(self.partition).label.wait
        if self.label_delay > wait:
            raise SourceError(
                f"--label-delay is {self.label_delay}, but must be at most label.wait, {wait}: "
                "observations wait no longer for their labels"
            )
        return with_label_delay(source, self.label_delay)


@cli.app.command(rich_help_panel=cli.FEED)
@cli.dataclass_options
def replay(
    recorded: Recorded,
    rate: Annotated[float | None, typer.Option(min=0.001, help="Records per second.")] = None,
    max_lag: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Maximum number of records that the pipeline may lag behind. By default what the "
            "embedded broker can hold, and no limit on other brokers.",
        ),
    ] = None,
) -> None:
    """Send recorded observations to Kafka.

    They go to the topic `features`, in order. The embedded broker keeps only the newest 5 MiB of a
    partition. With it, this command waits for the pipeline whenever the lag is too large.
    """
    settings = cli.ready(cli.load(recorded.config))
    source = recorded.open(settings)
    values = recorded.values(source, settings)
    options = ReplayOptions(partition=recorded.partition, rate=rate, max_lag=max_lag)
    # late labels are records of features too, unless they have their own topic
    single = recorded.label_delay is None or settings.label.topic
    total = source.total if single or source.total is None else 2 * source.total
    note = TextColumn("{task.fields[note]}", markup=False)
    with cli.progress_bar(MofNCompleteColumn(), note) as progress:
        display = _ReplayDisplay(progress, source.name, total)
        try:
            display.sent = replay_observations(settings, values, options, report=display.report)
        finally:
            # also after an interruption, so that a second run can skip these records
            progress.stop()
            cli.console.print(f"Sent {plural(display.sent, 'record')}.", highlight=False)


@cli.app.command(rich_help_panel=cli.FEED)
@cli.dataclass_options
def local(
    recorded: Recorded,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")],
) -> None:
    """Run the whole pipeline without Kafka.

    It runs in this process and writes the same results to files: predictions.jsonl,
    reasons.jsonl, explanations.jsonl, changes.jsonl and dead-letters.jsonl.
    """
    settings = cli.load(recorded.config)
    from fluxplain.local import LocalPipeline  # noqa: PLC0415  loads much of River

    source = recorded.open(settings)
    if source.total is None and recorded.limit is None and source.name.startswith("river:"):
        raise SourceError(f"{source.name} may be endless: give --limit")
    values = recorded.values(source, settings)
    pipeline = LocalPipeline(settings, recorded.partition)
    summary = Summary(settings.of_stream(recorded.partition))
    with results_in(out) as files, cli.progress_bar(MofNCompleteColumn()) as progress:
        task = progress.add_task(source.name, total=source.total)
        for seq, each in enumerate(values):
            value = each.value if isinstance(each, LabelValue) else each
            progress.update(task, advance=1 if value is each else 0)
            for record in pipeline.step(seq, value):
                files.write(record)
                summary.take(record)
    for topic, count in files.counts.items():
        cli.say(f"{out / topic}.jsonl: {count:,}")
    if files.counts["changes"]:
        cli.say(f"See what changed: fluxplain explain-change --local {out}")
    summary.say(files, source.name)


def results_in(out: Path) -> LocalFiles:
    """Return the files for results in a folder; say so if they replace those of an earlier run."""
    is_used = any((out / f"{topic}.jsonl").exists() for topic in OUTPUTS)
    try:
        files = LocalFiles(out)
    except OSError as error:
        raise ConfigError(
            f"--out is '{out}', but no results can be written there ({error.strerror}): name a "
            "folder that you may write to"
        ) from None
    if is_used:
        cli.say(f"Replacing the results of an earlier run in {out}.")
    return files


class _ReplayDisplay:
    """Shows the number of records sent and the pipeline's lag."""

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
        note = f"lag {sent - through:,}" if sent > through else ""
        if time.monotonic() - self._moved_at > PATIENCE_S:
            note += ", waiting for the pipeline: is `fluxplain up` running?"
        self._progress.update(self._task, completed=sent, note=note)

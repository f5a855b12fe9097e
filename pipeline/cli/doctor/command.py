"""``fluxplain doctor``: everything that can be wrong in one list, and what it will cost."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TextColumn

from fluxplain.cli import common as cli
from fluxplain.cli.doctor.findings import Check, Finding, examine, ok, show
from fluxplain.cli.doctor.sample_sizes import LEAST_MEASURED
from fluxplain.config import Config, ConfigError
from fluxplain.schemas.wording import plural
from fluxplain.sources import Columns, Source, open_source


@cli.app.command(rich_help_panel=cli.PREPARE)
def doctor(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Measure on these observations what the pipeline will cost: a CSV or Parquet file "
            "or a River data set, as for `fluxplain local`.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the label in FILE; by default label.column."
        ),
    ] = None,
    records: Annotated[
        int | None,
        typer.Option(
            min=LEAST_MEASURED,
            help="Use this many observations of FILE, however long it takes; by default those of "
            "about 25 seconds.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(min=0.001, help="Expected records per second; prints what they need."),
    ] = None,
) -> None:
    """Check everything that can be wrong, and say what to do.

    The list covers settings, model, disk, ports, broker, topics, rights, clock, registered
    settings, checkpoints and lag. The model predicts and learns some
    made-up observations, is pickled, and must give the same results again, also in another process.
    Nothing is written to the broker.

    With `--measure FILE` the first observations go through all roles in this process, which takes
    about half a minute. The command then estimates how many records a second one partition can
    take, what share of that is explaining, memory, disk, and what your rate needs.

    The exit status is 1 if there is a problem, or else 0.
    """
    for option, value in {"--label": label, "--records": records, "--rate": rate}.items():
        if value is not None and measure is None:
            raise ConfigError(f"{option} is {value}, which needs --measure FILE")
    if rate is not None and not math.isfinite(rate):
        raise ConfigError(f"--rate is {rate}, but must be a number of records a second")
    counts: Counter[str] = Counter()
    settings: list[Config] = []
    source: list[Source] = []

    def load() -> list[Finding]:
        settings.append(cli.load(config, "reader"))
        return [ok(f"settings: {config} is valid")]

    def open_file() -> list[Finding]:
        found = open_source(str(measure), settings[0], Columns(label), limit=records)
        source.append(found)
        return []

    def take(*checks: Check) -> None:
        for finding in examine(checks):
            counts[finding.state] += 1
            show(finding)

    take(load)
    if settings:
        if measure is not None:
            take(open_file)
        before = counts["problem"]
        take(_of_model(settings[0], config, source[0] if source else None))
        is_usable = counts["problem"] == before
        take(*_others(settings[0]))
        if source and is_usable:
            take(partial(_measure, settings[0], source[0], rate, is_timed=records is None))
    listed = [plural(counts[state], state) for state in ("problem", "warning")]
    cli.say(f"\n{', '.join(listed)}, {counts['ok']} ok")
    if counts["problem"]:
        raise typer.Exit(1)


def _of_model(settings: Config, path: Path, source: Source | None) -> Check:
    # loads River and the compiler, which other commands do not need
    from fluxplain.cli.doctor.model_findings import RECORDS, model_findings  # noqa: PLC0415

    def check() -> Iterator[Finding]:
        yield from model_findings(settings, path, [*islice(source or (), RECORDS)])

    return check


def _others(settings: Config) -> list[Check]:
    # loads librdkafka
    from fluxplain.cli.doctor import broker_findings, machine_findings  # noqa: PLC0415

    checks = (
        machine_findings.checkpoint_findings,
        machine_findings.port_findings,
        broker_findings.broker_findings,
    )
    return [partial(check, settings) for check in checks]


def _measure(
    settings: Config, source: Source, rate: float | None, *, is_timed: bool
) -> list[Finding]:
    from fluxplain.agents import make_stage  # noqa: PLC0415  loads Faust
    from fluxplain.cli.doctor.estimate import Estimate  # noqa: PLC0415
    from fluxplain.cli.doctor.estimate_report import show_estimate  # noqa: PLC0415
    from fluxplain.cli.doctor.machine_findings import disk_finding  # noqa: PLC0415
    from fluxplain.cli.doctor.measure import measure as measured_by  # noqa: PLC0415

    note = TextColumn("{task.fields[records]:,} observations")
    with cli.progress_bar(note) as progress:
        task = progress.add_task(source.name, total=None, records=0)

        def report(what: str, records: int) -> None:
            progress.update(task, description=what, records=records)

        measured = measured_by(settings, source, make_stage, is_timed=is_timed, report=report)
    show_estimate(settings, measured, rate)
    found = []
    if measured.letters:
        what = f"the measurement gave {plural(measured.letters, 'dead letter')}"
        remedy = "The estimate counts them, too, and they cost less than what is explained"
        found = [Finding("warning", f"{what}, the last one: {measured.last_reason}", remedy)]
    if settings.checkpoint.store == "topic":
        return found
    needed = Estimate(settings, measured).checkpoint_bytes
    return [*found, disk_finding(settings.checkpoint.directory.absolute(), needed)]

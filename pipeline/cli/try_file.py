"""``fluxplain try``: explains a file at once, without settings and without Kafka."""

import shlex
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.live import Live
from rich.progress import MofNCompleteColumn

from fluxplain.cli import common as cli
from fluxplain.cli.feed import results_in
from fluxplain.cli.init import say_proposal, settings_of
from fluxplain.cli.init_roles import Roles
from fluxplain.cli.interruption import until_interrupted
from fluxplain.cli.local_summary import Summary
from fluxplain.config import Config, load_config
from fluxplain.monitor.terminal.watch import WatchView
from fluxplain.results.store import Store
from fluxplain.schemas import Record
from fluxplain.sources import Columns, Source, open_source
from fluxplain.sources.first_rows import sample_of

UPDATE_S = 0.25
"""Seconds between two updates of the terminal."""


@cli.app.command("try", rich_help_panel=cli.FEED)
@cli.dataclass_options
def try_file(
    roles: Roles,
    source: Annotated[
        str,
        typer.Argument(help="A CSV file (.csv, .tsv, .txt) with a header, or a Parquet file."),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")] = Path(
        "results"
    ),
    limit: Annotated[int | None, typer.Option(min=1, help="Maximum number of records.")] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Serve the dashboard, also at the end, until Ctrl-C.")
    ] = False,
) -> None:
    """Explain a file at once.

    No settings and no Kafka are needed: the first rows tell the features, as for `fluxplain init`.
    A model learns the file record by record. The screen shows what the model relies on, and what
    changed. The results are written to files as by `fluxplain local`.
    """
    proposal = roles.proposal(sample_of(source))
    say_proposal(proposal)
    with tempfile.TemporaryDirectory(prefix="fluxplain-try-") as folder:
        path = Path(folder) / "fluxplain.toml"
        path.write_text(settings_of(proposal, roles.model), encoding="utf-8")
        config = load_config(path)
    values = open_source(source, config, Columns(None, proposal.id, proposal.ts), limit=limit)
    store = Store(config.topic(config.source))
    with until_interrupted() as interruption, _page(config, store) if stay else nullcontext():
        counts = _run(config, values, store, out)
        cli.console.print(WatchView(store, title=f"fluxplain try {source}"))
        if counts["changes"]:
            cli.say(f"\nExplain one: fluxplain explain-change ID --local {shlex.quote(str(out))}")
        if stay:
            cli.say("The dashboard keeps running until Ctrl-C.")
        while stay:
            time.sleep(0.5)
    if interruption.by and not stay:
        cli.say(f"Interrupted: {out} holds the results so far")
        raise typer.Exit(interruption.status)


def _run(config: Config, source: Source, store: Store, out: Path) -> dict[str, int]:
    """Run the pipeline and show it; return how many records of each kind it gave.

    Raises SourceError if no observation could be used.
    """
    from fluxplain.local import LocalPipeline  # noqa: PLC0415  loads much of River

    pipeline, summary, shown = LocalPipeline(config), Summary(config), time.monotonic()
    live = Live(console=cli.console, auto_refresh=False, transient=True)
    progress = cli.progress_bar(MofNCompleteColumn())
    task = progress.add_task(source.name, total=source.total)
    with results_in(out) as files, live if cli.console.is_terminal else progress:
        for seq, value in enumerate(source):
            for record in pipeline.step(seq, value):
                files.write(record)
                summary.take(record)
                _keep(record, store)
            progress.update(task, advance=1)
            if time.monotonic() - shown > UPDATE_S and live.is_started:
                shown = time.monotonic()
                live.update(WatchView(store, title=f"fluxplain try {source.name}"), refresh=True)
    summary.say(files, source.name)
    return files.counts


def _keep(record: Record, store: Store) -> None:
    with store.lock:
        store.add(record, now=time.monotonic())


@contextmanager
def _page(config: Config, store: Store) -> Iterator[None]:
    """Serve the dashboard of a store meanwhile."""
    from fluxplain.monitor.dashboard.server import serving  # noqa: PLC0415  loads the web server

    store.status.is_loaded = True
    with serving(config, store) as address:
        cli.say(f"Dashboard: {address}")
        yield

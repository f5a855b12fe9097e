"""Commands that show live what is published: watch, streams, dashboard."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from confluent_kafka import Message
from rich.live import Live

from fluxplain.cli.common import (
    DEFAULT_CONFIG,
    LOOK,
    ConfigPath,
    app,
    console,
    load,
    load_reader,
    partition_of,
    ready,
    say,
    status_for_supervisor,
)
from fluxplain.cli.interruption import ended_by_ctrl_c, until_interrupted
from fluxplain.cli.supervisor import end_with_supervisor
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.topics.lag import LagMonitor
from fluxplain.kafka.topics.reader import TopicReader
from fluxplain.monitor.terminal.all_streams import StreamsView, Watched
from fluxplain.monitor.terminal.watch import WatchView
from fluxplain.results.live_feed import Feed
from fluxplain.results.selection import Alphas
from fluxplain.results.store import Store
from fluxplain.schemas import OUTPUTS, BadRecordError, DeadLetter
from fluxplain.schemas.methods import Method

NICENESS = 5
"""Priority of the dashboard: on a busy machine the pipeline goes first."""

UPDATE_S = 0.5


@app.command(rich_help_panel=LOOK)
def dashboard(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Serve a page that shows live what the model relies on, and what changed.

    The address is printed; `dashboard.host` and `dashboard.port` of the settings name it.
    `fluxplain up` serves the same page. It reads the topics as any consumer, so it may be started
    late, stopped, or run on another machine, and the pipeline does not notice.
    """
    with ended_by_ctrl_c():
        from fluxplain.monitor.dashboard.server import run  # noqa: PLC0415  loads the web server
    settings = load(config, "reader")
    end_with_supervisor()
    os.nice(NICENESS)
    with status_for_supervisor():
        asyncio.run(run(ready(settings), say))


@app.command(rich_help_panel=LOOK)
def watch(
    config: ConfigPath = DEFAULT_CONFIG,
    stream: Annotated[
        str | None,
        typer.Option(metavar="TOPIC-PARTITION", help="Which stream; by default one with news."),
    ] = None,
    method: Annotated[Method | None, typer.Option(help="Which method; by default all.")] = None,
    feature: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Whose band to draw; by default the most important."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Which smoothing rate; by default the first of the settings."),
    ] = None,
) -> None:
    """Show live what the model relies on, its trend, the loss, the lag and the latest changes.

    Each importance has its standard error and its trend; more columns lengthen the trends. Below,
    one importance is drawn with a band of two standard errors; a wide terminal shows several, a low
    one none. `fluxplain explain-change ID` explains a change, `fluxplain streams` shows all.
    """
    settings = load(config, "reader")
    _check_shown(settings, stream, {"method": method, "feature": feature, "alpha": alpha})
    settings = resolve(settings)
    alphas = Alphas.configured(settings) if alpha is None else Alphas.only(alpha)
    store = Store()
    with (
        until_interrupted(),
        TopicReader(settings, list(OUTPUTS), from_beginning=True) as reader,
        LagMonitor(settings) as lag,
        Live(console=console, auto_refresh=False, screen=console.is_terminal) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now = time.monotonic()
            for message in messages:
                _add(store, stream, reader.name(message), message, now)
            view = WatchView(
                store,
                stream=stream,
                method=method,
                feature=feature,
                alphas=alphas.of(stream or store.current),
                lags=lag.latest,
                now=now,
            )
            live.update(view, refresh=True)


@app.command(rich_help_panel=LOOK)
def streams(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help=f"Settings, by default {DEFAULT_CONFIG}; once for each of several pipelines.",
        ),
    ] = None,
) -> None:
    """Show all streams side by side, live.

    The one with the latest change is the first. `fluxplain watch --stream` shows more of one. Like
    the dashboard, this reads the newest 200,000 messages of each partition, and shows the first 64
    streams of a pipeline.
    """
    settings = [load_reader(each) for each in config or [DEFAULT_CONFIG]]
    failed = Event()
    watched = [
        Watched(each.topics.prefix, Store(each.topic(each.source)), Alphas.configured(each))
        for each in settings
    ]
    feeds = [
        Feed(each, pipeline.store, failed.set)
        for each, pipeline in zip(settings, watched, strict=True)
    ]
    with until_interrupted(), ExitStack() as stack:
        for feed in feeds:
            feed.start()
            stack.callback(feed.stop)
        live = stack.enter_context(
            Live(console=console, auto_refresh=False, screen=console.is_terminal)
        )
        while not failed.wait(UPDATE_S):
            live.update(StreamsView(watched, time.monotonic()), refresh=True)
    for feed in feeds:
        if feed.error is not None:
            raise feed.error


def _check_shown(
    settings: Config, stream: str | None, shown: Mapping[str, str | float | None]
) -> None:
    """Raise ConfigError if an option names what is never published."""
    if stream is None:
        shared = [settings, *settings.own_streams.values()]
    else:
        shared = [settings.of_stream(partition_of(settings, stream))]
    published: Mapping[str, list[Sequence[str | float]]] = {
        "method": [each.explain.methods for each in shared],
        "feature": [each.explained for each in shared],
        "alpha": [each.explain.alphas for each in shared],
    }
    for option, value in shown.items():
        known = list(dict.fromkeys(chain.from_iterable(published[option])))
        if value is not None and value not in known:
            listed = ", ".join(map(str, known))
            raise ConfigError(f"--{option} is {value}, but the settings have {listed}")


def _add(store: Store, stream: str | None, name: str, message: Message, now: float) -> None:
    # foreign records in our topics are no reason to stop
    with suppress(BadRecordError):
        record = OUTPUTS[name].decode(message.value())
        # records of streams that nobody asked for would take much memory
        if stream in {None, getattr(record, "stream", None)} or isinstance(record, DeadLetter):
            store.add(record, message.partition() or 0, now)

"""Commands that show results live: watch, streams, dashboard."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated

import typer
from confluent_kafka import Message
from rich.live import Live

from fluxplain.cli import common as cli
from fluxplain.cli.interruption import importing, until_interrupted
from fluxplain.cli.supervisor import end_with_supervisor
from fluxplain.config import Config, ConfigError
from fluxplain.kafka.embedded import resolve
from fluxplain.kafka.topics.progress import LagMonitor
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.monitor.terminal.all_streams import PipelineResults, StreamsView
from fluxplain.monitor.terminal.watch import WatchView
from fluxplain.results.feature_names import FeatureNames
from fluxplain.results.headline import Limits
from fluxplain.results.live_feed import Feed, role_statuses
from fluxplain.results.store import Store
from fluxplain.results.stream_results import Alphas
from fluxplain.schemas import SHOWN, BadRecordError, Change, DeadLetter, Note
from fluxplain.schemas.methods import Method

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

NICENESS = 5
"""Increment of the dashboard's nice value: on a busy machine the pipeline goes first."""

UPDATE_S = 0.5
"""Seconds between two updates of the terminal."""


@cli.app.command(rich_help_panel=cli.LOOK)
def dashboard(config: cli.ConfigPath = cli.DEFAULT_CONFIG) -> None:
    """Serve the live web page.

    The page shows importances, effects and changes of all streams. The command prints its address,
    which `dashboard.host` and `dashboard.port` set.

    `fluxplain up` serves the same page. The dashboard reads topics, and writes only what people
    note on it, if they may (`dashboard.write`): it can start late, stop, or run on another machine
    without affecting the pipeline.

    With `dashboard.metrics_port` it also exports the lag of all consumer groups to Prometheus.
    """
    with importing():
        from fluxplain.monitor.dashboard.server import run  # noqa: PLC0415  loads the web server
    end_with_supervisor()
    os.nice(NICENESS)
    with cli.status_for_supervisor(), ExitStack() as stack:
        settings = cli.ready(cli.load(config, "reader"))
        asyncio.run(run(settings, cli.say, _backlog_metrics(settings, stack)))


def _backlog_metrics(config: Config, stack: ExitStack) -> "CollectorRegistry | None":
    """Return the metrics of all groups, which a thread keeps current; None if none are wanted."""
    if config.dashboard.metrics_port is None:
        return None
    # other commands of this module need neither HTTP nor metrics
    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    from fluxplain.alerts.forward import GROUP as ALERTS  # noqa: PLC0415
    from fluxplain.kafka.metrics.group_metrics import BacklogCollector  # noqa: PLC0415
    from fluxplain.kafka.topics.backlogs import BacklogMonitor  # noqa: PLC0415

    monitor = stack.enter_context(BacklogMonitor(config, {ALERTS: (Change.TOPIC,)}))
    registry = CollectorRegistry()
    registry.register(BacklogCollector(monitor.latest, monitor.answers))
    return registry


@cli.app.command(rich_help_panel=cli.LOOK)
def watch(
    config: cli.ConfigPath = cli.DEFAULT_CONFIG,
    stream: cli.OneStream = None,
    method: Annotated[Method | None, typer.Option(help="The method; by default all.")] = None,
    feature: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The feature to plot with its band; by default the most important."
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="The smoothing rate; by default the first of the settings."),
    ] = None,
) -> None:
    """Watch one stream in the terminal.

    The screen shows importances, their trends, the loss, the lag and the latest changes. Each
    importance has its standard error; a wider terminal shows longer trends. Below, one importance
    is plotted with a band of two standard errors. A wide terminal plots several; one with few lines
    plots none.

    To explain a change, run `fluxplain explain-change ID`. To see all streams, run `fluxplain
    streams`.
    """
    settings = cli.load(config, "reader")
    _check_shown(settings, stream, {"method": method, "feature": feature, "alpha": alpha})
    settings = resolve(settings)
    alphas = Alphas.configured(settings) if alpha is None else Alphas.only(alpha)
    store, limits, names = (
        Store(),
        Limits.configured(settings),
        FeatureNames.configured(settings),
    )
    store.status.has_roles = True
    with (
        until_interrupted(),
        # all messages, with their number: results of the past must not count as live ones
        TopicReader(settings, list(SHOWN), from_beginning=True, newest=sys.maxsize) as reader,
        LagMonitor(settings) as lag,
        Live(console=cli.console, auto_refresh=False, screen=cli.console.is_terminal) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now, status = time.monotonic(), store.status
            status.to_read = max(status.to_read, reader.backlog)
            status.read = status.to_read - reader.backlog
            arrived = now if status.is_loaded else None
            for message in messages:
                _add(store, stream, names, reader.name(message), message, arrived)
            status.is_loaded = status.is_loaded or not reader.backlog
            store.status.roles = role_statuses(settings, lag.latest)
            store.status.trouble = reader.trouble or lag.trouble
            view = WatchView(
                store,
                stream=stream,
                method=method,
                feature=feature and names.of(feature),
                alphas=alphas.of(stream or store.current),
                limits=limits,
                now=now,
            )
            live.update(view, refresh=True)


@cli.app.command(rich_help_panel=cli.LOOK)
def streams(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            "-c",
            metavar="FILE",
            help=f"Settings file, by default {cli.DEFAULT_CONFIG}; repeat it for several "
            "pipelines.",
        ),
    ] = None,
) -> None:
    """Watch all streams in the terminal.

    The stream with the latest change comes first. `fluxplain watch --stream` shows one of them in
    detail. Like the dashboard, this command reads the newest 200,000 messages of each partition and
    shows the first 64 streams of a pipeline.
    """
    settings = [cli.load_reader(each) for each in config or [cli.DEFAULT_CONFIG]]
    failed = Event()
    watched = [
        PipelineResults(each.topics.prefix, Store(each.topic(each.source)), Alphas.configured(each))
        for each in settings
    ]
    feeds = [
        Feed(each, pipeline.store, failed.set, FeatureNames.configured(each))
        for each, pipeline in zip(settings, watched, strict=True)
    ]
    with until_interrupted(), ExitStack() as stack:
        for feed in feeds:
            feed.start()
            stack.callback(feed.stop)
        live = stack.enter_context(
            Live(console=cli.console, auto_refresh=False, screen=cli.console.is_terminal)
        )
        while not failed.wait(UPDATE_S):
            live.update(StreamsView(watched, time.monotonic()), refresh=True)
    for feed in feeds:
        if feed.error is not None:
            raise feed.error


def _check_shown(
    settings: Config, stream: str | None, shown: Mapping[str, str | float | None]
) -> None:
    """Raise ConfigError if an option selects something that is never published."""
    if stream is None:
        shared = [settings, *settings.own_streams.values()]
    else:
        shared = [settings.of_stream(cli.partition_of(settings, stream))]
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


def _add(  # noqa: PLR0917
    store: Store,
    stream: str | None,
    names: FeatureNames,
    topic: str,
    message: Message,
    now: float | None,
) -> None:
    # skip foreign records in our topics
    with suppress(BadRecordError):
        record = SHOWN[topic].decode(message.value())
        # records of other streams would take much memory
        if stream in {None, getattr(record, "stream", None)} or isinstance(
            record, DeadLetter | Note
        ):
            at = max(message.timestamp()[1], 0)
            store.add(names.record(record), message.partition() or 0, now, at=at)

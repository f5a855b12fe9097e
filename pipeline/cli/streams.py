"""The command that shows all streams."""

import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import Annotated

import typer
from rich.live import Live

from pipeline.cli.common import DEFAULT_CONFIG, app, console, load
from pipeline.config import Config
from pipeline.interruption import until_interrupted
from pipeline.kafka.embedded import resolve
from pipeline.monitor.dashboard.choice import Chooser
from pipeline.monitor.dashboard.feed import Feed
from pipeline.monitor.dashboard.overview import overview
from pipeline.monitor.dashboard.state import State
from pipeline.monitor.streams import PipelineRows, StreamsView

PANEL = "Look"

UPDATE_S = 0.5


@app.command(rich_help_panel=PANEL)
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

    The one with the newest change is the first. `fluxplain watch --stream` shows more of one. Like
    the dashboard, this reads the newest 200,000 messages of each partition, and shows the first 64
    streams of a pipeline.
    """
    settings = [resolve(load(each, "reader")) for each in config or [DEFAULT_CONFIG]]
    failed = Event()
    watched = [_Pipeline(each, failed) for each in settings]
    with until_interrupted(), ExitStack() as stack:
        for each in watched:
            each.feed.start()
            stack.callback(each.feed.stop)
        live = stack.enter_context(
            Live(console=console, auto_refresh=False, screen=console.is_terminal)
        )
        while not failed.wait(UPDATE_S):
            live.update(StreamsView([each.rows() for each in watched]), refresh=True)
    for each in watched:
        if each.feed.error is not None:
            raise each.feed.error


class _Pipeline:
    """One pipeline, read in a thread of its own."""

    def __init__(self, config: Config, failed: Event) -> None:
        self._prefix = config.topics.prefix
        self._chooser = Chooser(config)
        self._state = State(config.topic(config.source))
        self.feed = Feed(config, self._state, failed.set)

    def rows(self) -> PipelineRows:
        state = self._state
        with state.lock:
            return PipelineRows(
                self._prefix,
                overview(state, self._chooser, None, time.monotonic()),
                state.operations,
                state.letters.count,
                state.has_more_streams,
            )

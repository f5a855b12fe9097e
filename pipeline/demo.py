"""The demonstration: the whole pipeline on the embedded broker, while its stream drifts."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.live import Live

from pipeline.config import ENV_PREFIX, Config, load_config
from pipeline.kafka.embedded import EmbeddedBroker, workers_environment
from pipeline.kafka.progress import PipelineProgress
from pipeline.kafka.reader import TopicReader
from pipeline.kafka.replay import ReplayOptions, replay
from pipeline.kafka.topics import create_topics
from pipeline.monitor.history import History
from pipeline.monitor.plots import plot_importances
from pipeline.monitor.summary import Summary, render_summary, summarize
from pipeline.monitor.watch import WatchView
from pipeline.outputs import OUTPUTS
from pipeline.sources import open_source
from pipeline.supervisor import Supervisor, command_of

DEMO_CONFIG = Path(__file__).with_name("demo.toml")

CONCEPTS = (1, 2)
"""River's Agrawal concepts before and after the drift: 1 rests on age and salary, 2 on age and
education level too."""

PROGRESS_S = 5.0
"""Between two lines of progress, where there is no terminal to draw on."""


@dataclass(slots=True)
class _Feed:
    """What became of the thread that replays the stream."""

    error: Exception | None = None


def run_demo(out: Path, records: int, console: Console, *, stay: bool = False) -> Summary:
    """Run the demonstration and return what it found.

    Parameters
    ----------
    out
        Folder for the picture and the workers' log.
    records
        Observations to replay; the concept changes after half of them.
    console
        Where to show it.
    stay
        Keep everything running at the end, until it is interrupted, for the dashboard.
    """
    out.mkdir(parents=True, exist_ok=True)
    drift_seq = records // 2
    history = History(drift_seq=drift_seq)
    log_path = out / "workers.log"
    with (
        tempfile.TemporaryDirectory(prefix="fluxplain-demo-") as state,
        EmbeddedBroker() as broker,
        log_path.open("wb") as log,
    ):
        config = load_config(DEMO_CONFIG).on_broker(broker.bootstrap_servers)
        create_topics(config)
        console.print(
            f"Embedded broker at {broker.bootstrap_servers}; the workers log to {log_path}"
        )
        port = _free_port(config.dashboard.port)
        environment = {
            **workers_environment(broker, Path(state)),
            f"{ENV_PREFIX}DASHBOARD__PORT": str(port),
        }
        with Supervisor(
            DEMO_CONFIG, environment=environment, stderr=log, tell=console.print
        ) as workers:
            workers.start()
            workers.add_beside("dashboard", command_of("dashboard", config_path=DEMO_CONFIG))
            page = _Page(port, console)
            _show(config, records, history, workers, console, page)
            summary = _tell(config, history, drift_seq, out / "importances.png", console)
            if stay:
                _stay(workers, console)
    return summary


def _tell(
    config: Config, history: History, drift_seq: int, picture: Path, console: Console
) -> Summary:
    summary = summarize(history, drift_seq)
    plot_importances(history, picture, drift_seq=drift_seq, title="What the model relies on")
    loss_watched = config.drift.of("loss") is not None
    console.print(render_summary(summary, loss_watched=loss_watched))
    console.print(f"Picture: {picture}", style="bold")
    return summary


def _stay(workers: Supervisor, console: Console) -> NoReturn:
    console.print("The dashboard stays until Ctrl-C.", style="bold")
    while True:
        workers.check()
        time.sleep(0.5)


class _Page:
    """Tells the dashboard's address as soon as a browser would find it."""

    def __init__(self, port: int, console: Console) -> None:
        self._port = port
        self._console = console
        self._told = False

    def tell_once_it_is_there(self) -> None:
        if self._told:
            return
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=0.2):
            self._told = True
            self._console.print(f"Dashboard: http://127.0.0.1:{self._port}", style="bold")


def _free_port(wanted: int) -> int:
    """Return the port if nobody has it, else another one."""
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("this machine has no free port")


def _show(  # noqa: PLR0917
    config: Config,
    records: int,
    history: History,
    workers: Supervisor,
    console: Console,
    page: "_Page",
) -> None:
    stop = threading.Event()
    feed = _Feed()
    thread = threading.Thread(target=_feed, args=(config, records, feed, stop), name="replay")
    thread.start()
    progress = PipelineProgress(config, partition=0)
    told = asked = time.monotonic()
    try:
        with (
            TopicReader(config, list(OUTPUTS), from_beginning=True) as reader,
            Live(console=console, auto_refresh=False, transient=True) as live,
        ):
            while True:
                messages = reader.poll(0.25)
                now = time.monotonic()
                for message in messages:
                    record = OUTPUTS[reader.name(message)].decode(message.value())
                    history.add(record, now)
                if feed.error:
                    raise feed.error
                if console.is_terminal:
                    view = WatchView(history, title="fluxplain demo", now=now)
                    live.update(view, refresh=True)
                elif now - told >= PROGRESS_S:
                    told = now
                    console.print(f"{_predictions(history):,} of {records:,} records")
                if now - asked >= 1.0:
                    asked = now
                    workers.check()
                    page.tell_once_it_is_there()
                    if not messages and progress.update() >= records:
                        return
    finally:
        stop.set()
        thread.join()
        progress.close()


def _predictions(history: History) -> int:
    return sum(stream.predictions for stream in history.streams.values()) + history.dead_letters


def _feed(config: Config, records: int, feed: _Feed, stop: threading.Event) -> None:
    try:
        replay(config, _observations(config, records), ReplayOptions(), stop=stop)
    except Exception as error:
        feed.error = error


def _observations(config: Config, records: int) -> Iterator[bytes]:
    first = records // 2
    halves = [
        open_source(
            f"river:Agrawal?classification_function={concept}&seed={config.seed + i}",
            config,
            limit=n,
        )
        for i, (concept, n) in enumerate(zip(CONCEPTS, (first, records - first), strict=True))
    ]
    return chain.from_iterable(halves)

"""The demonstration: the whole pipeline on the embedded broker, with a drifting stream."""

import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.live import Live

from fluxplain.cli.supervisor import Supervisor, command_of
from fluxplain.config import ENV_PREFIX, Config, load_config
from fluxplain.kafka.embedded import EmbeddedBroker, workers_environment
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.progress import PipelineProgress
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.monitor.figures import importance_figure, save
from fluxplain.monitor.terminal.drift_summary import render_summary, summarize
from fluxplain.monitor.terminal.watch import WatchView
from fluxplain.results.store import Store
from fluxplain.schemas import OUTPUTS
from fluxplain.sources import open_source

DEMO_CONFIG = Path(__file__).with_name("demo.toml")

CONCEPTS = (1, 2)
"""River's Agrawal concepts before and after the drift: 1 depends on age and salary, 2 also on the
education level."""

RATE = 200
"""Records per second, so that one can watch the importances move."""

PROGRESS_S = 5.0
"""Seconds between two lines of progress if the output is no terminal."""


def run_demo(out: Path, records: int, console: Console, *, stay: bool) -> None:
    """Run the demonstration.

    The concept changes after half of the records. The figure and the workers' log are written to
    the folder `out`. With `stay`, everything keeps running for the dashboard until interrupted.
    """
    out.mkdir(parents=True, exist_ok=True)
    drift_seq = records // 2
    store = Store()
    log_path = out / "workers.log"
    with (
        tempfile.TemporaryDirectory(prefix="fluxplain-demo-") as state,
        EmbeddedBroker() as broker,
        log_path.open("wb") as log,
    ):
        config = load_config(DEMO_CONFIG).on_broker(broker.bootstrap_servers)
        create_topics(config)
        where = broker.bootstrap_servers
        console.print(f"Embedded broker at {where}; the workers log to {log_path}")
        port = _free_port(config.dashboard.port)
        environment = {
            **workers_environment(broker, Path(state)),
            f"{ENV_PREFIX}DASHBOARD__PORT": str(port),
        }
        with Supervisor(
            DEMO_CONFIG, environment=environment, stderr=log, report=console.print
        ) as workers:
            workers.start()
            workers.add_service("dashboard", command_of("dashboard", config_path=DEMO_CONFIG))
            ready = threading.Event()
            with _replaying(config, records, ready) as feed:
                _show(config, feed, ready, records, store, workers, console, port)
            _summarize(config, store, drift_seq, out / "importances.png", console)
            if stay:
                console.print("The dashboard keeps running until Ctrl-C.", style="bold")
            while stay:
                workers.check()
                time.sleep(0.5)


def _summarize(
    config: Config, store: Store, drift_seq: int, picture: Path, console: Console
) -> None:
    summary = summarize(store.streams[store.current or ""].at(), drift_seq)
    save(importance_figure(summary.view, drift_seq=drift_seq), picture)
    loss_watched = config.drift.of("loss") is not None
    console.print(render_summary(summary, loss_watched=loss_watched))
    console.print(f"Figure: {picture}", style="bold")


@contextmanager
def _replaying(config: Config, records: int, ready: threading.Event) -> "Iterator[Future[None]]":
    """Replay the stream in a thread: one record, and the others once `ready` is set.

    Without the wait, the records that came while the model was compiled would pass in seconds.
    """
    stop = threading.Event()

    def feed() -> None:
        values = _observations(config, records)
        replay(config, islice(values, 1), ReplayOptions(), stop=stop)
        ready.wait()
        replay(config, values, ReplayOptions(rate=RATE), stop=stop)

    with ThreadPoolExecutor(1) as thread:
        try:
            yield thread.submit(feed)
        finally:
            stop.set()
            ready.set()


def _show(  # noqa: PLR0917
    config: Config,
    feed: "Future[None]",
    ready: threading.Event,
    records: int,
    store: Store,
    workers: Supervisor,
    console: Console,
    port: int,
) -> None:
    printed = checked = time.monotonic()
    has_page = False
    with (
        closing(PipelineProgress(config, partition=0)) as progress,
        TopicReader(config, list(OUTPUTS), from_beginning=True) as reader,
        Live(console=console, auto_refresh=False, transient=True) as live,
    ):
        while True:
            messages = reader.poll(0.25)
            now = time.monotonic()
            for message in messages:
                record = OUTPUTS[reader.name(message)].decode(message.value())
                store.add(record, message.partition() or 0, now)
                ready.set()
            if feed.done():
                feed.result()  # raises what the replay raised
            if console.is_terminal:
                live.update(WatchView(store, title="fluxplain demo", now=now), refresh=True)
            elif now - printed >= PROGRESS_S:
                printed = now
                known = sum(stream.records for stream in store.streams.values())
                console.print(f"{known + store.letter_count:,} of {records:,} records")
            if now - checked >= 1.0:
                checked = now
                workers.check()
                has_page = has_page or _print_page(port, console)
                if not messages and progress.update() >= records:
                    return


def _print_page(port: int, console: Console) -> bool:
    """Print the dashboard's address once it answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.2):
        console.print(f"Dashboard: http://127.0.0.1:{port}", style="bold")
        return True
    return False


def _free_port(wanted: int) -> int:
    """Return the wanted port if it is free, otherwise another one."""
    for port in (wanted, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return int(probe.getsockname()[1])
    raise OSError("this machine has no free port")


def _observations(config: Config, records: int) -> Iterator[bytes]:
    counts = (records // 2, records - records // 2)
    for i, (concept, limit) in enumerate(zip(CONCEPTS, counts, strict=True)):
        source = f"river:Agrawal?classification_function={concept}&seed={config.seed + i}"
        yield from open_source(source, config, limit=limit)

"""The demonstration: the whole pipeline on the embedded broker, while its stream drifts."""

import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.live import Live

from pipeline.config import Config, load_config
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
from pipeline.supervisor import Supervisor

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


def run_demo(out: Path, records: int, console: Console) -> Summary:
    """Run the demonstration and return what it found.

    Parameters
    ----------
    out
        Folder for the picture and the workers' log.
    records
        Observations to replay; the concept changes after half of them.
    console
        Where to show it.
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
        environment = workers_environment(broker, Path(state))
        with Supervisor(
            DEMO_CONFIG, environment=environment, stderr=log, tell=console.print
        ) as workers:
            workers.start()
            _show(config, records, history, workers, console)
    summary = summarize(history, drift_seq)
    picture = out / "importances.png"
    plot_importances(history, picture, drift_seq=drift_seq, title="What the model relies on")
    loss_watched = config.drift.of("loss") is not None
    console.print(render_summary(summary, loss_watched=loss_watched))
    console.print(f"Picture: {picture}", style="bold")
    return summary


def _show(
    config: Config, records: int, history: History, workers: Supervisor, console: Console
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

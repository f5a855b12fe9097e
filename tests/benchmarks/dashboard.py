"""What the dashboard costs whoever looks at it, and what it and alerts cost the pipeline."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from threading import Thread
from typing import Any

import orjson
from playwright.sync_api import Page

from pipeline.supervisor import command_of
from tests.behaviour.conftest import write_config
from tests.benchmarks.rig import ALL, Rig, full_speed, rig, settings
from tests.benchmarks.run import Run
from tests.benchmarks.timing import Figure, quartiles
from tests.monitor.dashboard.browser import Visit, chromium

SERVER = "tests.benchmarks.dashboard_server"

LIVE_S = 20.0
"""How long the page is watched while records come."""

LOADS = 5

LOAD_MS, TASK_MS = 3_000, 200
"""What a load, and a task of the browser's main thread, may take: people notice more."""

REPETITIONS = 3

RECORDS, STEADY = 6_000, 2_000

LONG_TASKS = """() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
  }).observe({ type: "longtask" });
}"""
"""Notes the tasks of more than 50 ms."""


def page(run: Run) -> Iterator[Figure]:
    """Measure the page of 100 features with 100,000 points of history each, in Chromium.

    The server's state is filled without a broker, first with a tenth of the history, then with the
    rest. A load is from the beginning of the navigation until the charts have been drawn, without a
    browser's cache; the median of five. Then all features get five points a second, while the
    longest task of the page's main thread is noted: an input waits at most so long.
    """
    with _server() as (address, tenth, whole):
        yield _figure("server's memory, whole history against a tenth of it", whole, tenth, "MB")
        with chromium() as browser:
            loads = []
            for _ in range(LOADS):
                visit = Visit(browser, address)
                visit.live()
                loads.append(_drawn_ms(visit.page))
                visit.close()
            yield _figure("load until drawn, against what is allowed", median(loads), LOAD_MS, "ms")
            visit = Visit(browser, address)
            visit.live()
            visit.page.evaluate(LONG_TASKS)
            run.clock.say(f"live for {LIVE_S:.0f} s")
            visit.page.wait_for_timeout(1_000 * LIVE_S)
            longest = max([0.0, *visit.page.evaluate("() => window.longTasks")])
            visit.close()
    what = "longest task while live (0: none above 50 ms), against what is allowed"
    yield _figure(what, longest, TASK_MS, "ms")


def beside_the_pipeline(run: Run) -> Iterator[Figure]:
    """Measure records per second of the whole pipeline, with dashboard and alerts and without.

    Both take turns, each time on a new Kafka broker, on the same machine. The dashboard
    and what sends alerts are processes of their own, with one page that listens, but without the
    browser that would draw it, and with a receiver that takes every change.
    """
    pairs = []
    for _ in range(REPETITIONS):
        with rig(run, "Kafka", settings(ALL)) as it, _beside(run, it):
            rate = full_speed(it, RECORDS, STEADY)
        with rig(run, "Kafka", settings(ALL)) as it:
            pairs.append((rate, full_speed(it, RECORDS, STEADY)))
    ours, other = (median(rates) for rates in zip(*pairs, strict=True))
    ratio, spread = quartiles([a / b for a, b in pairs])
    yield Figure(
        "records per second with dashboard and alerts, against without",
        f"{ours:.0f}",
        f"{other:.0f}",
        ratio,
        spread,
        bar="at least 0.95",
    )


def _figure(what: str, ours: float, other: float, unit: str) -> Figure:
    bar = "at most 1.2" if unit == "MB" else "at most 1"
    return Figure(what, f"{ours:,.0f} {unit}", f"{other:,.0f} {unit}", ours / other, bar=bar)


def _drawn_ms(page: Page) -> float:
    mark = "() => performance.getEntriesByName('fluxplain-drawn')[0].startTime"
    return float(page.evaluate(mark))


@contextmanager
def _server() -> Iterator[tuple[str, float, float]]:
    """Run a server with the history; yield its address, and its memory before and after in MB."""
    process = subprocess.Popen([sys.executable, "-m", SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        told: dict[str, Any] = orjson.loads(process.stdout.readline())
        yield told["address"], told["tenth"], told["whole"]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@contextmanager
def _beside(run: Run, it: Rig) -> Iterator[None]:
    """Run dashboard and alerts on the same broker, with somebody who listens to each."""
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    Thread(target=receiver.serve_forever, daemon=True).start()
    fields = {
        **settings(ALL),
        "kafka": {"bootstrap_servers": it.config.kafka.bootstrap_servers},
        "topics": {"prefix": it.config.topics.prefix},
        "dashboard": {"port": 0},
        "alerts": {"url": f"http://127.0.0.1:{receiver.server_port}/", "quiet_s": 0.0},
    }
    path = write_config(run.folder / "beside.toml", fields)
    dashboard = subprocess.Popen(command_of("dashboard", config_path=path), stdout=subprocess.PIPE)
    alerts = subprocess.Popen(command_of("alerts", "run", config_path=path))
    assert dashboard.stdout is not None
    address = dashboard.stdout.readline().decode().removeprefix("Dashboard: ").strip()
    listener = subprocess.Popen([sys.executable, "-m", SERVER, address])
    try:
        yield
    finally:
        for each in (listener, alerts, dashboard):
            each.terminate()
            each.wait(20)
        dashboard.stdout.close()
        receiver.shutdown()
        receiver.server_close()


class _Receiver(BaseHTTPRequestHandler):
    """Takes every alert."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass

"""What the dashboard costs whoever looks at it, and what it and alerts cost the pipeline."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from statistics import median
from typing import Any

import orjson
import psutil
from playwright.sync_api import Page

from fluxplain.cli.supervisor import ROLES, command_of
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.receiver import Receiver
from tests.kit.settings import write_config
from tests.measure.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.measure.benchmarks.timing import Figure, Run
from tests.measure.chaos.feed import Feed
from tests.monitor.dashboard.browser import Visit, chromium

SERVER = "tests.measure.benchmarks.dashboard_server"

LIVE_S = 20.0
"""How long the page is watched while records come."""

LOADS = 21

LOAD_MS, TASK_MS = 1_000, 200
"""What a load, and a task of the browser's main thread, may take: people notice more."""

PAIRS, BLOCK_S = 12, 5.0

RECORDS, STEADY = 60_000, 2_000
"""More than any machine takes in the blocks; and before them, until everything is warm."""

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
    browser's cache; the median of 21. The server's memory after these loads is compared with that
    after the first one. Then all features get five points a second, while the
    longest task of the page's main thread is noted: an input waits at most so long.
    """
    with _server() as (server, address, tenth, whole):
        what = "server's memory, whole history against a tenth of it"
        yield Figure.of(what, whole, tenth, "{:,.0f} MB", "at most 1.2")
        with chromium() as browser:
            loads: list[float] = []
            memory: list[float] = []
            for _ in range(LOADS):
                visit = Visit(browser, address)
                visit.live()
                loads.append(_drawn_ms(visit.page))
                visit.close()
                memory.append(server.memory_info().rss / 1e6)
            what = "server's memory, after 21 loads of the page against after one"
            yield Figure.of(what, memory[-1], memory[0], "{:,.0f} MB", "at most 1.05")
            what = "load until drawn, against what is allowed"
            yield Figure.of(what, median(loads), LOAD_MS, "{:,.0f} ms", "at most 1")
            visit = Visit(browser, address)
            visit.live()
            visit.page.evaluate(LONG_TASKS)
            run.clock.say(f"live for {LIVE_S:.0f} s")
            visit.page.wait_for_timeout(1_000 * LIVE_S)
            longest = max([0.0, *visit.page.evaluate("() => window.longTasks")])
            visit.close()
    what = "longest task while live (0: none above 50 ms), against what is allowed"
    yield Figure.of(what, longest, TASK_MS, "{:,.0f} ms", "at most 1")


def beside_the_pipeline(run: Run) -> Iterator[Figure]:
    """Measure what dashboard and alerts take from the whole pipeline on the same machine.

    One run of the pipeline on Kafka, at full speed; the dashboard and what sends alerts, processes
    of their own, are halted (SIGSTOP) in every other block of five seconds. In the next they have
    to catch up, so there they do the work of two blocks. Each block with them is compared with the
    block before, without, so that what else the machine does falls on both. A page listens, but
    without the browser that would draw it, and a receiver takes every alert.
    """
    rates = []
    with rig(run, "Kafka", settings(ALL)) as it, _beside(run, it) as beside:
        it.start(*ROLES)
        workers = [psutil.Process(pid) for pid in it.workers.running().values()]
        with (
            closing(GroupOffsets(it.config, "model", "predictions")) as predictions,
            closing(Feed(it.config, 0, observations(RECORDS), rate=None)) as feed,
        ):
            feed.start()
            for _ in it.ticks(f"{STEADY:,} records are predicted"):
                if sum(predictions.ends().values()) >= STEADY:
                    break
            before = sum(map(_cpu_s, beside)), sum(map(_cpu_s, workers))
            for block in range(2 * PAIRS):
                for process in beside:
                    process.send_signal(signal.SIGCONT if block % 2 else signal.SIGSTOP)
                rates.append(_rate(predictions))
                run.clock.progress(partial("{} of {} blocks".format, block + 1, 2 * PAIRS))
            after = sum(map(_cpu_s, beside)), sum(map(_cpu_s, workers))
    yield Figure.of_pairs(
        "records per second with dashboard and alerts, doing twice their work, against without",
        zip(rates[1::2], rates[::2], strict=True),
        bar="at least 0.95",
    )
    ours, theirs = (b - a for a, b in zip(before, after, strict=True))
    what = "CPU time of dashboard and alerts, against the workers'"
    yield Figure.of(what, ours, theirs, "{:.1f} s", "at most 0.05")


def _rate(predictions: GroupOffsets) -> float:
    begin, first = time.monotonic(), sum(predictions.ends().values())
    time.sleep(BLOCK_S)
    last = sum(predictions.ends().values())
    return (last - first) / (time.monotonic() - begin)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _drawn_ms(page: Page) -> float:
    mark = "() => performance.getEntriesByName('fluxplain-drawn')[0].startTime"
    return float(page.evaluate(mark))


@contextmanager
def _server() -> Iterator[tuple[psutil.Process, str, float, float]]:
    """Run a server with the history; yield it, its address, and its memory in MB, as it was filled.

    The memory is that with a tenth of the history, and with all of it.
    """
    process = subprocess.Popen([sys.executable, "-m", SERVER], stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        told: dict[str, Any] = orjson.loads(process.stdout.readline())
        yield psutil.Process(process.pid), told["address"], told["tenth"], told["whole"]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@contextmanager
def _beside(run: Run, it: Rig) -> Iterator[list[psutil.Process]]:
    """Run dashboard and alerts on the same broker, with somebody who listens to each."""
    receiver = Receiver()
    fields = {
        **settings(ALL),
        "kafka": {"bootstrap_servers": it.config.kafka.bootstrap_servers},
        "dashboard": {"port": 0},
        "alerts": {"url": receiver.url, "quiet_s": 0.0},
    }
    path = write_config(run.folder / "beside.toml", fields)
    dashboard = subprocess.Popen(command_of("dashboard", config_path=path), stdout=subprocess.PIPE)
    alerts = subprocess.Popen(command_of("alerts", "run", config_path=path))
    assert dashboard.stdout is not None
    address = dashboard.stdout.readline().decode().removeprefix("Dashboard: ").strip()
    listener = subprocess.Popen([sys.executable, "-m", SERVER, address])
    try:
        yield [psutil.Process(each.pid) for each in (dashboard, alerts)]
    finally:
        for each in (listener, alerts, dashboard):
            each.send_signal(signal.SIGCONT)
            each.terminate()
            each.wait(20)
        dashboard.stdout.close()
        receiver.close()

"""What the dashboard costs whoever looks at it, and the pipeline beside it."""

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

from pipeline.kafka.progress import GroupOffsets
from pipeline.supervisor import ROLES
from tests.behaviour.conftest import write_config
from tests.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.benchmarks.run import Run
from tests.benchmarks.timing import Figure, quartiles
from tests.chaos.feed import Feed
from tests.monitor.dashboard.browser import Visit, chromium

SERVER = "tests.benchmarks.dashboard_server"

LIVE_S = 20.0
"""How long the page is watched while records come."""

LOADS = 5

LOAD_MS, TASK_MS = 3_000, 200
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
    """Measure what the dashboard takes from the whole pipeline on the same machine.

    One run of the pipeline on the embedded broker, at full speed; the dashboard, a process of its
    own, is halted (SIGSTOP) in every other block of five seconds, and has to catch up in the next.
    Each block with it is compared with the block before, without, so that what else the machine
    does falls on both. A page listens, but without the browser that would draw it.
    """
    rates = []
    with rig(run, "embedded broker", settings(ALL)) as it, _beside(run, it) as dashboard:
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
            before = _cpu_s(dashboard), sum(map(_cpu_s, workers))
            for block in range(2 * PAIRS):
                dashboard.send_signal(signal.SIGCONT if block % 2 else signal.SIGSTOP)
                rates.append(_rate(predictions))
                run.clock.progress(partial("{} of {} blocks".format, block + 1, 2 * PAIRS))
            after = _cpu_s(dashboard), sum(map(_cpu_s, workers))
    ratio, spread = quartiles([b / a for a, b in zip(rates[::2], rates[1::2], strict=True)])
    yield Figure(
        "records per second with the dashboard, against without",
        f"{median(rates[1::2]):.0f}",
        f"{median(rates[::2]):.0f}",
        ratio,
        spread,
        bar="at least 0.95",
    )
    ours, theirs = (b - a for a, b in zip(before, after, strict=True))
    yield Figure(
        "CPU time of the dashboard, against the workers'",
        f"{ours:.1f} s",
        f"{theirs:.1f} s",
        ours / theirs,
        bar="at most 0.05",
    )


def _rate(predictions: GroupOffsets) -> float:
    begin, first = time.monotonic(), sum(predictions.ends().values())
    time.sleep(BLOCK_S)
    last = sum(predictions.ends().values())
    return (last - first) / (time.monotonic() - begin)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


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
def _beside(run: Run, it: Rig) -> Iterator[psutil.Process]:
    """Run the dashboard on the same broker, with somebody who listens; yield its process."""
    kafka = {"bootstrap_servers": it.config.kafka.bootstrap_servers}
    fields = {**settings(ALL), "kafka": kafka, "dashboard": {"port": 0}}
    path = write_config(run.folder / "dashboard.toml", fields)
    command = [sys.executable, "-m", "pipeline.cli", "dashboard", "--config", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    address = process.stdout.readline().decode().removeprefix("Dashboard: ").strip()
    listener = subprocess.Popen([sys.executable, "-m", SERVER, address])
    try:
        yield psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGCONT)
        for each in (listener, process):
            each.terminate()
            each.wait(20)
        process.stdout.close()

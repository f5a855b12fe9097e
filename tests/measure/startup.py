"""Measures the CPU time of starting commands and workers, beside another version of the code.

``python -m tests.measure.startup OTHER`` takes turns between this checkout and the one in the
folder OTHER, for which ``deploy/package.py`` has been run. Commands start, load what they need and
print their help. A worker runs on an embedded broker of its own until ``/readyz`` is 200; the
kernels are compiled in a first turn, which is not counted. The table has the medians of CPU
seconds, user and system, which depend less on other processes than elapsed time does. Name some
roles or commands to measure only these.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median

from fluxplain.config import load_config
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.topics.create import create_topics
from tests.kit.free_ports import free_ports
from tests.kit.settings import SETTINGS, write_config

COMMANDS = (
    *("--version", "--help", "watch", "tail", "why", "topics"),
    *("plot", "export", "check", "try", "doctor", "up"),
)
"""An option alone, and commands whose help is printed."""

ROLES = ("model", "explainer", "drift")

TURNS = 5
"""Counted runs of each version."""


def seconds(folder: Path, *words: str, ready: str | None = None, **variables: str) -> float:
    """Return the CPU seconds of a command until it ends, or until a URL answers with 200."""
    known = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    path = {"PYTHONPATH": f"{folder / 'build/package'}:{folder}", "PYTHONHASHSEED": "0"}
    before = getrusage(RUSAGE_CHILDREN)
    with subprocess.Popen(
        [sys.executable, "-m", "fluxplain", *words],
        env={**known, **path, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        while process.poll() is None and not (ready and _is_ready(ready)):
            time.sleep(0.02)
        process.kill()
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _is_ready(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=1.0) as answer:
        return bool(answer.status == HTTPStatus.OK)
    return False


def of_worker(folder: Path, role: str) -> float:
    """Return the CPU seconds that a worker takes until it is ready."""
    port = free_ports(1)
    settings = {**SETTINGS, "drift": {}, "reasons": {}, "health": {"port": port}}
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as aside:
        path = write_config(Path(aside) / "fluxplain.toml", settings)
        create_topics(broker.settings_for(load_config(path, "reader")))
        return seconds(
            folder,
            *("worker", "--role", role, "--config", str(path)),
            ready=f"http://127.0.0.1:{port}/readyz",
            FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS=broker.bootstrap_servers,
            FLUXPLAIN_CHECKPOINT__DIRECTORY=aside,
        )


def main(other: str, *names: str) -> None:
    """Print a table: the other version, this one, and their ratio; by default of all names."""
    folders = Path(other).resolve(), Path(__file__).parents[2]
    print(f"{'':20}{'other':>8}{'here':>8}{'ratio':>8}")
    for name in names or (*ROLES, *COMMANDS):
        words = (name,) if name.startswith("-") else (name, "--help")
        run = partial(of_worker, role=name) if name in ROLES else partial(_command, words=words)
        taken = [[run(folder) for folder in folders] for _ in range(TURNS + 1)][1:]
        there, here = (median(column) for column in zip(*taken, strict=True))
        title = f"worker: {name}" if name in ROLES else f"fluxplain {name}"
        print(f"{title:20}{there:8.3f}{here:8.3f}{here / there:8.2f}", flush=True)


def _command(folder: Path, words: tuple[str, ...]) -> float:
    return seconds(folder, *words)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A live pipeline under a steady stream, and the Prometheus that watches it."""

import random
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self

import orjson

from fluxplain.cli.supervisor import command_of
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.faulty_broker import FaultyBroker
from tests.kit.free_ports import free_ports
from tests.kit.kafka_pipeline import JOINED
from tests.kit.settings import default_methods, write_config
from tests.kit.workers import Workers
from tests.measure.alerts.prometheus import Prometheus

SETTINGS: dict[str, Any] = {
    "features": {"a": "numeric", "b": "numeric"},
    "label": {"type": "number"},
    "model": {"factory": "tests.measure.alerts.model:Steady"},
    "explain": {"loss": "squared_error", **default_methods(50, 1, 3)},
    "topics": {"features_partitions": 4, "partitions": 4},
}

RATE = 4.0
"""Observations a second."""

Make = Callable[[int, random.Random], bytes]
"""Makes the i-th message of the stream."""


def observation(i: int, rng: random.Random) -> bytes:
    """Return an observation that the model predicts up to noise."""
    a, b = rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0)
    return orjson.dumps({"x": {"a": a, "b": b}, "y": 3.0 * a - b + rng.gauss(0.0, 0.3), "ts": i})


class Site:
    """Workers of each role, the dashboard, the stream and Prometheus, until closed.

    `begin` and `end` mark the time in which something is wrong.
    """

    def __init__(self, folder: Path, **tables: Any) -> None:
        self._stack = ExitStack()
        self.broker = self._stack.enter_context(FaultyBroker())
        roles = JOINED if tables.get("control") else JOINED[1:]
        names = ["dashboard", *(f"{role}-1" for role in roles)]
        first = free_ports(len(names))
        self._ports = {name: first + i for i, name in enumerate(names)}
        settings = {**SETTINGS, "dashboard": {"port": 0, "metrics_port": first}, **tables}
        settings["model"] = {**settings["model"], "directory": str(folder / "models")}
        path = write_config(folder / "site.toml", settings)
        self.workers = Workers(
            path,
            self.broker.bootstrap_servers,
            folder,
            environment_of=lambda name: {"FLUXPLAIN_HEALTH__PORT": str(self._ports[name])},
        )
        self._stack.enter_context(self.workers)
        self.config, self.roles = self.workers.config, roles
        self.folder, self._path = folder, path
        self.stream = self._stack.enter_context(closing(Stream(self)))
        self.begin_at = self.end_at = 0.0

    def start(self) -> None:
        """Start one worker of each role, the dashboard and Prometheus; wait until they run."""
        for role in self.roles:
            self.workers.add(role)
        self.workers.add_service("dashboard", command_of("dashboard", config_path=self._path))
        self.stream.start()
        self.pass_time(30.0)
        self.prometheus = self._stack.enter_context(Prometheus(self.folder, self._ports))

    def port(self, name: str) -> int:
        return self._ports[name]

    def begin(self) -> None:
        """Mark the moment from which something is wrong."""
        self.begin_at = time.time()

    def end(self) -> None:
        """Mark the moment from which nothing is wrong any more."""
        self.end_at = time.time()

    def pass_time(self, seconds: float, *, is_attended: bool = True) -> None:
        """Let time pass; processes that died are restarted, unless nobody attends."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if is_attended:
                self.workers.check()
            time.sleep(0.2)

    def wait_for(self, alerts: set[str], within_s: float, *, is_attended: bool = True) -> None:
        """Let time pass until all alerts fire, or in vain."""
        until = time.monotonic() + within_s
        while time.monotonic() < until and not alerts <= self.prometheus.firing():
            self.pass_time(2.0, is_attended=is_attended)

    def wait_until_calm(self, within_s: float) -> None:
        """Let time pass until no alert fires, or in vain."""
        until = time.monotonic() + within_s
        while time.monotonic() < until and self.prometheus.firing():
            self.pass_time(2.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()


class Stream(Thread):
    """Sends messages at a steady rate, whatever the pipeline is at.

    With `held` it sends only while the model role lags by fewer messages.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(name="stream", daemon=True)
        self.rate = RATE
        self._site, self._stopping = site, Event()
        self.make: Make = observation
        self.held: int | None = None
        self._producer = RecordProducer(site.config)
        self._rng, self._sent = random.Random(1), 0

    def send(self, n: int) -> None:
        """Send some messages at once."""
        topic = self._site.config.topic("features")
        for _ in range(n):
            self._producer.send(topic, self.make(self._sent, self._rng), partition=0)
            self._sent += 1
        self._producer.flush()

    def run(self) -> None:
        with closing(GroupOffsets(self._site.config, "model", self._site.config.source)) as group:
            while not self._stopping.wait(0.5):
                n = round(self.rate / 2.0)
                if self.held is not None:
                    n = max(self.held - group.lag(), 0)
                self.send(n)

    def close(self) -> None:
        self._stopping.set()
        if self.ident is not None:
            self.join(10.0)

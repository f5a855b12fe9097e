"""Faults that come from outside of the workers: new partitions, and workers of other settings."""

import random
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from confluent_kafka import KafkaException

from fluxplain.cli.supervisor import Supervisor, WorkerRefusedError, describe_status
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.exits import EXIT_NOT_YET, EXIT_REFUSED
from tests.kit.kafka_topics import add_partitions
from tests.kit.settings import write_config
from tests.kit.waiting import FailedError

BETWEEN_TOPICS_S = (0.0, 8.0)
"""Seconds from one topic's new partition to the next one's, at least and at most."""

REFUSAL_TIMEOUT_S = 90.0
"""Seconds that a foreign worker may take until it refuses; then it is killed."""


def add_partition(
    config: Config, topics: Sequence[str], count: int, rng: random.Random, closing: Event
) -> None:
    """Make topics have so many partitions, in random order, while brokers come and go."""
    for topic in rng.sample(topics, len(topics)):
        closing.wait(rng.uniform(*BETWEEN_TOPICS_S))
        while not closing.is_set():
            with suppress(KafkaException, TimeoutError, FailedError):
                add_partitions(config, topic, count)
                break
            time.sleep(0.2)


class Foreigners:
    """Starts workers of the same prefix with another seed and model.

    Attributes
    ----------
    defects
        Those that did anything else than refuse, and how they ended.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        environment: dict[str, str],
        closing: Event,
    ) -> None:
        self._folder, self._environment, self._closing = folder, environment, closing
        model = {"factory": "river.naive_bayes:GaussianNB"}
        self._settings = {**settings, "seed": 4_711, "model": model}
        self.defects: list[str] = []

    def start(self, role: Role) -> str:
        """Start one, wait until it has ended, and return how."""
        folder = Path(tempfile.mkdtemp(prefix="foreign-", dir=self._folder))
        path = write_config(folder / "foreign.toml", self._settings)
        own = {"FLUXPLAIN_CHECKPOINT__DIRECTORY": str(folder / "checkpoints")}
        deadline = time.monotonic() + REFUSAL_TIMEOUT_S
        with (
            (folder / "foreign.log").open("wb") as log,
            Supervisor(path, environment={**self._environment, **own}, stderr=log) as workers,
        ):
            name = workers.add(role)
            with suppress(WorkerRefusedError):
                while time.monotonic() < deadline and not self._closing.wait(0.2):
                    workers.check()  # restarts it: a broker may be away when it starts
            stopped = bool(workers.running())
            statuses = [status for _, status in workers.deaths]
            statuses.append(workers.remove(name))
        ended = "had to be killed" if stopped else ", ".join(map(describe_status, statuses))
        if stopped or statuses[-1] != EXIT_REFUSED or set(statuses[:-1]) - {EXIT_NOT_YET}:
            self.defects.append(f"a foreign {role} worker: {ended}")
        return f"a foreign {role} worker: {ended}"


class Aside:
    """Does one kind of thing after the other in a thread, so that nobody waits for it."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._futures: list[Future[None]] = []

    def do(self, what: Callable[[], None]) -> None:
        self._futures.append(self._pool.submit(what))

    def is_done(self) -> bool:
        """Return whether all is done; raise what went wrong."""
        for each in [each for each in self._futures if each.done()]:
            self._futures.remove(each)
            each.result()
        return not self._futures

    def close(self, *, wait: bool = False) -> None:
        self._pool.shutdown(wait=wait, cancel_futures=True)

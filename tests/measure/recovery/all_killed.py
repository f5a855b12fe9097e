"""All brokers and all workers are killed at once: how soon is everything back."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import ROLES
from fluxplain.config import load_config
from fluxplain.kafka.topics import create_topics
from tests.kit.command import Clock, FailedError
from tests.kit.settings import write_config
from tests.measure.chaos.recovery import Recoveries
from tests.measure.recovery.feed import SETTINGS, feed
from tests.measure.recovery.workers import Workers

BACK_S = 20.0
"""Promised: seconds from the cluster's first answer until every role has committed again."""

WORKERS = 2
"""Workers of each role."""

AWAY_S = (0.0, 40.0)
"""Seconds that the brokers stay away, at least and at most, before they are started again."""

SETTLE_S = 15.0
"""Seconds of work, at least, between two kills."""

TIMEOUT_S = 180.0
"""Seconds that anything may take before the run is given up."""

REPLICATION = 3


@dataclass(frozen=True, slots=True)
class Back:
    """How long the pipeline took to resume.

    Attributes
    ----------
    away_s
        Seconds from the kill until all three brokers answered.
    seconds
        Seconds from then until every role had committed more in each partition.
    deaths
        (name, exit status) of the workers that ended meanwhile; not those that were killed.
    """

    away_s: float
    seconds: float
    deaths: Sequence[tuple[str, int]]

    def __str__(self) -> str:
        ended = ", ".join(f"{name} with {status}" for name, status in self.deaths) or "none"
        return (
            f"away for {self.away_s:.1f} s; committed again after {self.seconds:.1f} s; "
            f"workers that ended: {ended}"
        )


def all_killed(folder: Path, clock: Clock, repetitions: int, seed: int) -> list[Back]:
    """Kill all brokers and workers at once, again and again, and measure how they come back."""
    rng = random.Random(f"all-killed/{seed}")
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(brokers=3, tell=clock.say))
        settings = {
            **SETTINGS,
            "topics": {**SETTINGS["topics"], "prefix": "all-killed.", "replication": REPLICATION},
        }
        path = write_config(folder / "all-killed.toml", settings)
        config = load_config(path).on_broker(cluster.bootstrap_servers)
        create_topics(config)
        workers = stack.enter_context(closing(Workers(path, config, folder)))
        for _ in range(WORKERS):
            for role in ROLES:
                workers.add(role)
        for partition in range(config.topics.features_partitions):
            stack.enter_context(closing(feed(config, partition))).start()
        recoveries = stack.enter_context(closing(Recoveries(config)))
        recoveries.start()
        starting = stack.enter_context(ThreadPoolExecutor(1))
        measured = []
        for i in range(repetitions):
            _settle(workers, recoveries)
            measured.append(_kill_all(cluster, workers, recoveries, starting, rng.uniform(*AWAY_S)))
            clock.say(f"all killed, {i + 1} of {repetitions}: {measured[-1]}")
        return measured


def _settle(workers: Workers, recoveries: Recoveries) -> None:
    """Wait until every role commits in every partition, and some seconds more."""
    until = time.monotonic() + SETTLE_S
    _recovered(workers, recoveries)
    _wait(workers, "the pipeline works", lambda: time.monotonic() > until)


def _kill_all(
    cluster: Cluster,
    workers: Workers,
    recoveries: Recoveries,
    starting: ThreadPoolExecutor,
    away_s: float,
) -> Back:
    """Kill everything at once, start the brokers again after some time, and measure."""
    deaths, killed_at = len(workers.deaths), time.monotonic()
    for name in workers.running():
        workers.signal(name, signal.SIGKILL)
    for node in cluster.pids():
        cluster.kill_broker(node)
    until = time.monotonic() + away_s
    _wait(workers, "time passes", lambda: time.monotonic() > until)
    start = starting.submit(cluster.start)
    _wait(workers, "the brokers start", start.done)
    start.result()
    answers_at = time.monotonic()
    # nobody has loaded a state yet: the groups still wait for their killed members
    seconds = _recovered(workers, recoveries)
    killed = WORKERS * len(ROLES)
    return Back(answers_at - killed_at, seconds, workers.deaths[deaths + killed :])


def _recovered(workers: Workers, recoveries: Recoveries) -> float:
    """Return the seconds until every role has committed more than now, in each partition."""
    found = recoveries.seconds["back"]
    n = len(found)
    recoveries.since("back")
    _wait(workers, "every role commits", lambda: len(found) > n)
    return found[-1]


def _wait(workers: Workers, what: str, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not done():
        if time.monotonic() > deadline:
            raise FailedError(f"not in {TIMEOUT_S:.0f} s: {what}")
        workers.check()
        time.sleep(0.1)

"""All brokers and all workers are killed at once: how soon is everything back."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from tests.kit.command import Clock
from tests.kit.waiting import wait_until
from tests.measure.chaos.recovery import Recoveries
from tests.measure.recovery.load import Load

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

    `away_s` are the seconds from the kill until all three brokers answered, `seconds` those from
    then until every role had committed more in each partition. `deaths` are (name, exit status) of
    the workers that ended meanwhile; not those that were killed.
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
    measured = []
    with ExitStack() as stack:
        topics = {"prefix": "all-killed.", "replication": REPLICATION}
        load = Load(stack, folder, clock, 3, **topics)
        load.workers.start(WORKERS)
        recoveries = stack.enter_context(closing(Recoveries(load.config)))
        recoveries.start()
        for i in range(repetitions):
            _settle(load, recoveries)
            measured.append(_kill_all(load, recoveries, rng.uniform(*AWAY_S)))
            clock.say(f"all killed, {i + 1} of {repetitions}: {measured[-1]}")
    return measured


def _settle(load: Load, recoveries: Recoveries) -> None:
    """Wait until every role commits in every partition, and some seconds more."""
    until = time.monotonic() + SETTLE_S
    _recovered(load, recoveries)
    while time.monotonic() < until:
        load.workers.attend()


def _kill_all(load: Load, recoveries: Recoveries, away_s: float) -> Back:
    """Kill everything at once, start the brokers again after some time, and measure."""
    workers, killed_at = load.workers, time.monotonic()
    killed = list(workers.running())
    deaths = len(workers.deaths) + len(killed)
    workers.crash(*killed)
    for node in load.cluster.pids():
        load.cluster.kill_broker(node)
    until = time.monotonic() + away_s
    while time.monotonic() < until:
        workers.attend()
    with ThreadPoolExecutor(1) as starting:
        start = starting.submit(load.cluster.start)
        while not start.done():
            workers.attend()
        start.result()
    answers_at = time.monotonic()
    # nobody has loaded a state yet: the groups still wait for their killed members
    seconds = _recovered(load, recoveries)
    return Back(answers_at - killed_at, seconds, workers.deaths[deaths:])


def _recovered(load: Load, recoveries: Recoveries) -> float:
    """Return the seconds until every role has committed more than now, in each partition."""
    found = recoveries.seconds["back"]
    n = len(found)
    recoveries.since("back")
    wait_until(
        lambda: len(found) > n,
        TIMEOUT_S,
        what=lambda: "every role commits",
        attend=load.workers.attend,
    )
    return found[-1]

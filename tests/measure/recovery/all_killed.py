"""All brokers and all workers are killed at once: how soon is everything back."""

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config, load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.command import Clock, FailedError
from tests.kit.settings import write_config
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

Committed = Mapping[int, int]
"""Partition → committed offset."""


@dataclass(frozen=True, slots=True)
class Back:
    """How long the pipeline took to resume; seconds after all three brokers answered.

    Attributes
    ----------
    away_s
        Seconds from the kill until the brokers answered.
    loaded_s
        Role → when the states of all of its partitions were loaded.
    committed_s
        Role → when it had committed more in each partition with messages than before the kill.
    deaths
        (name, exit status) of the workers that ended meanwhile; not those that were killed.
    """

    away_s: float
    loaded_s: Mapping[Role, float]
    committed_s: Mapping[Role, float]
    deaths: Sequence[tuple[str, int]]

    @property
    def seconds(self) -> float:
        """When the last role had committed."""
        return max(self.committed_s.values())

    def __str__(self) -> str:
        roles = ", ".join(
            f"{role} {self.committed_s[role]:.1f} s (loaded {self.loaded_s[role]:.1f})"
            for role in self.committed_s
        )
        ended = ", ".join(f"{name} with {status}" for name, status in self.deaths) or "none"
        return (
            f"away for {self.away_s:.1f} s; committed again: {roles}; workers that ended: {ended}"
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
        feeds = [
            stack.enter_context(closing(feed(config, partition)))
            for partition in range(config.topics.features_partitions)
        ]
        for each in feeds:
            each.start()
        scene = _Scene(config, cluster, workers, stack.enter_context(ThreadPoolExecutor(1)))
        measured = []
        for i in range(repetitions):
            scene.settle()
            measured.append(scene.kill_all(rng.uniform(*AWAY_S)))
            clock.say(f"all killed, {i + 1} of {repetitions}: {measured[-1]}")
        return measured


class _Scene:
    def __init__(
        self, config: Config, cluster: Cluster, workers: Workers, background: ThreadPoolExecutor
    ) -> None:
        self._config, self._cluster = config, cluster
        self._workers, self._background = workers, background

    def settle(self) -> None:
        """Wait until every role commits in every partition, and some seconds more."""
        until = time.monotonic() + SETTLE_S
        self._committed_beyond({role: {} for role in ROLES})
        self._wait("the pipeline works", lambda: time.monotonic() > until)

    def kill_all(self, away_s: float) -> Back:
        """Kill everything at once, start the brokers again after some time, and measure."""
        deaths = len(self._workers.deaths)
        killed_at = time.time()
        for name in self._workers.running():
            self._workers.signal(name, signal.SIGKILL)
        for node in self._cluster.pids():
            self._cluster.kill_broker(node)
        killed = len(self._workers.running()) or WORKERS * len(ROLES)
        until = time.monotonic() + away_s
        self._wait("time passes", lambda: time.monotonic() > until)
        start: Future[None] = self._background.submit(self._cluster.start)
        self._wait("the brokers start", start.done)
        start.result()
        answers_at = time.time()
        # nobody has loaded a state yet: the groups still wait for their killed members
        committed = self._committed_beyond({role: self._committed(role) for role in ROLES})
        return Back(
            answers_at - killed_at,
            {role: self._loaded(role, killed_at) - answers_at for role in ROLES},
            {role: at - answers_at for role, at in committed.items()},
            self._workers.deaths[deaths + killed :],
        )

    def _committed(self, role: Role) -> Committed:
        [topic] = self._config.inputs(role)
        with closing(GroupOffsets(self._config, role, topic)) as offsets:
            return offsets.committed()

    def _committed_beyond(self, before: Mapping[Role, Committed]) -> Mapping[Role, float]:
        """Return role → when it had committed more than before in each partition."""
        with ExitStack() as stack:
            groups = {
                role: stack.enter_context(
                    closing(GroupOffsets(self._config, role, *self._config.inputs(role)))
                )
                for role in before
            }
            found: dict[Role, float] = {}

            def all_found() -> bool:
                for role, group in groups.items():
                    if role in found:
                        continue
                    now, ends = group.committed(), group.ends()
                    used = [partition for partition, end in ends.items() if end]
                    if used and all(now[p] > before[role].get(p, 0) for p in used):
                        found[role] = time.time()
                return len(found) == len(groups)

            self._wait("every role commits", all_found)
            return found

    def _loaded(self, role: Role, since: float) -> float:
        pids = self._workers.running(role).values()
        loaded = self._workers.loaded(role, pids, since)
        return max((at for at, _ in loaded.values()), default=since)

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not done():
            if time.monotonic() > deadline:
                raise FailedError(f"not in {TIMEOUT_S:.0f} s: {what}")
            self._workers.check()
            time.sleep(0.1)

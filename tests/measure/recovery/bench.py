"""The measurements: takeover, shutdown, restart."""

import random
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.command import FailedError
from tests.measure.chaos.feed import Feed
from tests.measure.recovery.outputs import Outputs
from tests.measure.recovery.workers import Workers

T = TypeVar("T")

TIMEOUT_S = 90.0
"""How long anything may take before the run is given up."""


@dataclass(frozen=True, slots=True)
class Gone:
    """How long it took to go on without a worker, or with its replacement.

    Attributes
    ----------
    seconds
        From the kill until something new was published from each of its partitions.
    loaded_s
        From the kill until the states of these were loaded.
    """

    seconds: float
    loaded_s: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, the states were loaded after {self.loaded_s:.2f} s"


@dataclass(frozen=True, slots=True)
class Stopped:
    """How a worker stopped.

    Attributes
    ----------
    seconds
        From SIGTERM to its end.
    status
        Its exit status.
    uncommitted
        Messages below its last checkpoints that it had not committed.
    repeated
        What the next start published again.
    """

    seconds: float
    status: int
    uncommitted: int
    repeated: int

    def __str__(self) -> str:
        return (
            f"{self.seconds:.2f} s, exit status {self.status}, {self.uncommitted:,} messages left "
            f"uncommitted, {self.repeated:,} published again"
        )


class Bench:
    """Workers under load, and what is done to them.

    Parameters
    ----------
    config
        The settings.
    workers, outputs, feeds
        What is measured.
    seed
        Of the moments: at any time between two checkpoints.
    """

    def __init__(
        self,
        config: Config,
        workers: Workers,
        outputs: Outputs,
        feeds: Sequence[Feed],
        seed: int,
    ) -> None:
        self._config, self._workers = config, workers
        self._outputs, self._feeds = outputs, feeds
        self._rng = random.Random(f"recovery/{seed}")

    def add(self, role: Role) -> None:
        """Start one more worker of a role."""
        self._workers.add(role)

    def remove(self, role: Role) -> None:
        """Stop one worker of a role."""
        self._workers.stop(max(self._workers.running(role)))

    def start_anew_as_static_members(self) -> None:
        """Replace every worker by one whose place in its group is kept while it is away."""
        self._workers.static = True
        for role in ROLES:
            for name in self._workers.running(role):
                self._workers.stop(name)
                self._workers.add(role)

    def takeover(self, role: Role) -> Gone:
        """Kill one of two workers, and wait until the other does its work."""
        self._settle()
        name = self._rng.choice(sorted(self._workers.running(role)))
        self._any_moment()
        partitions = self._workers.partitions(name)
        since = self._kill(name)
        gone = self._gone(role, partitions, since)
        self._workers.stop(name)
        self._workers.add(role)
        return gone

    def restart(self, role: Role) -> Gone:
        """Kill the only worker, start another at once, and wait until it works."""
        self._settle()
        (name,) = self._workers.running(role)
        self._any_moment()
        partitions = self._workers.partitions(name)
        since = self._kill(name)
        self._workers.stop(name)
        self._workers.add(role)
        return self._gone(role, partitions, since)

    def shutdown(self, role: Role) -> Stopped:
        """Stop the only worker, and see what the next one finds."""
        self._settle()
        (name,) = self._workers.running(role)
        self._any_moment()
        partitions = self._workers.partitions(name)
        began_at = time.monotonic()
        status = self._workers.stop(name)
        seconds = time.monotonic() - began_at
        since = time.time()
        self._outputs.begin(since)
        [topic] = self._config.inputs(role)
        with closing(GroupOffsets(self._config, role, topic)) as offsets:
            committed = offsets.committed()
        self._workers.add(role)
        self._gone(role, partitions, since)
        loaded = self._workers.loaded(role, self._workers.running(role).values(), since)
        left = sum(offset - committed[partition] for partition, (_, offset) in loaded.items())
        return Stopped(seconds, status, left, self._outputs.repeated[role])

    def _kill(self, name: str) -> float:
        since = time.time()
        self._workers.kill(name)
        # from here on: what the killed one had just sent is not another's
        self._outputs.begin(time.time())
        return since

    def _gone(self, role: Role, partitions: set[int], since: float) -> Gone:
        """Wait until states are loaded and something new is published of all partitions."""
        pids = self._workers.running(role).values()

        def loaded() -> float | None:
            found = self._workers.loaded(role, pids, since)
            known = partitions <= found.keys()
            return max(found[p][0] for p in partitions) if known else None

        loaded_at = self._wait(f"{role} loads {sorted(partitions)}", loaded)
        published_at = self._published(role, partitions)
        return Gone(max(loaded_at, published_at) - since, loaded_at - since)

    def _published(self, role: Role, partitions: set[int]) -> float:
        return self._wait(
            f"{role} publishes of {sorted(partitions)}",
            lambda: self._outputs.first_new(role, partitions),
        )

    def _settle(self) -> None:
        """Wait until every worker has a share, and every role publishes of every partition."""
        shares = self._wait("all workers are ready", self._shares)
        self._outputs.begin(time.time())
        for role, partitions in shares.items():
            self._published(role, partitions)

    def _shares(self) -> dict[Role, set[int]] | None:
        """Return role → its partitions; None unless they are dealt to all of its workers."""
        counts = dict.fromkeys(ROLES, self._config.topics.partitions)
        counts["model"] = self._config.topics.features_partitions
        for role in ROLES:
            shares = [self._workers.partitions(name) for name in self._workers.running(role)]
            dealt = sorted(partition for share in shares for partition in share)
            if not all(shares) or dealt != list(range(counts[role])):
                return None
        return {role: set(range(count)) for role, count in counts.items()}

    def _any_moment(self) -> None:
        until = time.monotonic() + self._rng.uniform(0.0, self._config.checkpoint.interval_s)
        while time.monotonic() < until:
            self._outputs.poll()

    def _wait(self, what: str, answer: Callable[[], T | None]) -> T:
        deadline = time.monotonic() + TIMEOUT_S
        while (result := answer()) is None:
            if time.monotonic() > deadline:
                raise FailedError(f"not in {TIMEOUT_S:.0f} s: {what}")
            for feed in self._feeds:
                if feed.error:
                    raise FailedError(f"the stream cannot be fed: {feed.error}")
            self._outputs.poll()
        return result

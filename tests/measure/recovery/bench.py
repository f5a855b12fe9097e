"""The measurements: takeover, shutdown, restart."""

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import orjson
from confluent_kafka import Message

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import parse_stream
from tests.kit.kafka_pipeline import identity
from tests.kit.waiting import wait_until
from tests.measure.recovery.load import TOPICS, Load

T = TypeVar("T")

TIMEOUT_S = 90.0
"""How long anything may take before the run is given up."""


PUBLISHED: dict[str, Role] = {
    "predictions": "model",
    "explanations": "explainer",
    "changes": "drift",
}
"""Topic → the role that writes there."""


@dataclass(frozen=True, slots=True)
class Gone:
    """Seconds from a kill until something new was published from each partition of the worker.

    `loaded_s` are those until the states of these were loaded.
    """

    seconds: float
    loaded_s: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s, the states were loaded after {self.loaded_s:.2f} s"


@dataclass(frozen=True, slots=True)
class Stopped:
    """Seconds from SIGTERM to the end of a worker, and its exit status.

    `uncommitted` are the messages below its last checkpoints that it had not committed, `repeated`
    what the next start published again.
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


class Outputs:
    """The first new outputs, and the repeated ones, since a moment.

    `repeated` counts by role the outputs since then that had been published before.
    """

    def __init__(self, config: Config) -> None:
        self._reader = TopicReader(config, list(PUBLISHED), from_beginning=True)
        # evaluations and explanations are dealt alike
        self._places = {
            feature: i % config.topics.partitions for i, feature in enumerate(config.explained)
        }
        self._seen: set[Hashable] = set()
        self._since = 0.0
        self._first: dict[tuple[Role, int], float] = {}
        self.repeated: Counter[Role] = Counter()

    def begin(self, since: float) -> None:
        """Forget what was published before a moment, in seconds since the epoch."""
        self._since = since
        self._first.clear()
        self.repeated.clear()

    def first_new(self, role: Role, partitions: Collection[int]) -> float | None:
        """Return when something new from each of the input's partitions was there.

        None if something is missing yet. What had been published before is not new.
        """
        first = [self._first.get((role, partition)) for partition in partitions]
        known = [at for at in first if at is not None]
        return max(known) if len(known) == len(first) else None

    def poll(self) -> None:
        """Read what is there, or wait a moment."""
        for message in self._reader.poll(0.05):
            self._take(message)

    def close(self) -> None:
        self._reader.close()

    def _take(self, message: Message) -> None:
        name, value = self._reader.name(message), message.value()
        assert value is not None
        fields = orjson.loads(value)
        if fields.get("method") == "loss" or fields.get("kind") in {"input", "output"}:
            return  # by the model, which its predictions tell more of
        role, at = PUBLISHED[name], message.timestamp()[1] / 1000
        key = identity(name, value)
        again = key in self._seen
        self._seen.add(key)
        if at < self._since:
            return
        if again:
            self.repeated[role] += 1
        else:
            place = (role, self._input_partition(role, fields))
            self._first[place] = min(at, self._first.get(place, at))

    def _input_partition(self, role: Role, fields: dict[str, str]) -> int:
        if role == "model":
            return parse_stream(fields["stream"])[1]
        return self._places[fields["feature"]]


class Bench:
    """Workers under load, and what is done to them at any time between two checkpoints."""

    def __init__(self, load: Load, outputs: Outputs, seed: int) -> None:
        self._load, self._outputs = load, outputs
        self._config, self._workers = load.config, load.workers
        self._rng = random.Random(f"recovery/{seed}")

    def remove(self, role: Role) -> None:
        self._workers.remove(max(self._workers.running(role)))

    def start_anew_as_static_members(self) -> None:
        """Replace every worker by one whose place in its group is kept while it is away."""
        self._load.static = True
        for role in ROLES:
            for name in self._workers.running(role):
                self._workers.remove(name)
                self._workers.add(role)

    def takeover(self, role: Role) -> Gone:
        """Kill one of two workers, and wait until the other does its work."""
        name, partitions = self._chosen(role)
        since = self._kill(name)
        gone = self._gone(role, partitions, since)
        self._workers.remove(name)
        self._workers.add(role)
        return gone

    def restart(self, role: Role) -> Gone:
        """Kill the only worker, start another at once, and wait until it works."""
        name, partitions = self._chosen(role)
        since = self._kill(name)
        self._workers.remove(name)
        self._workers.add(role)
        return self._gone(role, partitions, since)

    def shutdown(self, role: Role) -> Stopped:
        """Stop the only worker, and see what the next one finds."""
        name, partitions = self._chosen(role)
        began_at = time.monotonic()
        status = self._workers.remove(name)
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

    def _chosen(self, role: Role) -> tuple[str, set[int]]:
        """Return a worker of a settled role at any moment, and its partitions then."""
        self._settle()
        name = self._rng.choice(sorted(self._workers.running(role)))
        until = time.monotonic() + self._rng.uniform(0.0, self._config.checkpoint.interval_s)
        while time.monotonic() < until:
            self._outputs.poll()
        return name, set(self._workers.next_offsets(name))

    def _kill(self, name: str) -> float:
        since = time.time()
        self._workers.crash(name)
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
        counts = dict.fromkeys(ROLES, TOPICS["partitions"])
        counts["model"] = TOPICS["features_partitions"]
        for role in ROLES:
            shares = [set(self._workers.next_offsets(name)) for name in self._workers.running(role)]
            dealt = sorted(partition for share in shares for partition in share)
            if not all(shares) or dealt != list(range(counts[role])):
                return None
        return {role: set(range(count)) for role, count in counts.items()}

    def _wait(self, what: str, answer: Callable[[], T | None]) -> T:
        return wait_until(answer, TIMEOUT_S, what=lambda: what, attend=self._attend)

    def _attend(self) -> None:
        for feed in self._load.feeds:
            feed.check()
        self._outputs.poll()

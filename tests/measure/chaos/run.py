"""One run: brokers, workers, stream and disturbances, and what is wrong in the end."""

import secrets
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from deploy.kafka import Cluster
from tests.kit.command import Clock, say
from tests.kit.comparison import Comparison, Identity, compare
from tests.kit.kafka_pipeline import Groups, Published
from tests.kit.settings import topic_store, write_config
from tests.kit.waiting import FailedError, wait_until
from tests.kit.workers import Workers
from tests.measure.chaos.collector import Collector
from tests.measure.chaos.contents import count_contents, without_contents
from tests.measure.chaos.disturber import Disturber, Faults
from tests.measure.chaos.exits import Exits, Stop
from tests.measure.chaos.faults import Foreigners
from tests.measure.chaos.outside import Outside, letters_at, look, sent_again
from tests.measure.chaos.poison import Place, Poisoner
from tests.measure.chaos.recovery import Recoveries
from tests.measure.chaos.schedule import (
    BROKERS,
    ROLES,
    WORKERS,
    WRITERS,
    Disturbance,
    Store,
    Targets,
    Wanted,
    make_schedule,
    needed_s,
)
from tests.measure.chaos.stream import (
    PARTITIONS,
    SETTINGS,
    UNJOINED,
    RecordedFeed,
    Reference,
    Stream,
)

START_TIMEOUT_S = 90.0
"""How long the pipeline may take until its first explanation."""

STALL_S = 60.0
"""How long nothing may be published while something is missing."""

DRAIN_TIMEOUT_S = 900.0
"""How long it may take, after the last record was fed, until all is published."""

PATIENCE = 3.0
"""The stream may take so many times as long as planned, until all disturbances were done."""

DISTURBED = 0.92
"""Share of the stream's length within which to disturb."""

OFFER_S = 5.0
"""Seconds between two times at which the references get what was read."""

QUIET_S = 3.0
"""How long to wait, once all is there, for what should not come."""

CHECKPOINT_INTERVAL_S = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is to be like; the command's options say more.

    `records` are all, hostile ones included; `rate` is that of each partition, a second.
    """

    seed: int
    records: int
    rate: float
    most_delay: int
    wanted: Wanted
    store: Store
    joined: bool = True

    @property
    def length_s(self) -> float:
        """How long the stream is, in seconds: at the rate, or longer if outages need it."""
        room = needed_s(self.seed, self.wanted) / DISTURBED
        return max(self.records / len(PARTITIONS) / self.rate, room)

    @property
    def spread_rate(self) -> float:
        """Records of each partition, a second, so that they last as long."""
        return self.records / len(PARTITIONS) / self.length_s

    @property
    def targets(self) -> Targets:
        absent = set() if self.joined else {"observations"}
        if self.store == "directory":
            absent.add("checkpoints")
        own = [each for each in WRITERS if each not in absent]
        if self.joined:
            return Targets(ROLES, ("features", "labels", *own))
        return Targets(ROLES[1:], ("features", *own))

    @property
    def schedule(self) -> list[Disturbance]:
        return make_schedule(self.seed, self.wanted, DISTURBED * self.length_s, self.targets)

    def stream(self, partition: int) -> Stream:
        records = -(-self.records // len(PARTITIONS))
        if partition not in PARTITIONS:
            records //= 4  # it comes later
        return Stream(partition, records, self.most_delay, self.seed, self.joined)


class Run:
    """A run, in a folder; all that it starts ends with the stack."""

    def __init__(self, options: Options, folder: Path, clock: Clock, stack: ExitStack) -> None:
        self._options, self._folder, self._clock, self._stack = options, folder, clock, stack
        cluster = stack.enter_context(Cluster(folder / "kafka", brokers=3, tell=clock.say))
        stack.callback(_kill_all, cluster)
        settings = self._settings()
        path, of_each = write_config(folder / "chaos.toml", settings), self._environment_of
        servers, report = cluster.bootstrap_servers, clock.say
        self._workers = Workers(path, servers, folder, environment_of=of_each, report=report)
        self._config = self._workers.config
        self._collector = stack.enter_context(closing(Collector(self._config)))
        stack.enter_context(self._workers)
        self._feeds: list[RecordedFeed] = []
        self._references: list[Reference] = []
        for partition in PARTITIONS:
            self._add_feed(partition)
        self._faults = self._all_faults(settings)
        tell = clock.say
        disturber = Disturber(options.schedule, self._workers, cluster, self._faults, tell=tell)
        self._disturber = stack.enter_context(closing(disturber))

    def _all_faults(self, settings: dict[str, Any]) -> Faults:
        stopping, config = Event(), self._config
        return Faults(
            Poisoner(config, self._options.seed, stopping),
            Foreigners(self._folder, settings, self._workers.added, stopping),
            self._stack.enter_context(closing(Recoveries(config))),
            [*(config.inputs("join") if self._options.joined else ()), config.source],
            self._add_partition,
            stopping,
        )

    def problems(self) -> Sequence[str]:
        self._start()
        self._disturb()
        self._clock.say("all is disturbed, and all is fed; waiting until all is published")
        # only now: partitions were added
        groups = self._stack.enter_context(closing(Groups(self._config)))
        expected = self._await(groups)
        exits = self._stop()
        self._faults.poisoner.find_others()
        comparison = compare(self._collector.published, expected, self._is_poison)
        outside = look(
            self._collector.published,
            self._collector.fed,
            self._poison,
            prefix=self._config.topics.prefix,
            read={topic for _, topic in groups.offsets},
            joined=self._options.joined,
        )
        contents, longest = count_contents(expected), max(map(len, self._collector.joined.values()))
        self._report(comparison, {"records expected": len(expected), **contents}, outside, exits)
        return [
            *self._log_problems(),
            *outside.problems(),
            *_missing(comparison, len(expected), groups),
            *without_contents(contents, longest),
            *exits.problems(),
            *self._faults.foreigners.defects,
        ]

    @property
    def _poison(self) -> set[Place]:
        return set(self._faults.poisoner.places)

    @property
    def _fed(self) -> dict[tuple[str, int], list[bytes]]:
        """(topic, partition) → what was fed."""
        return {
            (topic, feed.stream.partition): values
            for feed in self._feeds
            for topic, values in feed.fed.items()
            if values
        }

    def _add_feed(self, partition: int) -> RecordedFeed:
        stream = self._options.stream(partition)
        feed = RecordedFeed(self._config, stream, self._options.spread_rate)
        self._feeds.append(self._stack.enter_context(closing(feed)))
        reference = Reference(self._config, partition)
        self._references.append(self._stack.enter_context(closing(reference)))
        return feed

    def _add_partition(self, partition: int) -> None:
        self._collector.add_partition(self._faults.grown, partition)
        self._add_feed(partition).start()

    def _settings(self) -> dict[str, Any]:
        base = SETTINGS if self._options.joined else UNJOINED
        store = topic_store(self._folder) if self._options.store == "topic" else {}
        return {
            **base,
            "topics": {**base["topics"], "prefix": f"chaos-{secrets.token_hex(4)}."},
            "checkpoint": {"interval_s": CHECKPOINT_INTERVAL_S, **store},
        }

    def _environment_of(self, name: str) -> dict[str, str]:
        if self._options.store == "directory":
            return {}
        # as if each were on a machine of its own
        return {"FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self._folder / "checkpoints" / name)}

    def _start(self) -> None:
        self._collector.start()
        self._workers.start(WORKERS)
        for feed in self._feeds:
            feed.start()
        wait_until(
            lambda: self._collector.messages["explanations"],
            START_TIMEOUT_S,
            what=lambda: "an explanation",
            attend=self._attend,
        )
        self._faults.recoveries.start()

    def _attend(self) -> None:
        """Look whether all is well, and wait a moment."""
        for feed in self._feeds:
            feed.check()
        self._collector.check()
        self._workers.attend()

    def _disturb(self) -> None:
        start = offered_at = time.monotonic()
        limit_s = PATIENCE * self._options.length_s + START_TIMEOUT_S
        while any(feed.is_alive() for feed in self._feeds):
            elapsed_s = time.monotonic() - start
            self._disturber.tick(elapsed_s)
            if self._disturber.finished():
                for feed in self._feeds:
                    feed.may_end.set()
            self._clock.progress(self._progress)
            if time.monotonic() - offered_at >= OFFER_S:
                offered_at = time.monotonic()
                for reference in self._references:
                    reference.offer(self._collector.joined[reference.partition])
            if elapsed_s > limit_s:
                done = self._disturber.counts()
                raise FailedError(f"after {elapsed_s:.0f} s not all was disturbed: {done}")
            self._attend()
        self._attend()

    def _await(self, groups: Groups) -> Published:
        """Return what must be published, once all is done or nothing comes any more."""
        deadline = time.monotonic() + DRAIN_TIMEOUT_S
        while time.monotonic() < deadline and not groups.are_idle():
            self._attend()
            self._clock.progress(self._progress)
            if time.monotonic() - self._collector.newest_at > STALL_S:
                break
        time.sleep(QUIET_S)
        expected: Published = {}
        for reference in self._references:
            expected |= reference.published(self._collector.joined[reference.partition])
        return expected

    def _progress(self) -> str:
        messages = list(self._collector.messages.items())
        published = ", ".join(f"{n:,} {name}" for name, n in messages)
        counts = self._disturber.counts().items()
        done = ", ".join(f"{n} of {m} {name}" for name, (n, m) in counts if m)
        return f"{self._count():,} fed; {published}; {done}"

    def _count(self) -> int:
        return sum(map(len, self._fed.values()))

    def _stop(self) -> Exits:
        """Stop the workers, see how they ended, and read the topics to their end."""
        self._workers.check()
        names = self._workers.running()  # those that died and wait for their restart are counted
        self._workers.stop()
        self._collector.finish()
        stopped = [Stop(self._workers.exit_statuses[name]) for name in names]
        return Exits(self._workers.deaths, self._disturber.killed, self._disturber.removed, stopped)

    def _report(
        self, comparison: Comparison, expected: Mapping[str, int], outside: Outside, exits: Exits
    ) -> None:
        published, messages = self._collector.published, self._collector.messages
        topics = Counter(key[0] for key in published)
        log = self._workers.log.splitlines()
        found: Mapping[str, object] = {
            "records fed": self._count(),
            **expected,
            **comparison.numbers(),
            "duplicated (the same again)": messages.total() - sum(map(len, published.values())),
            **{f"published {name}": topics[name] for name in messages},
            **{name: f"{done} of {n}" for name, (done, n) in self._disturber.counts().items()},
            **exits.numbers(),
            "states loaded": sum("resumes at offset" in line for line in log),
            **outside.numbers(),
            **self._faults.recoveries.numbers(),
            "wall time": f"{self._clock.elapsed_s():.0f} s",
        }
        say("")
        for name, value in found.items():
            say(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
        for line in (*comparison.examples, *outside.examples()):
            say(line)

    def _log_problems(self) -> list[str]:
        problems = []
        poison, sent = self._poison, self._fed
        fed = {
            place: [v for offset, v in enumerate(values) if (*place, offset) not in poison]
            for place, values in self._collector.fed.items()
        }
        # also where something is in the log of a partition that nobody fed
        for place in sorted(fed.keys() | sent.keys()):
            again = sent_again(fed.get(place, []), sent.get(place, []))
            if again is None:
                problems.append("the log of {}-{} is not what was fed".format(*place))
            elif again:
                say("messages that a producer sent again to {}-{}: {}".format(*place, again))
        if strange := self._collector.unreadable - poison:
            problems.append(f"{len(strange)} messages in output topics are no records")
        return problems + (self._join_problems(fed.keys()) if self._options.joined else [])

    def _join_problems(self, places: Collection[tuple[str, int]]) -> list[str]:
        """Return which partitions were not passed on in order, each to its own, and as a whole."""
        letters = letters_at(self._collector.published, self._config.topics.prefix)
        problems = []
        for name, partition in places:
            joined, topic = self._collector.joined[partition], self._config.topic(name)
            origins = [each.origin for each in joined if each.origin[0] == topic]
            if any(each[1] != partition for each in origins):
                problems.append(f"{name}-{partition} was joined with another partition")
            first = [*dict.fromkeys(offset for _, p, offset in origins if p == partition)]
            if first != sorted(first):
                problems.append(f"{name}-{partition} was not joined in order")
            wanted = range(len(self._collector.fed[name, partition]))
            lost = [o for o in {*wanted} - {*first} if not letters[name, partition, o]]
            if lost:
                which = f"{len(lost)} of {name}-{partition}"
                problems.append(f"{which} were not joined, first {min(lost)}")
        return problems

    def _is_poison(self, key: Identity) -> bool:
        if key[0] != "dead-letters":
            return False
        topic = key[1].removeprefix(self._config.topics.prefix)
        return (topic, key[2], key[3]) in self._poison


def _missing(comparison: Comparison, expected: int, groups: Groups) -> list[str]:
    problems = comparison.problems()
    if missing := len(comparison.missing):
        problems.append(f"only {expected - missing:,} of {expected:,} went through")
        problems.append(f"left unread: {groups.left()}")
    return problems


def _kill_all(cluster: Cluster) -> None:
    # quicker than to stop them, and as good for what is kept
    for node in BROKERS:
        cluster.kill_broker(node)

"""One run: brokers, workers, stream and disturbances, and what is wrong in the end."""

import os
import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import Supervisor
from fluxplain.config import Config, load_config
from fluxplain.kafka.timeouts import SESSION_TIMEOUT_S
from fluxplain.kafka.topics import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.schemas.late_label import LabelValue
from tests.kit.command import LOG, Clock, FailedError, say
from tests.kit.kafka_pipeline import Published
from tests.kit.settings import write_config
from tests.measure.chaos.collector import Collector
from tests.measure.chaos.disturber import Disturber, Faults
from tests.measure.chaos.exits import Exits, Stop
from tests.measure.chaos.faults import Foreigners, Place, Poisoner, Topics
from tests.measure.chaos.fed import sent_again
from tests.measure.chaos.outside import Outside, letters_at, look
from tests.measure.chaos.recovery import Recoveries
from tests.measure.chaos.report import lines, numbers, progress
from tests.measure.chaos.schedule import (
    BROKERS,
    ROLES,
    WORKERS,
    WRITERS,
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
from tests.measure.chaos.verifier import Comparison, Identity, compare

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
    """What a run is to be like.

    Attributes
    ----------
    seed
        Of the schedule and the stream.
    records
        Observations and labels in all, hostile ones included.
    rate
        Of these, of each partition, a second.
    most_delay
        How many observations later a label comes, at most.
    wanted
        How often to disturb.
    store
        Where the checkpoints are.
    joined
        Whether labels come later, in a topic of their own.
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
        """What there is to disturb."""
        absent = set() if self.joined else {"observations"}
        if self.store == "directory":
            absent.add("checkpoints")
        own = [each for each in WRITERS if each not in absent]
        if self.joined:
            return Targets(ROLES, ("features", "labels", *own))
        return Targets(ROLES[1:], ("features", *own))


@dataclass(frozen=True, slots=True)
class Scene:
    """Who takes part."""

    workers: Supervisor
    disturber: Disturber
    feeds: list[RecordedFeed]
    collector: Collector
    references: list[Reference]
    faults: Faults

    @property
    def fed(self) -> dict[tuple[str, int], list[bytes]]:
        """(topic, partition) → what was fed."""
        fed: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        for feed in self.feeds:
            for value in feed.fed:
                if isinstance(value, LabelValue):
                    fed["labels", feed.stream.partition].append(value.value)
                else:
                    fed["features", feed.stream.partition].append(value)
        return fed


class Run:
    """A run, in a folder."""

    def __init__(self, options: Options, folder: Path, clock: Clock) -> None:
        self._options = options
        self._folder = folder
        self._clock = clock
        self._log_path = folder / LOG
        self._settings: dict[str, Any] = {}
        self._offered_at = 0.0

    def problems(self) -> Sequence[str]:
        """Do it all, and return what is wrong; nothing if the promises hold."""
        with ExitStack() as stack:
            cluster = Cluster(self._folder / "kafka", brokers=3, tell=self._clock.say)
            stack.enter_context(cluster)
            stack.callback(_kill_all, cluster)
            config_path, config = self._configure(cluster.bootstrap_servers)
            create_topics(config)
            scene = self._scene(stack, cluster, config_path, config)
            self._start(scene)
            self._disturb(scene)
            self._clock.say("all is disturbed, and all is fed; waiting until all is published")
            expected = self._await(scene, config)
            exits = _stop(scene)
            scene.faults.poisoner.find_others()
            poison = {*scene.faults.poisoner.places}
            prefix = config.topics.prefix
            comparison = compare(
                scene.collector.published,
                expected,
                scene.collector.messages.total(),
                lambda key: key[0] == "dead-letters" and _place(key, prefix) in poison,
            )
            outside = look(
                scene.collector.published,
                scene.collector.fed,
                poison,
                prefix=prefix,
                read={
                    topic for replica in config.replicas() for topic in config.inputs(replica.role)
                },
                joined=config.is_joined,
            )
            self._report(comparison, outside, exits, scene)
            return [
                *_log_problems(scene, config),
                *outside.problems(),
                *_problems(comparison, config),
                *exits.problems(),
                *(str(each) for each in scene.faults.foreigners.ended if each.is_defect),
            ]

    def _scene(
        self, stack: ExitStack, cluster: Cluster, config_path: Path, config: Config
    ) -> Scene:
        say = self._clock.say
        collector = stack.enter_context(closing(Collector(config)))
        log = stack.enter_context(self._log_path.open("wb"))
        workers = stack.enter_context(
            Supervisor(
                config_path,
                config.replicas(),
                environment_of=self._environment_of,
                stderr=log,
                report=say,
            )
        )
        feeds: list[RecordedFeed] = []
        references: list[Reference] = []

        def add(partition: int) -> RecordedFeed:
            stream = self._stream(partition)
            rate = self._options.spread_rate
            feeds.append(stack.enter_context(closing(RecordedFeed(config, stream, rate))))
            references.append(stack.enter_context(closing(Reference(config_path, stream))))
            return feeds[-1]

        def add_new(partition: int) -> None:
            collector.add_partition(grown, partition)
            add(partition).start()

        for partition in PARTITIONS:
            add(partition)
        grown = [*config.inputs("join"), config.source] if config.is_joined else [config.source]
        topics = Topics(config)
        faults = Faults(
            topics,
            Poisoner(config, topics, self._options.seed),
            Foreigners(self._folder, self._settings),
            stack.enter_context(closing(Recoveries(config))),
            grown,
            add_new,
        )
        disturber = stack.enter_context(closing(self._disturber(workers, cluster, faults)))
        return Scene(workers, disturber, feeds, collector, references, faults)

    def _configure(self, bootstrap_servers: str) -> tuple[Path, Config]:
        prefix = f"chaos-{secrets.token_hex(4)}."
        base = SETTINGS if self._options.joined else UNJOINED
        self._settings = {**base, "topics": {**base["topics"], "prefix": prefix}}
        path = write_config(self._folder / "chaos.toml", self._settings)
        # of this process too: the workers and the reference inherit them
        os.environ |= {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
            "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self._folder / "checkpoints"),
            "FLUXPLAIN_CHECKPOINT__INTERVAL_S": str(CHECKPOINT_INTERVAL_S),
        }
        if self._options.store == "topic":
            os.environ |= {
                "FLUXPLAIN_CHECKPOINT__STORE": "topic",
                "FLUXPLAIN_CHECKPOINT__KEY": secrets.token_hex(32),
            }
        return path, load_config(path)

    def _environment_of(self, name: str) -> dict[str, str]:
        if self._options.store == "directory":
            return {}
        # as if each were on a machine of its own
        return {"FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self._folder / "checkpoints" / name)}

    def _disturber(self, workers: Supervisor, cluster: Cluster, faults: Faults) -> Disturber:
        schedule = make_schedule(
            self._options.seed,
            self._options.wanted,
            span_s=DISTURBED * self._options.length_s,
            session_timeout_s=SESSION_TIMEOUT_S,
            targets=self._options.targets,
        )
        return Disturber(schedule, workers, cluster, faults, tell=self._clock.say)

    def _stream(self, partition: int) -> Stream:
        records = -(-self._options.records // len(PARTITIONS))
        if partition not in PARTITIONS:
            records //= 4  # it comes later
        told = self._options.most_delay, self._options.seed, self._options.joined
        return Stream(partition, records, *told)

    def _start(self, scene: Scene) -> None:
        """Start all, and wait for the first explanation."""
        scene.collector.start()
        scene.workers.start(WORKERS)
        for feed in scene.feeds:
            feed.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while not scene.collector.messages["explanations"]:
            _check(time.monotonic() < deadline, f"no explanation in {START_TIMEOUT_S:.0f} s")
            _check_threads(scene)
            scene.workers.check()
            time.sleep(0.1)
        scene.faults.recoveries.start()

    def _disturb(self, scene: Scene) -> None:
        """Disturb until all is done and fed."""
        start = time.monotonic()
        limit_s = PATIENCE * self._options.length_s + START_TIMEOUT_S
        while any(feed.is_alive() for feed in scene.feeds):
            elapsed_s = time.monotonic() - start
            scene.disturber.tick(elapsed_s)
            if scene.disturber.finished():
                for feed in scene.feeds:
                    feed.may_end.set()
            self._progress(scene)
            self._offer(scene)
            done = scene.disturber.counts()
            _check(elapsed_s < limit_s, f"after {elapsed_s:.0f} s not all was disturbed: {done}")
            time.sleep(0.1)
        _check_threads(scene)

    def _offer(self, scene: Scene) -> None:
        """Hand the references what was read since the last time."""
        if time.monotonic() - self._offered_at < OFFER_S:
            return
        self._offered_at = time.monotonic()
        for reference in scene.references:
            reference.offer(scene.collector.joined[reference.partition])

    def _await(self, scene: Scene, config: Config) -> Published:
        """Return what must be published, once all is done or nothing comes any more."""
        deadline = time.monotonic() + DRAIN_TIMEOUT_S
        while time.monotonic() < deadline and any(_lags(config).values()):
            scene.workers.check()
            self._progress(scene)
            if time.monotonic() - scene.collector.newest_at > STALL_S:
                break
            time.sleep(0.5)
        time.sleep(QUIET_S)
        expected: Published = {}
        for reference in scene.references:
            collector, partition = scene.collector, reference.partition
            expected |= reference.published(collector.joined[partition])
        return expected

    def _progress(self, scene: Scene) -> None:
        _check_threads(scene)
        self._clock.progress(lambda: progress(_count(scene), scene.collector, scene.disturber))

    def _report(self, comparison: Comparison, outside: Outside, exits: Exits, scene: Scene) -> None:
        found = numbers(
            _count(scene), comparison, scene.collector, scene.disturber, exits, self._log_path
        )
        found |= {**outside.numbers(), **scene.faults.recoveries.numbers()}
        found["wall time"] = f"{self._clock.elapsed_s():.0f} s"
        for line in ("", *lines(found), *comparison.examples, *outside.examples()):
            say(line)


def _stop(scene: Scene) -> Exits:
    """Stop the workers, see how they ended, and read the topics to their end."""
    workers = scene.workers
    workers.check()
    names = workers.running()  # those that died and wait for their restart are counted already
    workers.stop()
    scene.collector.finish()
    stopped = [Stop(workers.exit_statuses[name]) for name in names]
    return Exits(workers.deaths, scene.disturber.killed, scene.disturber.removed, stopped)


def _log_problems(scene: Scene, config: Config) -> list[str]:
    problems = []
    poison = set(scene.faults.poisoner.places)
    fed = {
        place: [v for offset, v in enumerate(values) if (*place, offset) not in poison]
        for place, values in scene.collector.fed.items()
    }
    # also where something is in the log of a partition that nobody fed
    for name, partition in sorted(fed.keys() | scene.fed.keys()):
        place = name, partition
        again = sent_again(fed.get(place, []), scene.fed.get(place, []))
        if again is None:
            problems.append(f"the log of {name}-{partition} is not what was fed")
        elif again:
            say(f"messages that a producer sent again to {name}-{partition}: {again}")
    if strange := scene.collector.unreadable - poison:
        problems.append(f"{len(strange)} messages in output topics are no records")
    return problems + (_join_problems(scene, config, fed.keys()) if config.is_joined else [])


def _join_problems(scene: Scene, config: Config, places: Collection[tuple[str, int]]) -> list[str]:
    """Return which partitions were not passed on in order, each to its own, and as a whole."""
    letters = letters_at(scene.collector.published, config.topics.prefix)
    problems = []
    for name, partition in places:
        joined = scene.collector.joined[partition]
        origins = [each.origin for each in joined if each.origin[0] == config.topic(name)]
        if any(each[1] != partition for each in origins):
            problems.append(f"{name}-{partition} was joined with another partition")
        first = [*dict.fromkeys(offset for _, p, offset in origins if p == partition)]
        if first != sorted(first):
            problems.append(f"{name}-{partition} was not joined in order")
        wanted = range(len(scene.collector.fed[name, partition]))
        lost = [o for o in {*wanted} - {*first} if not letters[name, partition, o]]
        if lost:
            problems.append(f"{len(lost)} of {name}-{partition} were not joined, first {min(lost)}")
    return problems


def _place(key: Identity, prefix: str) -> Place:
    """Return the place of a dead letter, by its identity."""
    return key[1].removeprefix(prefix), key[2], key[3]


def _problems(comparison: Comparison, config: Config) -> list[str]:
    problems = comparison.problems()
    if comparison.missing:
        through = comparison.expected - len(comparison.missing)
        problems.append(f"only {through:,} of {comparison.expected:,} went through")
        lags = ", ".join(f"{name} {lag:,}" for name, lag in _lags(config).items())
        problems.append(f"left unread: {lags}")
    return problems


def _count(scene: Scene) -> int:
    return sum(map(len, scene.fed.values()))


def _kill_all(cluster: Cluster) -> None:
    # quicker than to stop them, and as good for what is kept
    for node in BROKERS:
        cluster.kill_broker(node)


def _lags(config: Config) -> dict[str, int]:
    """Return what each role has not done of each topic: with that it is a stall, else a loss."""
    lags = {}
    for replica in config.replicas():
        for topic in config.inputs(replica.role):
            with closing(GroupOffsets(config, replica, topic)) as offsets:
                committed, ends = offsets.committed(), offsets.ends()
            lags[f"{replica} of {topic}"] = sum(end - committed[p] for p, end in ends.items())
    return lags


def _check_threads(scene: Scene) -> None:
    for feed in scene.feeds:
        _check(feed.error is None, f"the stream cannot be fed: {feed.error}")
    failure = scene.collector.failure
    _check(failure is None, f"the verifier cannot read: {failure!r}")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FailedError(otherwise)

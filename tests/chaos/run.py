"""One run: brokers, workers, stream and disturbances, and what is wrong in the end."""

import os
import secrets
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from deploy.kafka import Cluster
from pipeline.config import Config, load_config
from pipeline.kafka.app import SESSION_TIMEOUT_S
from pipeline.kafka.progress import GroupOffsets
from pipeline.kafka.topics import create_topics
from pipeline.supervisor import Supervisor
from schemas.late_label import LabelValue
from tests.behaviour.conftest import write_config
from tests.behaviour.kafka_pipeline import Published
from tests.chaos.collector import INPUTS, Collector
from tests.chaos.disturber import Disturber
from tests.chaos.exits import Exits, Stop
from tests.chaos.report import lines, numbers, progress
from tests.chaos.schedule import BROKERS, WORKERS, Store, Wanted, make_schedule
from tests.chaos.stream import PARTITIONS, SETTINGS, RecordedFeed, Reference, Stream
from tests.chaos.verifier import Comparison, compare
from tests.command import LOG, Clock, FailedError, say

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
    """

    seed: int
    records: int
    rate: float
    most_delay: int
    wanted: Wanted
    store: Store

    @property
    def length_s(self) -> float:
        """How long the stream is."""
        return self.records / len(PARTITIONS) / self.rate


@dataclass(frozen=True, slots=True)
class Scene:
    """Who takes part."""

    workers: Supervisor
    disturber: Disturber
    feeds: Sequence[RecordedFeed]
    collector: Collector
    references: Sequence[Reference]

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
            comparison = compare(
                scene.collector.published, expected, scene.collector.messages.total()
            )
            self._report(comparison, exits, scene)
            return [*_log_problems(scene), *_problems(comparison, config), *exits.problems()]

    def _scene(
        self, stack: ExitStack, cluster: Cluster, config_path: Path, config: Config
    ) -> Scene:
        say = self._clock.say
        collector = stack.enter_context(closing(Collector(config)))
        log = stack.enter_context(self._log_path.open("wb"))
        workers = stack.enter_context(
            Supervisor(
                config_path,
                config.parts(),
                environment_of=self._environment_of,
                stderr=log,
                tell=say,
            )
        )
        disturber = stack.enter_context(closing(self._disturber(workers, cluster)))
        streams = [self._stream(partition) for partition in PARTITIONS]
        feeds = [
            stack.enter_context(closing(RecordedFeed(config, stream, self._options.rate)))
            for stream in streams
        ]
        references = [
            stack.enter_context(closing(Reference(config_path, stream))) for stream in streams
        ]
        return Scene(workers, disturber, feeds, collector, references)

    def _configure(self, bootstrap_servers: str) -> tuple[Path, Config]:
        prefix = f"chaos-{secrets.token_hex(4)}."
        settings = {**SETTINGS, "topics": {**SETTINGS["topics"], "prefix": prefix}}
        path = write_config(self._folder / "chaos.toml", settings)
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

    def _disturber(self, workers: Supervisor, cluster: Cluster) -> Disturber:
        schedule = make_schedule(
            self._options.seed,
            self._options.wanted,
            span_s=DISTURBED * self._options.length_s,
            session_timeout_s=SESSION_TIMEOUT_S,
        )
        return Disturber(schedule, workers, cluster, tell=self._clock.say)

    def _stream(self, partition: int) -> Stream:
        records = -(-self._options.records // len(PARTITIONS))
        return Stream(partition, records, self._options.most_delay, self._options.seed)

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
            for reference in scene.references:
                reference.offer(scene.collector.joined[reference.partition])
            done = scene.disturber.counts()
            _check(elapsed_s < limit_s, f"after {elapsed_s:.0f} s not all was disturbed: {done}")
            time.sleep(0.1)
        _check_threads(scene)

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
            expected |= reference.published(scene.collector.joined[reference.partition])
        return expected

    def _progress(self, scene: Scene) -> None:
        _check_threads(scene)
        self._clock.progress(lambda: progress(_count(scene), scene.collector, scene.disturber))

    def _report(self, comparison: Comparison, exits: Exits, scene: Scene) -> None:
        found = numbers(
            _count(scene), comparison, scene.collector, scene.disturber, exits, self._log_path
        )
        found["wall time"] = f"{self._clock.elapsed_s():.0f} s"
        for line in ("", *lines(found), *comparison.examples):
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


def _log_problems(scene: Scene) -> list[str]:
    problems = [] if scene.collector.fed == scene.fed else ["the log is not what was fed"]
    for partition, joined in scene.collector.joined.items():
        for name in INPUTS:
            offsets = [each.origin[2] for each in joined if each.origin[0].endswith(name)]
            first = [*dict.fromkeys(offsets)]
            if first != list(range(len(scene.fed[name, partition]))):
                problems.append(f"{name}-{partition} was not joined in order and as a whole")
    return problems


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
    for part in config.parts():
        for topic in config.inputs(part.role):
            with closing(GroupOffsets(config, part, topic)) as offsets:
                committed, ends = offsets.committed(), offsets.ends()
            lags[f"{part} of {topic}"] = sum(end - committed[p] for p, end in ends.items())
    return lags


def _check_threads(scene: Scene) -> None:
    for feed in scene.feeds:
        _check(feed.error is None, f"the stream cannot be fed: {feed.error}")
    failure = scene.collector.failure
    _check(failure is None, f"the verifier cannot read: {failure!r}")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise FailedError(otherwise)

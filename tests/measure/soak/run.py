"""One run: a broker, the workers, the stream, and what has grown in the end."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

import orjson

from deploy.kafka import Cluster
from fluxplain.cli.supervisor import Supervisor
from fluxplain.config import Config, load_config
from fluxplain.kafka.topics import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets, PipelineProgress
from fluxplain.kafka.topics.reader import read_to_end
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.schemas import OUTPUTS
from fluxplain.schemas.late_label import LabelValue
from tests.kit.command import LOG, Clock, FailedError, say
from tests.kit.kafka_pipeline import wait_until_idle
from tests.kit.settings import write_config
from tests.measure.soak.samples import Samples, growth, table
from tests.measure.soak.stream import SETTINGS, observations, with_late_labels

MAX_LAG = 40_000
"""Records on their way: several checkpoints' worth in each role, so that none waits for another,
and few enough that all buffers are full well before the first mark."""

DRIFTS = 20
"""How often the stream's concept changes, in all."""

STALL_S = 120.0


class Soak:
    """A run, in a folder."""

    def __init__(self, records: int, most_delay: int, folder: Path, clock: Clock) -> None:
        self._records = records
        self._most_delay = most_delay
        self._labelled: set[str] = set()  # ids; a label that comes again is not answered
        self._folder = folder
        self._clock = clock
        self._samples = Samples(folder / "checkpoints")

    def problems(self) -> Sequence[str]:
        """Do it all, and return what is wrong."""
        with ExitStack() as stack:
            cluster = stack.enter_context(Cluster(brokers=1, tell=self._clock.say))
            label = {**SETTINGS["label"], "topic": self._most_delay > 0}
            path = write_config(self._folder / "soak.toml", {**SETTINGS, "label": label})
            config = load_config(path).on_broker(cluster.bootstrap_servers)
            create_topics(config)
            workers = stack.enter_context(self._workers(stack, path, config))
            workers.start()
            began_at = time.monotonic()
            self._feed(config, workers)
            took_s = time.monotonic() - began_at
            workers.stop()
            counts = {name: _count(config, name) for name in OUTPUTS}
            early = _early(config) if self._most_delay else 0
        return self._report(counts, early, workers, took_s)

    def _workers(self, stack: ExitStack, path: Path, config: Config) -> Supervisor:
        environment = {
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": config.kafka.bootstrap_servers,
            "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(self._folder / "checkpoints"),
        }
        log = stack.enter_context((self._folder / LOG).open("wb"))
        return Supervisor(
            path, config.replicas(), environment=environment, stderr=log, report=self._clock.say
        )

    def _feed(self, config: Config, workers: Supervisor) -> None:
        """Feed the stream, and wait until all of it is through."""

        def attend(fed: int, through: int) -> None:
            workers.check()
            self._samples.take_if_due(workers.running(), through)
            self._clock.progress(lambda: f"{fed:,} fed, {through:,} through; {self._memory()}")

        stream = self._stream(self._records // DRIFTS)
        options = ReplayOptions(max_lag=min(MAX_LAG, self._records // 5))
        replay(config, stream, options, report=attend)
        with closing(PipelineProgress(config, partition=0)) as progress:
            moved_at = time.monotonic()
            while progress.through < self._records:
                before = progress.through
                if progress.update() > before:
                    moved_at = time.monotonic()
                elif time.monotonic() - moved_at > STALL_S:
                    raise FailedError(f"only {before:,} records went through, then no more")
                attend(self._records, progress.through)
                time.sleep(0.2)

        def rest() -> None:
            workers.check()
            time.sleep(0.2)

        try:  # the last labels are behind all observations
            wait_until_idle(config, rest, timeout_s=STALL_S)
        except AssertionError as error:
            raise FailedError(f"it did not end in {STALL_S:.0f} s: {error}") from None

    def _memory(self) -> str:
        newest = {name: taken[-1][1] for name, taken in self._samples.taken.items()}
        return ", ".join(f"{name} {s.rss / 1e6:.0f} MB" for name, s in newest.items())

    def _stream(self, drift_every: int) -> Iterator[bytes | LabelValue]:
        if not self._most_delay:
            yield from islice(observations(drift_every), self._records)
            return
        for each in with_late_labels(self._records, drift_every, self._most_delay):
            if isinstance(each, LabelValue):
                self._labelled.add(orjson.loads(each.value)["id"])
            yield each

    def _report(
        self, counts: dict[str, int], early: int, workers: Supervisor, took_s: float
    ) -> Sequence[str]:
        marks = self._samples.at_marks(self._records)
        answered = counts["predictions"] + counts["dead-letters"] + early
        say("")
        for line in table(marks):
            say(line)
        labels = len(self._labelled)
        rate = self._records / took_s
        said = f"{self._records:,} observations in {took_s:.0f} s: {rate:,.0f} a second"
        say(f"{said}; {labels:,} labels came later" if self._most_delay else said)
        say(", ".join(f"{n:,} {name}" for name, n in counts.items()))
        if early:
            say(f"labels that were read before their observation, and answered with it: {early:,}")
        say(f"workers that died: {len(workers.deaths)}")
        problems = growth(marks)
        if workers.deaths:
            problems.append(f"workers died: {workers.deaths}")
        if answered != self._records + labels:
            problems.append(
                f"{answered:,} answers for {self._records:,} observations and {labels:,} labels "
                "that came later"
            )
        return problems


def _count(config: Config, topic: str) -> int:
    """Return how many messages a topic has ever had; nothing is cut off within a run."""
    with closing(GroupOffsets(config, "model", topic)) as offsets:
        return sum(offsets.ends().values())


def _early(config: Config) -> int:
    """Return how many observations found their label waiting: both have one prediction then.

    A label that is sent at once behind its observation, in another topic, may be read before it.
    """
    predictions = (orjson.loads(each.value() or b"") for each in read_to_end(config, "predictions"))
    return sum(each["y"] is not None and each["observation"] is None for each in predictions)

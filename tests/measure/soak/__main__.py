"""The command ``python -m tests.measure.soak``; its last line is the verdict."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Annotated

import orjson
import typer

from deploy.kafka import Cluster
from fluxplain.config import Config
from fluxplain.kafka.topics.progress import GroupOffsets, PipelineProgress
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.kafka.topics.topic_reader import read_to_end
from fluxplain.schemas import OUTPUTS
from fluxplain.schemas.late_label import LabelValue
from tests.kit.command import Clock, execute, say
from tests.kit.kafka_pipeline import wait_until_idle
from tests.kit.settings import write_config
from tests.kit.workers import Workers
from tests.measure.soak.samples import Samples, growth, table
from tests.measure.soak.stream import SETTINGS, observations, with_late_labels

MAX_LAG = 40_000
"""Records on their way: several checkpoints' worth in each role, so that none waits for another,
and few enough that all buffers are full well before the first mark."""

DRIFTS = 20
"""How often the stream's concept changes, in all."""

DRAIN_TIMEOUT_S = 600.0
"""Seconds that the records on their way may take, at most, when all are fed."""


class Soak:
    """One run: a broker, the workers, the stream, and what has grown in the end."""

    def __init__(self, records: int, most_delay: int, folder: Path, clock: Clock) -> None:
        self._records = records
        self._most_delay = most_delay
        self._labelled: set[str] = set()  # ids; a label that comes again is not answered
        self._folder = folder
        self._clock = clock
        self._samples = Samples(folder / "checkpoints")

    def problems(self) -> Sequence[str]:
        label = {**SETTINGS["label"], "topic": self._most_delay > 0}
        path = write_config(self._folder / "soak.toml", {**SETTINGS, "label": label})
        with (
            Cluster(brokers=1, tell=self._clock.say) as cluster,
            Workers(
                path, cluster.bootstrap_servers, self._folder, report=self._clock.say
            ) as workers,
        ):
            workers.start()
            began_at = time.monotonic()
            self._feed(workers)
            took_s = time.monotonic() - began_at
            workers.stop()
            counts = {name: _count(workers.config, name) for name in OUTPUTS}
            early = _early(workers.config) if self._most_delay else 0
        return self._report(counts, early, workers.deaths, took_s)

    def _feed(self, workers: Workers) -> None:

        def attend(fed: int, through: int) -> None:
            workers.check()
            self._samples.take_if_due(workers.running(), through)
            self._clock.progress(lambda: f"{fed:,} fed, {through:,} through; {self._memory()}")

        def rest() -> None:
            attend(self._records, progress.update())
            time.sleep(0.2)

        stream = self._stream(self._records // DRIFTS)
        options = ReplayOptions(max_lag=min(MAX_LAG, self._records // 5))
        replay(workers.config, stream, options, report=attend)
        with closing(PipelineProgress(workers.config, partition=0)) as progress:
            # the last labels are behind all observations
            wait_until_idle(workers.config, rest, timeout_s=DRAIN_TIMEOUT_S)

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
        self,
        counts: dict[str, int],
        early: int,
        deaths: Sequence[tuple[str, int]],
        took_s: float,
    ) -> Sequence[str]:
        marks = self._samples.at_marks(self._records)
        answered = counts["predictions"] + counts["dead-letters"] + early
        labels = len(self._labelled)
        rate = self._records / took_s
        said = f"{self._records:,} observations in {took_s:.0f} s: {rate:,.0f} a second"
        for line in ("", *table(marks)):
            say(line)
        say(f"{said}; {labels:,} labels came later" if self._most_delay else said)
        say(", ".join(f"{n:,} {name}" for name, n in counts.items()))
        if early:
            say(f"labels that were read before their observation, and answered with it: {early:,}")
        say(f"workers that died: {len(deaths)}")
        problems = growth(marks)
        if deaths:
            problems.append(f"workers died: {deaths}")
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


def soak(
    records: Annotated[
        int, typer.Option(min=10_000, help="Total number of observations.")
    ] = 500_000,
    most_delay: Annotated[
        int,
        typer.Option(
            min=0,
            max=10_000,
            help="Maximum delay of a label, in observations; 5 % of the labels then never arrive, "
            "and 1 % arrive twice. With 0, labels arrive with their observations.",
        ),
    ] = 0,
) -> None:
    """Put a long stream through all roles; no worker may grow, die or lose anything."""
    execute(
        "soak",
        lambda folder, clock: Soak(records, most_delay, folder, clock).problems(),
        passed="memory and open files are flat, no worker died, every record was answered",
    )


if __name__ == "__main__":
    typer.run(soak)

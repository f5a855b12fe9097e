"""What to plan for: what roles compute, hold and save, and what topics take on disk."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil

from fluxplain.cli.supervisor import ROLES
from fluxplain.kafka.topics.progress import PipelineProgress
from fluxplain.kafka.topics.replay import ReplayOptions, replay
from fluxplain.schemas import RECORDS
from tests.measure.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.measure.benchmarks.timing import Figure, Run
from tests.measure.soak.samples import MB, Sample, Samples

TOTAL, WARM = 12_000, 2_000
"""Observations in all, and before those whose computing is measured: all is compiled then."""


STREAMS, EACH = 9, 2_000
"""Streams, and observations of each."""


def roles_and_topics(run: Run) -> Iterator[Figure]:
    """Measure what each role computes, holds and saves, and what each topic takes on disk.

    All run on Kafka, one worker a role, with all methods, a forest of 10 trees, nine features and
    an explanation every 10 observations. Computing is CPU time, so what else the machine does is
    not in it. Memory and checkpoint are those at the end. The disk is that of one copy, compressed
    as it is in the log's segments, and shared out to the observations.
    """
    with rig(run, "Kafka", settings(ALL)) as it:
        it.start(*ROLES)
        values = observations(TOTAL)
        _through(it, values[:WARM], WARM)
        before = _cpu_seconds(it)
        _through(it, values[WARM:], TOTAL)
        spent = {
            name: 1000 * (after - before[name]) / (TOTAL - WARM)
            for name, after in _cpu_seconds(it).items()
        }
        samples = Samples(run.folder / "checkpoints")
        samples.take_if_due(it.workers.running(), TOTAL)
        assert it.kafka
        folder = it.kafka.folder
        sizes = {each.TOPIC: _bytes_of(folder, it.config.topic(each.TOPIC)) for each in RECORDS}
    total = sum(spent.values())
    for name, milliseconds in spent.items():
        what = f"{name}: CPU time of an observation, share of all roles'"
        yield Figure.of(what, milliseconds, total, "{:.2f} ms")
    for name, [(_, sample)] in samples.taken.items():
        yield Figure(
            f"{name}: checkpoints on disk, share of its resident memory",
            f"{sample.checkpoints / 1000:,.0f} kB",
            f"{sample.rss / MB:.0f} MB",
            sample.checkpoints / sample.rss,
        )
    observation = sizes["features"] / TOTAL
    for topic, size in sizes.items():
        what = f"{topic}: disk of an observation, against features"
        yield Figure.of(what, size / TOTAL, observation, "{:,.0f} bytes")


def further_streams(run: Run) -> Iterator[Figure]:
    """Measure what each of 8 further streams adds to one worker of each role.

    Everything is as for sizing; each stream has 2,000 observations, and computing is measured by
    the second half of them. Memory and checkpoints are the difference between nine streams and one,
    shared out to the eight.
    """
    alone, many = (_with_streams(run, n) for n in (1, STREAMS))
    for name, one in alone.items():
        several, more = many[name], STREAMS - 1
        what = f"{name}: CPU time of an observation of {STREAMS} streams, against one"
        yield Figure.of(what, several.milliseconds, one.milliseconds, "{:.2f} ms")
        memory = (several.sample.uss - one.sample.uss) / more
        yield Figure(
            f"{name}: memory of a further stream, share of a worker's with one",
            f"{memory / MB:.1f} MB",
            f"{one.sample.uss / MB:.0f} MB",
            memory / one.sample.uss,
        )
        more_kb = (several.sample.checkpoints - one.sample.checkpoints) / more / 1000
        what = f"{name}: checkpoints of a further stream, against those of one"
        yield Figure.of(what, more_kb, one.sample.checkpoints / 1000, "{:,.0f} kB")


@dataclass(frozen=True, slots=True)
class _Need:
    """What a worker needs: CPU time of an observation, and memory and checkpoints at the end."""

    milliseconds: float
    sample: Sample


def _with_streams(run: Run, n: int) -> dict[str, _Need]:
    fields = {**settings(ALL), "topics": {"features_partitions": STREAMS}}
    values, half = observations(EACH), EACH // 2
    with rig(run, "Kafka", fields) as it:
        it.start(*ROLES)
        for partition in range(n):
            _through(it, values[:half], half, partition)
        before = _cpu_seconds(it)
        for partition in range(n):
            _through(it, values[half:], EACH, partition)
        after = _cpu_seconds(it)
        samples = Samples(run.folder / "checkpoints")
        samples.take_if_due(it.workers.running(), EACH)
    each = 1000 / (n * (EACH - half))
    return {
        name: _Need(each * (after[name] - before[name]), taken[-1][1])
        for name, taken in samples.taken.items()
    }


def _through(it: Rig, values: Sequence[bytes], total: int, partition: int = 0) -> None:
    """Feed observations, and wait until as many in all have gone through all roles."""
    replay(it.config, values, ReplayOptions(partition=partition))
    with closing(PipelineProgress(it.config, partition=partition)) as progress:
        for _ in it.ticks(f"{total:,} observations go through"):
            it.run.clock.progress(lambda: f"{progress.update():,} of {total:,} observations")
            if progress.update() >= total:
                return


def _cpu_seconds(it: Rig) -> dict[str, float]:
    times = {name: psutil.Process(pid).cpu_times() for name, pid in it.workers.running().items()}
    return {name: each.user + each.system for name, each in times.items()}


def _bytes_of(folder: Path, topic: str) -> int:
    return sum(each.stat().st_size for each in folder.rglob(f"{topic}-*/*.log"))

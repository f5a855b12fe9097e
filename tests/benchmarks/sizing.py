"""What to plan for: what roles compute, hold and save, and what topics take on disk."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import psutil

from pipeline.kafka.progress import PipelineProgress
from pipeline.kafka.replay import ReplayOptions, replay
from pipeline.supervisor import ROLES
from schemas import RECORDS
from tests.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.benchmarks.run import Run
from tests.benchmarks.timing import Figure
from tests.soak.samples import MB, Samples

TOTAL, WARM = 12_000, 2_000
"""Observations in all, and before those whose computing is measured: all is compiled then."""


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
        yield Figure(
            f"{name}: CPU time of an observation, share of all roles'",
            f"{milliseconds:.2f} ms",
            f"{total:.2f} ms",
            milliseconds / total,
        )
    for name, [(_, sample)] in samples.taken.items():
        yield Figure(
            f"{name}: checkpoints on disk, share of its resident memory",
            f"{sample.checkpoints / 1000:,.0f} kB",
            f"{sample.rss / MB:.0f} MB",
            sample.checkpoints / sample.rss,
        )
    observation = sizes["features"] / TOTAL
    for topic, size in sizes.items():
        yield Figure(
            f"{topic}: disk of an observation, against features",
            f"{size / TOTAL:,.0f} bytes",
            f"{observation:,.0f} bytes",
            size / TOTAL / observation,
        )


def _through(it: Rig, values: Sequence[bytes], total: int) -> None:
    """Feed observations, and wait until as many in all have gone through all roles."""
    replay(it.config, values, ReplayOptions())
    with closing(PipelineProgress(it.config, partition=0)) as progress:
        for _ in it.ticks(f"{total:,} observations go through"):
            it.run.clock.progress(lambda: f"{progress.update():,} of {total:,} observations")
            if progress.update() >= total:
                return


def _cpu_seconds(it: Rig) -> dict[str, float]:
    times = {name: psutil.Process(pid).cpu_times() for name, pid in it.workers.running().items()}
    return {name: each.user + each.system for name, each in times.items()}


def _bytes_of(folder: Path, topic: str) -> int:
    """Return the size of a topic's segments on a broker's disk."""
    return sum(each.stat().st_size for each in folder.rglob(f"{topic}-*/*.log"))

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
        needs = _needs(it, [0], TOTAL, WARM)
        assert it.kafka
        folder = it.kafka.folder
        sizes = {each.TOPIC: _bytes_of(folder, it.config.topic(each.TOPIC)) for each in RECORDS}
    total = sum(need.milliseconds for need in needs.values())
    for name, need in needs.items():
        what = f"{name}: CPU time of an observation, share of all roles'"
        yield Figure.of(what, need.milliseconds, total, "{:.2f} ms")
    for name, need in needs.items():
        yield Figure(
            f"{name}: checkpoints on disk, share of its resident memory",
            f"{need.sample.checkpoints / 1000:,.0f} kB",
            f"{need.sample.rss / MB:.0f} MB",
            need.sample.checkpoints / need.sample.rss,
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
    needs = []
    for streams in (1, STREAMS):
        fields = {**settings(ALL), "topics": {"features_partitions": STREAMS}}
        with rig(run, "Kafka", fields) as it:
            needs.append(_needs(it, range(streams), EACH, EACH // 2))
    alone, many = needs
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


def _needs(it: Rig, partitions: Sequence[int], total: int, warm: int) -> dict[str, _Need]:
    """Feed all partitions; return worker → its needs, computing without the `warm` first."""
    it.start(*ROLES)
    values = observations(total)
    for partition in partitions:
        _through(it, values[:warm], warm, partition)
    before = _cpu_seconds(it)
    for partition in partitions:
        _through(it, values[warm:], total, partition)
    after = _cpu_seconds(it)
    samples = Samples(it.run.folder / "checkpoints")
    samples.take_if_due(it.workers.running(), total)
    each = 1000 / (len(partitions) * (total - warm))
    return {
        name: _Need(each * (after[name] - before[name]), taken[-1][1])
        for name, taken in samples.taken.items()
    }


def _through(it: Rig, values: Sequence[bytes], total: int, partition: int) -> None:
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

"""What a second worker gains."""

import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from statistics import median

from pipeline.config import Role
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.progress import GroupOffsets
from tests.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.benchmarks.run import Run
from tests.benchmarks.timing import Figure, quartiles

REPETITIONS = 3

PARTITIONS = range(2)

RECORDS, STEADY = 4000, 1000
"""Of each partition: in all, and before what is measured."""


def two_workers(run: Run) -> Iterator[Figure]:
    """Measure the model role alone, on two partitions of ``features``, with one and two workers.

    When all have their partitions and some records have gone through, the same records come into
    both partitions, all at once; measured is the time until the last one is predicted. One worker
    and two take turns, each time on a new broker. It is on the same machine, and takes its share of
    the cores.
    """
    pairs = [(_rate(run, "model", "model"), _rate(run, "model")) for _ in range(REPETITIONS)]
    two, one = (median(rates) for rates in zip(*pairs, strict=True))
    ratio, spread = quartiles([a / b for a, b in pairs])
    yield Figure(
        "full set, Kafka: records per second of two model workers, against one",
        f"{two:.0f}",
        f"{one:.0f}",
        ratio,
        spread,
        bar="at least 1.6",
    )


def _rate(run: Run, *roles: Role) -> float:
    """Return the records a second of both partitions together."""
    topics = {"features_partitions": len(PARTITIONS)}
    values = observations(RECORDS)
    with rig(run, "Kafka", {**settings(ALL), "topics": topics}) as it:
        it.start(*roles)
        _seconds(it, values[:STEADY], STEADY)
        seconds = _seconds(it, values[STEADY:], RECORDS)
    return len(PARTITIONS) * (RECORDS - STEADY) / seconds


def _seconds(it: Rig, values: list[bytes], end: int) -> float:
    """Send records to each partition, and return the seconds until all have so many predictions."""
    began_at = time.monotonic()
    producer = RecordProducer(it.config)
    for value in values:
        for partition in PARTITIONS:
            producer.send(it.config.topic("features"), value, place=partition)
    producer.flush()
    with closing(GroupOffsets(it.config, "model", "predictions")) as predictions:
        for _ in it.ticks(f"{end:,} records of each partition are predicted"):
            done = sum(predictions.ends().values())
            it.run.clock.progress(
                partial("{} workers: {:,} predicted".format, len(it.started), done)
            )
            if done >= len(PARTITIONS) * end:
                break
    return time.monotonic() - began_at

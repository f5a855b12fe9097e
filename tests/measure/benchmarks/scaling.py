"""What a second worker gains: on a partition of its own, or as a shard of the same one."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.producer import RecordProducer
from fluxplain.stages import Message, ModelStage, process
from fluxplain.stages.intake.sample import Sample
from tests.measure.benchmarks.rig import ALL, Rig, observations, rig, settings
from tests.measure.benchmarks.timing import Figure, Run, quartiles

REPETITIONS = 3

RECORDS, STEADY = 4000, 1000
"""Of each partition: in all, and before what is measured."""

MODEL = Replica("model")


def two_workers(run: Run) -> Iterator[Figure]:
    """Measure the model role alone, on two partitions of ``features``, with one and two workers.

    When all have their partitions and some records have gone through, the same records come into
    both partitions, all at once; measured is the time until the last one is taken. One worker and
    two take turns, each time on a new broker. It is on the same machine, and takes its share of the
    cores.
    """
    pairs = [
        (_rate(run, [MODEL, MODEL], partitions=2), _rate(run, [MODEL], partitions=2))
        for _ in range(REPETITIONS)
    ]
    what = "full set, Kafka: records per second of two model workers, against one"
    yield Figure.of_pairs(what, pairs, bar="at least 1.6")


def two_shards(run: Run) -> Iterator[Figure]:
    """Measure the model role alone, on one partition, as one shard and as two.

    As :func:`two_workers`. Each shard learns everything and evaluates half of the features, so two
    are at most (learning + evaluation) ÷ (learning + evaluation / 2) times as fast; both parts are
    measured in a loop in one process.
    """
    run.clock.say("the model stage alone")
    limit = _limit()
    pairs = [(_rate(run, _shards(2)), _rate(run, _shards(1))) for _ in range(REPETITIONS)]
    two, one = (median(rates) for rates in zip(*pairs, strict=True))
    ratio, spread = quartiles([a / b / limit for a, b in pairs])
    yield Figure(
        "full set, Kafka: speed-up by a second shard, against its limit",
        f"{ratio * limit:.2f} ({two:.0f} ÷ {one:.0f} records/s)",
        f"{limit:.2f}",
        ratio,
        spread,
        bar="at least 0.9",
    )


def _shards(n: int) -> list[Replica]:
    return [Replica("model", shard, n) for shard in range(n)]


def _limit() -> float:
    """Return how many times as fast two shards could be."""
    config, values = Config(**settings(ALL)), observations(RECORDS)
    stage, model = ModelStage(config, "features-0"), config.make_model()
    asking = learning = 0.0
    for offset, value in enumerate(values):
        message = Message("features", 0, offset, None, value)
        sample = stage.decode(message)
        assert isinstance(sample, Sample)
        before = time.perf_counter()
        process(stage, message)
        between = time.perf_counter()
        model.learn_one(sample.x, sample.y)
        if offset >= STEADY:
            learning += time.perf_counter() - between
            asking += between - before
    asking -= learning
    return (learning + asking) / (learning + asking / 2)


def _rate(run: Run, replicas: Sequence[Replica], partitions: int = 1) -> float:
    """Return the records a second of all partitions together."""
    fields = settings(ALL)
    fields["model"] = {**fields["model"], "shards": replicas[0].shards}
    values = observations(RECORDS)
    with rig(run, "Kafka", {**fields, "topics": {"features_partitions": partitions}}) as it:
        it.start(*replicas)
        _seconds(it, values[:STEADY], STEADY, partitions)
        seconds = _seconds(it, values[STEADY:], RECORDS, partitions)
    return partitions * (RECORDS - STEADY) / seconds


def _seconds(it: Rig, values: list[bytes], end: int, partitions: int) -> float:
    """Send records to each partition, and return the seconds until all have been taken."""
    began_at = time.monotonic()
    producer = RecordProducer(it.config)
    for value in values:
        for partition in range(partitions):
            producer.send(it.config.topic("features"), value, partition=partition)
    producer.flush()
    for now in it.ticks(f"{end:,} records of each partition are taken"):
        standings = [it.workers.next_offsets(name).items() for name in it.started]
        taken = [offset for standing in standings for _, offset in standing]
        it.run.clock.progress(
            partial("{} workers: {:,} taken".format, len(it.started), min(taken, default=0))
        )
        if len(taken) >= max(partitions, len(it.started)) and min(taken) >= end:
            return now - began_at
    raise AssertionError("ticks end with an error")

"""Which client sends faster: librdkafka's, which the pipeline takes, or aiokafka's, Faust's own."""

import asyncio
import time
from collections.abc import Iterator, Sequence

from fluxplain.config import Config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.schemas import Evaluation, Explanation
from fluxplain.stages import ExplainerStage, Message, ModelStage, process
from tests.kit.support import published
from tests.measure.benchmarks.rig import ALL, observations, rig, settings
from tests.measure.benchmarks.timing import Figure, Run

MESSAGES = 20_000

REPETITIONS = 5

OBSERVATIONS = 300


def two_clients(run: Run) -> Iterator[Figure]:
    """Measure the messages per second of both clients, until the broker has taken the last.

    Both send the same explanations to Kafka from one process, in turns, each as the pipeline does:
    idempotent, acknowledged by all in-sync replicas, with lz4. The time that the process itself
    computes is what a worker cannot use for its stage.
    """
    with rig(run, "Kafka", settings(ALL)) as it:
        values = _explanations(it.config)
        _librdkafka(it.config, values)  # connections, and the topic's place in memory
        pairs = []
        for i in range(REPETITIONS):
            run.clock.say(f"{i + 1} of {REPETITIONS}")
            pairs.append(
                (_librdkafka(it.config, values), asyncio.run(_aiokafka(it.config, values)))
            )
    for what, unit, place in (("wall", "messages/s", 0), ("CPU", "messages per second of CPU", 1)):
        yield Figure.of_pairs(
            f"producer, {what} time: librdkafka, against aiokafka",
            [(MESSAGES / ours[place], MESSAGES / other[place]) for ours, other in pairs],
            f"{{:,.0f}} {unit}",
        )


def _explanations(config: Config) -> list[bytes]:
    """Return explanations as they stand in the topic."""
    model, explainer = ModelStage(config, f"{config.topic('features')}-0"), ExplainerStage(config)
    values: list[bytes] = []
    for offset, value in enumerate(observations(OBSERVATIONS)):
        for record in published(model, Message("features", 0, offset, None, value)):
            if isinstance(record, Evaluation):
                evaluated = Message("evaluations", 0, offset, None, record.encode())
                explained = process(explainer, evaluated)
                values += [each.encode() for each in explained if isinstance(each, Explanation)]
    return [values[i % len(values)] for i in range(MESSAGES)]


def _librdkafka(config: Config, values: Sequence[bytes]) -> tuple[float, float]:
    """Return the seconds, and the seconds of CPU."""
    producer = RecordProducer(config)
    topic, partitions = config.topic("explanations"), config.topics.partitions
    wall, cpu = time.perf_counter(), time.process_time()
    for i, value in enumerate(values):
        producer.send(topic, value, partition=i % partitions)
    producer.flush()
    return time.perf_counter() - wall, time.process_time() - cpu


async def _aiokafka(config: Config, values: Sequence[bytes]) -> tuple[float, float]:
    from aiokafka import AIOKafkaProducer  # noqa: PLC0415  of Faust

    producer = AIOKafkaProducer(
        bootstrap_servers=config.kafka.bootstrap_servers,
        enable_idempotence=True,
        acks="all",
        compression_type="lz4",
        linger_ms=2,
    )
    topic, partitions = config.topic("explanations"), config.topics.partitions
    await producer.start()
    try:
        wall, cpu = time.perf_counter(), time.process_time()
        sent = [
            await producer.send(topic, value, partition=i % partitions)
            for i, value in enumerate(values)
        ]
        await asyncio.gather(*sent)
        return time.perf_counter() - wall, time.process_time() - cpu
    finally:
        await producer.stop()

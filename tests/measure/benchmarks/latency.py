"""How long after an observation its explanations are there."""

import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from threading import Event, Thread

import orjson
from confluent_kafka import Producer, TopicPartition

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.kafka.client import asking_consumer, client_settings
from fluxplain.kafka.topics.progress import GroupOffsets, PipelineProgress
from tests.kit.waiting import FailedError
from tests.measure.benchmarks.rig import (
    BROKERS,
    FEATURES,
    METHODS,
    Rig,
    observations,
    rig,
    settings,
)
from tests.measure.benchmarks.timing import Figure, Run

RATES = {"Kafka": (60, 120), "embedded broker": (60,)}
"""Records a second."""

GROWING, GROWING_RATE = 3000, 100
"""How many records come before what is measured, for the trees to grow, and how many a second."""

WARM_UP_S, MEASURED_S = 5.0, 30.0
"""How long observations come at each rate: several checkpoints are among them."""

FETCH_MAX_WAIT_MS = 10
"""The embedded broker holds a fetch that finds nothing for as long, whatever comes meanwhile."""

BARS_MS = {"median": 50.0, "99th percentile": 250.0}


def at_rates(run: Run) -> Iterator[Figure]:
    """Measure the time from ``features`` to ``explanations`` at fixed rates.

    Each observation is explained at once (``emit_every = 1``). Observations are sent at a fixed
    pace, whether or not the earlier ones are explained. The time of each runs from when it was due
    until a consumer on this machine has the last of its explanations: of all features and methods.
    """
    for name, methods in METHODS.items():
        explain = {**settings(methods)["explain"], "emit_every": 1}
        for broker in BROKERS:
            with rig(run, broker, {**settings(methods), "explain": explain}) as it:
                it.start(*ROLES)
                send_at_pace(it, observations(GROWING), GROWING_RATE)
                latencies = {
                    rate: _at_pace(it, rate, len(methods) * len(FEATURES)) for rate in RATES[broker]
                }
            for rate, seconds in latencies.items():
                title = f"{name}, {broker}: from features to explanations at {rate} records/s"
                for what, ms in summary(seconds).items():
                    bar = "below 1" if broker == "Kafka" else None
                    yield Figure(
                        f"{title}, {what}",
                        f"{ms:.1f} ms",
                        f"{BARS_MS[what]:.0f} ms",
                        ms / BARS_MS[what],
                        bar=bar,
                    )


def summary(latencies: Sequence[float]) -> dict[str, float]:
    *_, highest = statistics.quantiles(latencies, n=100)
    return {"median": 1e3 * statistics.median(latencies), "99th percentile": 1e3 * highest}


def _at_pace(it: Rig, rate: float, explanations: int) -> list[float]:
    """Return the seconds from each observation's due time to the last of its explanations."""
    warm_up, records = int(WARM_UP_S * rate), int((WARM_UP_S + MEASURED_S) * rate)
    with closing(PipelineProgress(it.config, partition=0)) as progress:
        first = progress.end_of_features()
        for _ in it.ticks("every role has caught up"):
            if progress.update() >= first:
                break
    values = observations(first + records)[first:]
    with arrivals(it.config) as messages:
        due = send_at_pace(it, values, rate)
        for _ in it.ticks("all explanations arrive"):
            if len(messages) >= records * explanations:
                break
    last = last_of_each(messages, explanations)
    if last.keys() != set(range(first, first + records)):
        raise FailedError("explanations are not those of the observations that were sent")
    return [last[first + i] - due[i] for i in range(warm_up, records)]


def send_at_pace(it: Rig, values: Iterable[bytes], rate: float) -> list[float]:
    """Send each observation when it is due, and return these times.

    One that could only be sent later was due all the same: what holds up the sender must not make
    latencies look smaller.
    """
    producer = Producer({**client_settings(it.config), "linger.ms": 0, "acks": "all"})
    topic, due = it.config.topic("features"), []
    began_at = time.monotonic()
    for i, value in enumerate(values):
        due.append(began_at + i / rate)
        it.run.clock.progress(partial("{:,} sent at {:.0f} a second".format, i, rate))
        time.sleep(max(due[-1] - time.monotonic(), 0.0))
        producer.produce(topic, value=value, partition=0)
        producer.poll(0)
    producer.flush()
    return due


@contextmanager
def arrivals(config: Config) -> Iterator[list[tuple[float, bytes]]]:
    """Consume ``explanations`` from now on; yield the monotonic time and value of each message."""
    with closing(GroupOffsets(config, "drift", "explanations")) as offsets:
        ends = offsets.ends()
    topic = config.topic("explanations")
    settings = {"fetch.wait.max.ms": FETCH_MAX_WAIT_MS}
    consumer = asking_consumer(config, config.topic("arrivals"), **settings)
    consumer.assign([TopicPartition(topic, p, end) for p, end in ends.items()])
    messages: list[tuple[float, bytes]] = []
    stopping = Event()

    def read() -> None:
        while not stopping.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                messages.append((time.monotonic(), message.value() or b""))

    thread = Thread(target=read, name="arrivals", daemon=True)
    thread.start()
    try:
        yield messages
    finally:
        stopping.set()
        thread.join()
        consumer.close()


def last_of_each(messages: Iterable[tuple[float, bytes]], explanations: int) -> Mapping[int, float]:
    """Return seq → when the last of its explanations came.

    An observation with more or fewer explanations raises a FailedError.
    """
    times: dict[int, list[float]] = {}
    for at, value in messages:
        times.setdefault(orjson.loads(value)["seq"], []).append(at)
    for seq, each in times.items():
        if len(each) != explanations:
            raise FailedError(f"seq {seq} has {len(each)} explanations instead of {explanations}")
    return {seq: max(each) for seq, each in times.items()}

"""The pipeline on a broker, beside its model stage alone and beside one bare consumer.

All three take the same records, one after the other in one run. The roles are processes of their
own, on the same machine as the broker.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import orjson
from river.datasets import synth

from deploy.kafka import Cluster
from pipeline.config import Config, load_config
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.progress import GroupOffsets
from pipeline.kafka.replay import ReplayOptions, replay
from pipeline.kafka.topics import create_topics
from pipeline.stages import Message, ModelStage, process
from pipeline.supervisor import Supervisor
from tests.behaviour.conftest import write_config
from tests.benchmarks import library
from tests.benchmarks.run import Run
from tests.benchmarks.timing import Figure
from tests.command import FailedError

RECORDS = 8000

STEADY = 2000
"""Records before the measured ones: everything is warm, and the trees have grown."""

PEER_RECORDS = 400
"""That the bare consumer takes, behind as many that it only learns as are not measured."""

TIMEOUT_S = 300.0

QUIET_S = 4.0
"""After so long without an explanation all are there."""

FEATURES = list(next(library.agrawal())[0])

ALL = ["ipfi", "isage", "ipdp"]


def throughput(_run: Run) -> Iterator[Figure]:
    """Measure records per second on both brokers, with all methods and without iPDP."""
    for methods, bar in ((ALL, 5.0), (ALL[:2], 2.0)):
        name = "full set" if methods == ALL else "iPFI and iSAGE"
        stage = _stage_alone(_config(methods))
        for broker in (_real, _embedded):
            with ExitStack() as stack:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                path = write_config(folder / "bench.toml", _settings(methods))
                config, where = broker(stack, load_config(path))
                rate = _pipeline(stack, config, path, folder)
                peer = _bare_consumer(config, methods)
            title = f"{name}, {where}: records per second"
            yield Figure(
                f"{title}, share of the model stage alone",
                f"{rate:.0f}",
                f"{stage:.0f}",
                rate / stage,
                bar="at least 0.8",
            )
            yield Figure(
                f"{title}, against a bare consumer with iXAI",
                f"{rate:.0f}",
                f"{peer:.0f}",
                rate / peer,
                bar=f"at least {bar:.0f}",
            )


def _settings(methods: list[str]) -> dict[str, Any]:
    return {
        "features": dict.fromkeys(FEATURES, "numeric"),
        "label": {"type": "integer"},
        "model": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 10}},
        "explain": {"methods": methods, "isage": {"inner_samples": 1}},
    }


def _config(methods: list[str]) -> Config:
    return Config(**_settings(methods))


def _values() -> Iterator[bytes]:
    data = synth.Agrawal(classification_function=1, seed=7).take(RECORDS)
    return (orjson.dumps({"x": x, "y": y}) for x, y in data)


def _stage_alone(config: Config) -> float:
    """Return the records a second of the model stage, in a loop."""
    stage = ModelStage(config, "features-0")
    for offset, value in enumerate(_values()):
        if offset == STEADY:
            begin = time.perf_counter()
        list(process(stage, Message("features", 0, offset, None, value)))
    return (RECORDS - STEADY) / (time.perf_counter() - begin)


def _real(stack: ExitStack, config: Config) -> tuple[Config, str]:
    cluster = stack.enter_context(Cluster(brokers=1))
    config = config.on_broker(cluster.bootstrap_servers)
    create_topics(config)
    return config, "Kafka"


def _embedded(stack: ExitStack, config: Config) -> tuple[Config, str]:
    config = stack.enter_context(EmbeddedBroker()).settings_for(config)
    create_topics(config)
    return config, "embedded broker"


def _pipeline(stack: ExitStack, config: Config, path: Path, folder: Path) -> float:
    """Return the records a second that go through all roles, in steady state."""
    environment = {
        "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": config.kafka.bootstrap_servers,
        "FLUXPLAIN_CHECKPOINT__DIRECTORY": str(folder / "checkpoints"),
    }
    log = stack.enter_context((folder / "workers.log").open("wb"))
    workers = Supervisor(path, environment=environment, stderr=log)
    stack.callback(workers.stop)
    workers.start()
    replay(config, _values(), ReplayOptions(max_lag=RECORDS), report=lambda *_: workers.check())
    begin = end = 0.0
    explained, deadline = 0, time.monotonic() + TIMEOUT_S
    with (
        closing(GroupOffsets(config, "model", "predictions")) as predictions,
        closing(GroupOffsets(config, "model", "explanations")) as explanations,
    ):
        while True:
            predicted = sum(predictions.ends().values())
            before, explained = explained, sum(explanations.ends().values())
            now = time.monotonic()
            begin = begin or (now if predicted >= STEADY else 0.0)
            if explained > before:
                end = now
            elif predicted >= RECORDS and now - end > QUIET_S:
                return (RECORDS - STEADY) / (end - begin)
            if now > deadline:
                raise FailedError(f"only {predicted:,} of {RECORDS:,} records went through")
            workers.check()
            time.sleep(0.1)


def _bare_consumer(config: Config, methods: list[str]) -> float:
    """Return the records a second of one consumer that predicts, explains and learns."""
    return asyncio.run(_consume(config, methods))


async def _consume(config: Config, methods: list[str]) -> float:
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415  of Faust

    model = config.make_model()
    sides = library.ixai(model, FEATURES)
    if "ipdp" in methods:
        sides["pdp"] = library.ours(model, FEATURES, evaluator="generic")["pdp"]
    consumer = AIOKafkaConsumer(
        config.topic("features"),
        bootstrap_servers=config.kafka.bootstrap_servers,
        auto_offset_reset="earliest",
        group_id="bare",
    )
    await consumer.start()
    try:
        taken = 0
        async for message in consumer:
            record = orjson.loads(message.value)
            x, y = record["x"], record["y"]
            if taken == STEADY:
                begin = time.perf_counter()
            if taken >= STEADY - 200:  # its storages fill before it is measured
                model.predict_proba_one(x)
                for explain in sides.values():
                    explain(x, y)
            model.learn_one(x, y)
            taken += 1
            if taken == STEADY + PEER_RECORDS:
                return PEER_RECORDS / (time.perf_counter() - begin)
    finally:
        await consumer.stop()
    raise FailedError("the features topic ended early")

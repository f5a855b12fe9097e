"""The pipeline on a broker, beside its model stage alone and beside one bare consumer."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from fluxplain.config import Config
from fluxplain.forest import as_river
from fluxplain.stages import Message, ModelStage, process
from tests.kit.waiting import FailedError
from tests.measure.benchmarks.case import WARM_UP, generic_pdp, ixai
from tests.measure.benchmarks.rig import (
    BROKERS,
    FEATURES,
    METHODS,
    full_speed,
    observations,
    rig,
    settings,
)
from tests.measure.benchmarks.timing import Figure, Run

RECORDS = 12_000

STEADY = 4_000
"""Records before the measured ones: everything is warm, and the trees have grown."""

ROUNDS = 3

PEER_RECORDS = 400
"""That the bare consumer takes, behind as many that it only learns as are not measured."""

BARS = {"full set": 5.0, "iPFI and iSAGE": 2.0}
"""How many times faster than the bare consumer."""


def throughput(run: Run) -> Iterator[Figure]:
    """Measure records per second on both brokers, with all methods and without iPDP.

    All take the same records, in turn, and that three times: the figures are medians. The roles are
    processes of their own, on the same machine as the broker; the embedded one is fed as
    ``fluxplain replay`` does, which holds back. The model stage alone is a loop in one process. The
    bare consumer predicts, explains with iXAI (and with generic iPDP) and learns, publishes nothing
    and saves nothing; the roles are stopped then.
    """
    for name, methods in METHODS.items():
        rounds = [_round(run, name, methods) for _ in range(ROUNDS)]
        stages, *by_broker = zip(*rounds, strict=True)
        for broker, measured in zip(BROKERS, by_broker, strict=True):
            rates, peers = zip(*measured, strict=True)
            title = f"{name}, {broker}: records per second"
            what, pairs = (
                f"{title}, share of the model stage alone",
                zip(rates, stages, strict=True),
            )
            yield Figure.of_pairs(what, pairs, bar="at least 0.8")
            what = f"{title}, against a bare consumer with iXAI"
            pairs = zip(rates, peers, strict=True)
            yield Figure.of_pairs(what, pairs, bar=f"at least {BARS[name]:.0f}")


def _round(run: Run, name: str, methods: list[str]) -> tuple[Any, ...]:
    """Return the rate of the stage alone, and by broker that of the pipeline and of the peer."""
    run.clock.say(f"{name}: the model stage alone")
    measured: list[Any] = [_stage_alone(Config(**settings(methods)), observations(RECORDS))]
    for broker in BROKERS:
        with rig(run, broker, settings(methods)) as it:
            rate = full_speed(it, RECORDS, STEADY)
            it.workers.stop()
            run.clock.say(f"{name}, {broker}: a bare consumer")
            measured.append((rate, asyncio.run(_bare_consumer(it.config, methods))))
    return tuple(measured)


def _stage_alone(config: Config, values: Sequence[bytes]) -> float:
    stage = ModelStage(config, "features-0")
    for offset, value in enumerate(values):
        if offset == STEADY:
            begin = time.perf_counter()
        list(process(stage, Message("features", 0, offset, None, value)))
    return (len(values) - STEADY) / (time.perf_counter() - begin)


async def _bare_consumer(config: Config, methods: list[str]) -> float:
    """Return the records a second of one consumer that predicts, explains and learns."""
    from aiokafka import AIOKafkaConsumer  # noqa: PLC0415  of Faust

    model = as_river(config.make_model())
    sides = ixai(model, FEATURES)
    if "ipdp" in methods:
        sides["pdp"] = generic_pdp(model, FEATURES)
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
            if taken >= STEADY - WARM_UP:  # its storages fill before it is measured
                model.predict_proba_one(x)
                for explain in sides.values():
                    explain(x, y)
            model.learn_one(x, y)
            taken += 1
            await asyncio.sleep(0)  # its heartbeats keep it in its group
            if taken == STEADY + PEER_RECORDS:
                return PEER_RECORDS / (time.perf_counter() - begin)
    finally:
        await consumer.stop()
    raise FailedError("the features topic ended early")

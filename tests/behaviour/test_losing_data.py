"""Where Faust loses data when it is used as usual, and that the pipeline does not.

Each test is one way of losing data: it fails if Faust commits again, if
``take`` or Faust's own producer is used, or if offsets are committed before the outputs arrived.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import faust
import pytest
from faust.types import TP

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints.configured import fingerprint_of, identity_of
from fluxplain.kafka.client import TopicPartition, cluster
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_REFUSED
from fluxplain.kafka.faust.app import create_worker
from fluxplain.kafka.faust.transport import PAUSED_S
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.producer import DeliveryError, RecordProducer
from fluxplain.stages import ExplainerStage
from tests.kit.faulty_broker import PRODUCE, FaultyBroker
from tests.kit.faulty_worker import AT_SEQ
from tests.kit.kafka_pipeline import KafkaPipeline, Start, StartFaulty, assert_same, reference
from tests.kit.streams import observations

VALUES = observations(100)
FAUST_COMMIT_INTERVAL_S = 2.8
"""How often Faust commits what it takes for acknowledged."""
TOPIC_AUTHORIZATION_FAILED = 29


pytestmark = pytest.mark.embedded  # of real deliveries: test_delivery.py


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """Checkpoints in the test's folder, also of workers in this process."""
    return {"checkpoint": {"directory": str(tmp_path / "checkpoints")}}


@pytest.fixture
def pipeline(start: Start) -> Iterator[KafkaPipeline]:
    """Topics without workers."""
    with start(roles=[]) as pipeline:
        yield pipeline


@pytest.fixture
def config(pipeline: KafkaPipeline) -> Config:
    return pipeline.config


def assert_nothing_lost(
    pipeline: KafkaPipeline, start_faulty: StartFaulty, values: list[bytes], fault: str = "none"
) -> None:
    """Run a worker to the end: what it and one before it published is the reference."""
    worker = start_faulty(pipeline, fault)
    pipeline.wait_until(
        lambda: worker.poll() is not None or pipeline.committed("model") == len(values),
        timeout_s=90,
    )
    worker.terminate()
    assert worker.wait(30) == 0
    assert pipeline.committed("model") == len(values)
    pipeline.attend()
    topics = ["predictions", "reasons", "dead-letters"]  # what the model role publishes for users
    expected = {k: v for k, v in reference(pipeline.config, values).items() if k[0] in topics}
    assert_same(pipeline.published, expected)


@pytest.mark.parametrize(
    ("fault", "status", "most_committed"),
    [
        ("raises", EXIT_FAILED, AT_SEQ),
        ("huge-output", EXIT_REFUSED, AT_SEQ),  # it would be too large again
        ("dies-before-delivery", -9, 0),
    ],
)
def test_a_worker_that_ends_has_committed_nothing_that_it_did_not_finish(
    pipeline: KafkaPipeline,
    start_faulty: StartFaulty,
    fault: str,
    status: int,
    most_committed: int,
) -> None:
    pipeline.send(VALUES)
    assert start_faulty(pipeline, fault).wait(60) == status
    assert pipeline.committed("model") <= most_committed
    assert_nothing_lost(pipeline, start_faulty, VALUES)


@pytest.mark.quick
def test_a_message_that_is_dropped_on_its_way_is_read_again(
    pipeline: KafkaPipeline, start_faulty: StartFaulty
) -> None:
    pipeline.send(VALUES)
    assert_nothing_lost(pipeline, start_faulty, VALUES, fault="drops")
    assert f"offset {AT_SEQ + 1} came before {AT_SEQ}: reading again" in pipeline.log


def test_faust_commits_nothing_behind_the_checkpoints_back(
    pipeline: KafkaPipeline, start_faulty: StartFaulty
) -> None:
    pipeline.send(VALUES)
    worker = start_faulty(pipeline, "none", FLUXPLAIN_CHECKPOINT__INTERVAL_S="3600")
    pipeline.wait_until(lambda: pipeline.counts()["predictions"] == len(VALUES))
    time.sleep(FAUST_COMMIT_INTERVAL_S + 1.5)
    assert worker.poll() is None
    assert pipeline.committed("model") == 0
    worker.kill()
    worker.wait()
    assert_nothing_lost(pipeline, start_faulty, VALUES)


def test_a_refused_delivery_ends_the_worker_and_commits_nothing(
    config_path: Path, tmp_path: Path, start_faulty: StartFaulty
) -> None:
    with (
        FaultyBroker() as broker,
        KafkaPipeline(config_path, broker.bootstrap_servers, tmp_path, roles=[]) as pipeline,
    ):
        config = pipeline.config
        pipeline.send(VALUES)
        Register(config).enter(fingerprint_of(config, identity_of(config, cluster(config))))
        broker.refuse(PRODUCE, TOPIC_AUTHORIZATION_FAILED, times=1)
        assert start_faulty(pipeline, "none").wait(60) == EXIT_FAILED
        assert pipeline.committed("model") == 0
        assert_nothing_lost(pipeline, start_faulty, VALUES)


def test_a_producer_reports_a_refused_delivery(config_path: Path, tmp_path: Path) -> None:
    with (
        FaultyBroker() as broker,
        KafkaPipeline(config_path, broker.bootstrap_servers, tmp_path, roles=[]) as pipeline,
    ):
        producer = RecordProducer(pipeline.config)
        broker.refuse(PRODUCE, TOPIC_AUTHORIZATION_FAILED)
        producer.send("anything", b"{}")
        with pytest.raises(DeliveryError, match="did not take a message"):
            producer.flush()


@pytest.mark.quick
def test_what_cannot_be_decoded_or_is_too_large_is_a_dead_letter_and_the_next_one_is_used(
    pipeline: KafkaPipeline, start_faulty: StartFaulty
) -> None:
    large = b'{"x": {"salary": "' + b"\x01" * 900_000 + b'"}}'
    values = [b"\xff\x00", *observations(20), large, *observations(10), b"\x80{}"]
    pipeline.send(values)
    assert_nothing_lost(pipeline, start_faulty, values)


def test_commits_what_is_done_whatever_faust_has_seen(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust's own commits stall at a message that is read again beside a gap."""
    worker = create_worker(config, Replica("explainer"), lambda _t, _p: ExplainerStage(config))
    consumer, tp = worker.app.consumer, TP("evaluations", 0)
    commits: list[dict[TP, int]] = []

    async def commit(offsets: dict[TP, int]) -> bool:
        commits.append(offsets)
        return True

    async def read_again_beside_a_gap() -> None:
        await consumer._add_gap(tp, 1, 3)
        for offset in (0, 1, 2, 3, 4):
            _message(tp, offset, consumer).ack(consumer)
        assert not await consumer.commit()
        assert await worker.worker.context.driver.commit({TopicPartition(*tp): 4})

    monkeypatch.setattr(consumer, "_commit", commit)
    worker.app.topics._acking_topics.add(tp.topic)
    asyncio.run(read_again_beside_a_gap())
    assert commits == [{tp: 4}]
    assert not consumer._gap[tp]


@pytest.mark.parametrize("assigned", [1, 2])
def test_a_worker_that_has_read_ahead_enough_reads_on_as_soon_as_it_may(
    config: Config, monkeypatch: pytest.MonkeyPatch, assigned: int
) -> None:
    """Faust would wait for a second, in which the worker has nothing to do."""
    worker = create_worker(config, Replica("explainer"), lambda _t, _p: ExplainerStage(config))
    consumer = worker.app.consumer
    tps = {TP("evaluations", partition) for partition in range(assigned)}
    tp = TP("evaluations", 0)
    asked: list[tuple[set[TP], float]] = []

    async def no_sleep(*_: Any) -> None:
        raise AssertionError("it slept")

    async def getmany(active_partitions: set[TP], timeout: float) -> dict[TP, Any]:
        asked.append((set(active_partitions), timeout))
        return {}

    monkeypatch.setattr(consumer, "assignment", lambda: tps)
    monkeypatch.setattr(consumer, "sleep", no_sleep)
    monkeypatch.setattr(consumer, "_getmany", getmany)

    async def read() -> None:
        consumer.resume_flow()
        consumer.resume_partitions(tps)
        consumer.on_buffer_full(tp)
        waiting = asyncio.ensure_future(consumer._wait_next_records(1.0))
        await asyncio.sleep(0.05)
        if assigned > 1:
            # others may have messages, but none of them may keep this one waiting
            assert waiting.done()
            assert asked.pop() == (tps - {tp}, PAUSED_S)
        consumer.on_buffer_drop(tp)
        await waiting
        await consumer._wait_next_records(1.0)

    asyncio.run(read())
    assert asked[-1] == (tps, 1.0)


def test_the_pipeline_relies_on_neither_exactly_once_nor_tables(config: Config) -> None:
    app = create_worker(config, Replica("explainer"), lambda _t, _p: ExplainerStage(config)).app
    assert app.conf.processing_guarantee == faust.types.enums.ProcessingGuarantee.AT_LEAST_ONCE
    assert not app.tables
    assert not app.conf.stream_wait_empty


def _message(tp: TP, offset: int, consumer: object) -> faust.types.tuples.ConsumerMessage:
    message = faust.types.tuples.ConsumerMessage(
        tp.topic, tp.partition, offset, 0.0, 0, None, None, b"{}", None, tp=tp
    )
    message.refcount = 1
    return message

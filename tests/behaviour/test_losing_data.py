"""Where Faust loses data when it is used as usual, and that the pipeline does not.

Each test is one way of losing data: it fails if Faust commits again, if
``take`` or Faust's own producer is used, or if offsets are committed before the outputs arrived.
"""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import faust
import pytest
from faust.types import TP

from fluxplain.config import Config, load_config
from fluxplain.config.replica import Replica
from fluxplain.kafka.checkpoints import fingerprint_of, identity_of
from fluxplain.kafka.client import TopicPartition, cluster
from fluxplain.kafka.exits import EXIT_FAILED, EXIT_REFUSED
from fluxplain.kafka.faust.app import create_worker
from fluxplain.kafka.faust.transport import PAUSED_S
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.producer import DeliveryError, RecordProducer
from fluxplain.kafka.topics import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from fluxplain.kafka.topics.reader import TopicReader
from fluxplain.schemas import OUTPUTS
from fluxplain.stages import ExplainerStage
from tests.kit.faulty_broker import PRODUCE, FaultyBroker
from tests.kit.faulty_worker import AT_SEQ
from tests.kit.kafka_pipeline import Published, assert_same, identity, reference
from tests.kit.streams import observations

RECORDS = 100
INTERVAL_S = 0.2
FAUST_COMMIT_INTERVAL_S = 2.8
"""How often Faust commits what it takes for acknowledged."""
TOPIC_AUTHORIZATION_FAILED = 29


pytestmark = pytest.mark.embedded  # of real deliveries: test_delivery.py


@pytest.fixture
def config(config_path: Path, bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    return _config(config_path, bootstrap_servers, monkeypatch)


def test_a_worker_that_raises_ends_and_commits_nothing_it_did_not_finish(
    config: Config, config_path: Path
) -> None:
    values = _fill(config)
    assert _run(config_path, "raises") == EXIT_FAILED
    assert _committed(config) <= AT_SEQ
    _assert_nothing_lost(config, config_path, values)


@pytest.mark.quick
def test_a_message_that_is_dropped_on_its_way_is_read_again(
    config: Config, config_path: Path
) -> None:
    _assert_nothing_lost(config, config_path, _fill(config), fault="drops")
    log = (config_path.parent / "faulty-worker.log").read_text()
    assert f"offset {AT_SEQ + 1} came before {AT_SEQ}: reading again" in log


def test_an_output_that_is_too_large_is_not_committed(config: Config, config_path: Path) -> None:
    values = _fill(config)
    assert _run(config_path, "huge-output") == EXIT_REFUSED, "it would be too large again"
    assert _committed(config) <= AT_SEQ
    _assert_nothing_lost(config, config_path, values)


def test_nothing_is_committed_before_the_outputs_have_arrived(
    config: Config, config_path: Path
) -> None:
    values = _fill(config)
    assert _run(config_path, "dies-before-delivery") == -9
    assert _committed(config) == 0
    _assert_nothing_lost(config, config_path, values)


def test_faust_commits_nothing_behind_the_checkpoints_back(
    config: Config, config_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = _fill(config)
    monkeypatch.setenv("FLUXPLAIN_CHECKPOINT__INTERVAL_S", "3600")
    worker = _start(config_path, "none")
    try:
        while sum(key[0] == "predictions" for key in _published(config)) < len(values):
            assert worker.poll() is None
        time.sleep(FAUST_COMMIT_INTERVAL_S + 1.5)
        assert _committed(config) == 0
    finally:
        worker.kill()
        worker.wait()
    monkeypatch.setenv("FLUXPLAIN_CHECKPOINT__INTERVAL_S", str(INTERVAL_S))
    _assert_nothing_lost(config, config_path, values)


def test_a_refused_delivery_ends_the_worker_and_commits_nothing(
    config_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyBroker() as broker:
        config = _config(config_path, broker.bootstrap_servers, monkeypatch)
        values = _fill(config)
        identity = identity_of(config, cluster(config))
        Register(config).enter(fingerprint_of(config, identity))
        broker.refuse(PRODUCE, TOPIC_AUTHORIZATION_FAILED, times=1)
        assert _run(config_path, "none") == EXIT_FAILED
        assert _committed(config) == 0
        _assert_nothing_lost(config, config_path, values)


def test_a_producer_reports_a_refused_delivery(
    config_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyBroker() as broker:
        config = _config(config_path, broker.bootstrap_servers, monkeypatch)
        producer = RecordProducer(config)
        broker.refuse(PRODUCE, TOPIC_AUTHORIZATION_FAILED)
        producer.send("anything", b"{}")
        with pytest.raises(DeliveryError, match="did not take a message"):
            producer.flush()


@pytest.mark.quick
def test_a_value_that_cannot_be_decoded_goes_to_dead_letters(
    config: Config, config_path: Path
) -> None:
    values = [b"\xff\x00", *observations(20), b"\x80{}"]
    _fill(config, values)
    _assert_nothing_lost(config, config_path, values)


@pytest.mark.quick
def test_a_large_record_goes_to_dead_letters_and_the_next_one_is_used(
    config: Config, config_path: Path
) -> None:
    large = b'{"x": {"salary": "' + b"\x01" * 900_000 + b'"}}'
    values = [*observations(20), large, *observations(10)]
    _fill(config, values)
    _assert_nothing_lost(config, config_path, values)


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
        assert await worker.worker._driver.commit({TopicPartition(*tp): 4})

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


def _config(path: Path, bootstrap_servers: str, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS", bootstrap_servers)
    monkeypatch.setenv("FLUXPLAIN_CHECKPOINT__DIRECTORY", str(path.parent / "checkpoints"))
    monkeypatch.setenv("FLUXPLAIN_CHECKPOINT__INTERVAL_S", str(INTERVAL_S))
    config = load_config(path)
    create_topics(config)
    return config


def _fill(config: Config, values: list[bytes] | None = None) -> list[bytes]:
    values = observations(RECORDS) if values is None else values
    producer = RecordProducer(config)
    for value in values:
        producer.send(config.topic("features"), value, partition=0)
    producer.flush()
    return values


def _run(config_path: Path, fault: str) -> int:
    return _start(config_path, fault).wait(60)


def _start(config_path: Path, fault: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.kit.faulty_worker", str(config_path), fault]
    log = (config_path.parent / "faulty-worker.log").open("ab")
    return subprocess.Popen(command, stderr=log, env=dict(os.environ))


def _committed(config: Config) -> int:
    offsets = GroupOffsets(config, "model", "features")
    try:
        return offsets.committed()[0]
    finally:
        offsets.close()


def _assert_nothing_lost(
    config: Config, config_path: Path, values: list[bytes], fault: str = "none"
) -> None:
    """Run a worker to the end: what it and one before it published is the reference."""
    worker = _start(config_path, fault)
    try:
        deadline = time.monotonic() + 90
        while _committed(config) < len(values):
            assert worker.poll() is None, "the worker ended"
            assert time.monotonic() < deadline, f"only {_committed(config)} were committed"
            time.sleep(0.2)
    finally:
        worker.terminate()
        assert worker.wait(30) == 0
    topics = ["predictions", "dead-letters"]  # what the model role publishes for users
    expected = {k: v for k, v in reference(config, values).items() if k[0] in topics}
    published = {k: v for k, v in _published(config).items() if k[0] in topics}
    huge = {k: {v for v in vs if len(v) < 1_000_000} for k, vs in published.items()}
    assert_same(huge, expected)


def _published(config: Config) -> Published:
    published: Published = {}
    with TopicReader(config, list(OUTPUTS), from_beginning=True) as reader:
        idle = 0
        while idle < 5:
            messages = reader.poll(0.2)
            idle = 0 if messages else idle + 1
            for message in messages:
                name, value = reader.name(message), message.value()
                assert value is not None
                published.setdefault(identity(name, value), set()).add(value)
    return published


def _message(tp: TP, offset: int, consumer: object) -> faust.types.tuples.ConsumerMessage:
    message = faust.types.tuples.ConsumerMessage(
        tp.topic, tp.partition, offset, 0.0, 0, None, None, b"{}", None, tp=tp
    )
    message.refcount = 1
    return message

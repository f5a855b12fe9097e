"""Outputs that do not arrive, and topics that change: each ends as stated, and nothing is lost.

On a real Kafka only: the embedded broker has no such troubles.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from deploy.kafka import Cluster
from fluxplain.cli import supervisor
from fluxplain.cli.supervisor import ROLES, WorkerRefusedError
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.exits import EXIT_NOT_YET, EXIT_REFUSED
from fluxplain.kafka.topics.create import create_topics
from tests.kit.kafka_pipeline import KafkaPipeline, Start, assert_same, reference
from tests.kit.kafka_topics import add_partitions, set_topic
from tests.kit.settings import Configure, topics
from tests.kit.streams import observations
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.kafka


def test_observations_may_be_compressed_in_any_way(start: Start) -> None:
    values = observations(160)
    with start() as pipeline:
        for i, compression in enumerate(("gzip", "snappy", "lz4", "zstd")):
            # the topic's own compression: what producers use who know nothing of this pipeline
            set_topic(pipeline.config, "features", "compression.type", compression)
            pipeline.process(values[40 * i : 40 * (i + 1)])
        pipeline.finish(values)


def test_an_output_that_the_broker_finds_too_large_ends_the_worker_for_good(start: Start) -> None:
    values = observations(150)
    with start() as pipeline:
        pipeline.process(values[:80])
        set_topic(pipeline.config, "evaluations", "max.message.bytes", "500")
        pipeline.send(values[80:])
        with pytest.raises(WorkerRefusedError, match=f"model.*{EXIT_REFUSED}"):
            pipeline.wait_until_idle()
        assert "too large for" in pipeline.log
        assert "max.message.bytes" in pipeline.log
        set_topic(pipeline.config, "evaluations", "max.message.bytes", "1048588")
    with start() as again:
        again.finish(values)


def test_partitions_that_are_added_while_running_are_used_or_left(start: Start) -> None:
    values = {0: observations(200, seed=5), 5: observations(120, seed=6)}
    with start() as pipeline:
        pipeline.send(values[0][:100])
        pipeline.wait_until_idle()
        for name, count in (("features", 6), ("evaluations", 8), ("explanations", 7)):
            add_partitions(pipeline.config, name, count)
        seen = f"{pipeline.config.topic('features')} now has 6 partitions"
        pipeline.wait_until(lambda: seen in pipeline.log, timeout_s=180)
        for partition, records in values.items():
            pipeline.send(records[100:] if partition == 0 else records, partition)
        pipeline.finish(values)


def test_a_topic_that_is_deleted_ends_the_worker_and_is_not_mistaken_when_it_is_back(
    start: Start,
) -> None:
    values = observations(100)
    with start() as pipeline:
        pipeline.process(values)
        topic = pipeline.config.topic("features")
        client = AdminClient(client_settings(pipeline.config))
        for future in client.delete_topics([topic]).values():
            future.result(timeout=30)
        # the supervisor does not look yet: the first status shows
        wait_until(lambda: f"the topics {topic} were deleted" in pipeline.log, timeout_s=180)
        pipeline.wait_until(lambda: ("model-1", EXIT_NOT_YET) in pipeline.workers.deaths)
        create_topics(pipeline.config)
        pipeline.send(values)
        with pytest.raises(WorkerRefusedError, match=f"exit status {EXIT_REFUSED}"):
            pipeline.wait_until(lambda: False)
        assert f"the topic {topic} was deleted and created again" in pipeline.log


def test_transactions_leave_nothing_that_seems_to_wait(start: Start) -> None:
    values = observations(60)
    with start(environment={"FLUXPLAIN_HEALTH__STALL_S": "3"}) as pipeline:
        topic = pipeline.config.topic("features")
        settings = {**client_settings(pipeline.config), "transactional.id": topic}
        producer = Producer(settings)
        producer.init_transactions(30)
        for records, end in (
            (values, producer.commit_transaction),
            (observations(5, seed=9), producer.abort_transaction),
        ):
            producer.begin_transaction()
            for value in records:
                producer.produce(topic, value, partition=0)
            producer.flush(30)
            end(30)
        expected = reference(pipeline.config, values)
        pipeline.wait_until(lambda: expected.keys() <= pipeline.published.keys())
        # the marks of both are behind the last message, for longer than the watchdog's patience
        until = time.monotonic() + 8
        pipeline.wait_until(lambda: time.monotonic() > until)
        assert not pipeline.workers.deaths
    assert_same(pipeline.published, expected)


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[Cluster]:
    """A broker that a test may kill."""
    with Cluster(tmp_path / "kafka", brokers=1) as cluster:
        yield cluster


VALUES = observations(300)


@pytest.fixture
def pipeline(own_broker: Cluster, config_path: Path, tmp_path: Path) -> Iterator[KafkaPipeline]:
    """A pipeline on that broker, amidst 200 of these observations."""
    with KafkaPipeline(config_path, own_broker.bootstrap_servers, tmp_path) as pipeline:
        pipeline.send(VALUES[:200])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] > 50)
        yield pipeline


def test_too_few_in_sync_replicas_are_waited_for(
    tmp_path: Path, configure: Configure, prefix: str
) -> None:
    values = observations(150)
    config_path = configure(topics={**topics(prefix), "replication": 3})
    with (
        Cluster(tmp_path / "kafka", brokers=3) as cluster,
        KafkaPipeline(
            config_path,
            cluster.bootstrap_servers,
            tmp_path,
            # waiting is no fault of the worker, however short its patience
            environment={"FLUXPLAIN_HEALTH__STALL_S": "3"},
        ) as pipeline,
    ):
        pipeline.process(values[:80])
        # as when a broker's disk is full: the others answer NOT_ENOUGH_REPLICAS
        set_topic(pipeline.config, "evaluations", "min.insync.replicas", "3")
        cluster.kill_broker(3)
        pipeline.send(values[80:])
        refusal = "it lacks in-sync replicas or disk space"
        pipeline.wait_until(lambda: refusal in pipeline.log, timeout_s=180)
        cluster.start_broker(3)
        pipeline.finish(values)
        pipeline.wait_until(lambda: "all messages are acknowledged" in pipeline.log)
        assert not pipeline.workers.deaths


def test_a_broker_that_is_away_for_a_minute_is_waited_for(
    own_broker: Cluster, pipeline: KafkaPipeline
) -> None:
    own_broker.kill_broker(1)
    time.sleep(60)
    pipeline.workers.check()
    own_broker.start_broker(1)
    pipeline.send(VALUES[200:])
    pipeline.finish(VALUES)
    assert not pipeline.workers.deaths


def test_workers_and_brokers_killed_at_once_come_back_by_themselves(
    own_broker: Cluster, pipeline: KafkaPipeline
) -> None:
    workers, names = pipeline.workers, pipeline.workers.running()
    own_broker.kill_broker(1)
    for name in names:
        workers.kill(name)
    wait_until(
        lambda: workers.log.count("waiting for it") >= len(names), 120.0, attend=workers.attend
    )
    own_broker.start_broker(1)
    pipeline.send(VALUES[200:])
    pipeline.finish(VALUES)
    # a worker that waits for the broker is not one that dies
    assert sorted(workers.deaths) == sorted((name, -SIGKILL) for name in names)


def test_a_worker_stops_in_time_without_a_broker(
    own_broker: Cluster, pipeline: KafkaPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_S", 15.0)
    own_broker.kill_broker(1)
    time.sleep(1)
    pipeline.workers.stop()
    # none was killed: the limit is their own
    assert -9 not in pipeline.workers.exit_statuses.values()
    own_broker.start_broker(1)
    for role in ROLES:
        pipeline.workers.add(role)
    pipeline.finish(VALUES[:200])

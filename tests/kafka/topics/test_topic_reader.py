"""Reading a topic to its end, and asking how far the roles are behind."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from fluxplain.config import Config
from fluxplain.kafka import client
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics import progress, topic_reader
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets, LagMonitor
from fluxplain.kafka.topics.topic_reader import read_to_end
from tests.kit.support import make_config
from tests.kit.waiting import wait_until


@pytest.fixture
def config() -> Iterator[Config]:
    """Settings for a broker with all topics, and five messages in each of two partitions."""
    with EmbeddedBroker() as broker:
        config = make_config().on_broker(broker.bootstrap_servers)
        create_topics(config)
        producer = RecordProducer(config)
        for partition in (0, 2):
            for n in range(5):
                producer.send(config.topic("features"), b"%d" % n, partition=partition)
        producer.flush()
        yield config


def test_a_topic_is_read_to_its_end_in_order(config: Config) -> None:
    found: dict[int | None, list[bytes | None]] = {}
    for message in read_to_end(config, "features"):
        found.setdefault(message.partition(), []).append(message.value())
    assert found == {n: [b"0", b"1", b"2", b"3", b"4"] for n in (0, 2)}
    assert list(read_to_end(config, "changes")) == []


def test_reading_may_begin_anywhere_in_some_partitions(config: Config) -> None:
    assert [m.value() for m in read_to_end(config, "features", {2: 3})] == [b"3", b"4"]
    assert list(read_to_end(config, "features", {1: 0})) == []
    assert list(read_to_end(config, "features", {99: 0})) == []


def test_a_missing_topic_is_told(config: Config) -> None:
    with pytest.raises(BrokerError, match=r"topics are missing: fluxplain\.nonsense"):
        list(read_to_end(config, "nonsense"))


def test_a_broker_that_has_gone_meanwhile_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reader, "partitions_of", lambda *_: [0])
    monkeypatch.setattr(client, "LOG_RANGE_S", 0.5)
    monkeypatch.setattr(client, "TAKEOVER_S", 0.5)
    with pytest.raises(BrokerError, match="cannot read the topics"):
        list(read_to_end(make_config().on_broker("127.0.0.1:1"), "features"))


def test_the_lag_of_each_role_is_what_it_has_not_committed(config: Config) -> None:
    with LagMonitor(config) as lag:
        deadline = time.monotonic() + 30
        while lag.latest is None:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert {name: each.lag for name, each in lag.latest.items()} == {
        "model": 10,
        "explainer": 0,
        "drift": 0,
    }


def test_a_role_stands_still_only_while_messages_wait(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0.05)
    with LagMonitor(config) as lag:
        wait_until(lambda: lag.latest is not None)
        first = dict(lag.latest or {})
        wait_until(lambda: (lag.latest or {})["drift"].moved_at > first["drift"].moved_at + 0.2)
        later = dict(lag.latest or {})
    assert later["model"] == first["model"]


def test_messages_have_waited_since_they_were_published_though_nobody_looked(
    config: Config,
) -> None:
    topic, hour_ago = config.topic("explanations"), int(1e3 * (time.time() - 3600.0))
    producer = Producer({"bootstrap.servers": config.kafka.bootstrap_servers})
    for _ in range(3):
        producer.produce(topic, b"{}", partition=0, timestamp=hour_ago)
    producer.flush()
    with LagMonitor(config) as lag:
        wait_until(lambda: lag.latest is not None)
        found = dict(lag.latest or {})
    waited = {name: each.moved_at - each.waits_since for name, each in found.items()}
    assert waited["drift"] == pytest.approx(3600.0, abs=60.0)
    assert waited["model"] < 60.0
    assert waited["explainer"] == 0.0


def test_there_is_no_lag_in_a_partition_that_was_made_anew(config: Config) -> None:
    settings = {"bootstrap.servers": config.kafka.bootstrap_servers, "group.id": "fluxplain.model"}
    beyond = TopicPartition(config.topic("features"), 0, 1000)
    with closing(Consumer(settings)) as consumer:
        consumer.commit(offsets=[beyond], asynchronous=False)
    with closing(GroupOffsets(config, "model", "features")) as offsets:
        assert offsets.lag() == 5

"""What waits for each consumer group, and since when, is known without its workers."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from prometheus_client import CollectorRegistry

from fluxplain.config import Config
from fluxplain.kafka import client
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.metrics.group_metrics import BacklogCollector
from fluxplain.kafka.topics import backlogs, oldest_messages
from fluxplain.kafka.topics.backlogs import (
    Answer,
    BacklogMonitor,
    Backlogs,
    PartitionBacklog,
)
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.support import make_config
from tests.kit.waiting import wait_until

OTHERS = {"alerts": ("changes",)}

BEGAN = 1_700_000_000.0
"""When the first message was published, in seconds since 1970; each next one a second later."""


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlogs, "EVERY_S", 0.05)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def config(broker: EmbeddedBroker) -> Config:
    """Settings for a broker with all topics, and five messages in partition 2 of ``features``."""
    config = make_config().on_broker(broker.bootstrap_servers)
    create_topics(config)
    send(config, 5)
    return config


def send(config: Config, n: int) -> None:
    producer = Producer(client_settings(config))
    for i in range(n):
        at_ms = int((BEGAN + i) * 1000)
        producer.produce(config.topic("features"), b"%d" % i, partition=2, timestamp=at_ms)
    assert producer.flush(30) == 0


def commit(config: Config, group: str, topic: str, offset: int) -> None:
    settings = {"bootstrap.servers": config.kafka.bootstrap_servers, "group.id": group}
    with closing(Consumer(settings)) as consumer:
        done = TopicPartition(config.topic(topic), 2, offset)
        consumer.commit(offsets=[done], asynchronous=False)


def waiting(found: Backlogs) -> Mapping[tuple[str, str], PartitionBacklog]:
    return {(name, str(tp)): each for (name, tp), each in found.items() if each.lag}


def roles(monitor: BacklogMonitor) -> set[str]:
    return {name for name, _ in monitor.latest()}


def test_a_group_without_workers_has_a_lag_and_an_oldest_message(config: Config) -> None:
    with BacklogMonitor(config, OTHERS) as monitor:
        wait_until(lambda: roles(monitor) == {"model", "explainer", "drift"})
        found = monitor.latest()
        stream = "fluxplain.features-2"
        assert waiting(found) == {("model", stream): PartitionBacklog(5, BEGAN)}
        commit(config, "fluxplain.model", "features", 3)
        wait_until(
            lambda: waiting(monitor.latest()) == {("model", stream): PartitionBacklog(2, BEGAN + 3)}
        )
        commit(config, "fluxplain.model", "features", 5)
        wait_until(lambda: not waiting(monitor.latest()))
        assert monitor.latest()["model", client.TopicPartition("fluxplain.features", 2)] == (
            0,
            None,
        )


def test_alerts_have_no_backlog_before_they_began(config: Config) -> None:
    with BacklogMonitor(config, {"alerts": ("features",)}) as monitor:
        began_at = time.monotonic()
        wait_until(lambda: min(each.at for each in monitor.answers()) > began_at)
        assert "drift" in roles(monitor)
        assert "alerts" not in roles(monitor)
        commit(config, "fluxplain.alerts", "features", 1)
        wait_until(lambda: "alerts" in roles(monitor))
        assert waiting(monitor.latest())["alerts", "fluxplain.features-2"] == (4, BEGAN + 1)


def test_a_message_that_cannot_be_read_waits_since_it_was_seen(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oldest_messages, "OLDEST_S", 0.0)
    began_at = time.time()
    with BacklogMonitor(config, OTHERS) as monitor:
        [first] = wait_until(lambda: waiting(monitor.latest())).values()
        seen_at = time.monotonic()
        wait_until(lambda: min(each.at for each in monitor.answers()) > seen_at)
        assert [*waiting(monitor.latest()).values()] == [first]
    assert first.waits_since is not None
    assert began_at <= first.waits_since <= time.time()


def test_without_a_broker_nothing_is_exported(
    config: Config, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlogs, "STALE_S", 3.0)
    with BacklogMonitor(config, OTHERS) as monitor:
        wait_until(monitor.latest)
        broker.close()
        wait_until(lambda: not monitor.latest())


@pytest.mark.parametrize(
    "error",
    [
        client.BrokerError("the coordinator is away"),
        KafkaException(KafkaError(KafkaError._TIMED_OUT)),
        KeyError(2),
        RuntimeError("closed"),
    ],
)
def test_an_error_of_one_group_is_logged_once_and_the_others_are_exported(
    config: Config,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed: list[str] = []
    is_back = threading.Event()

    class Offsets(GroupOffsets):
        def ends(self) -> Mapping[int, int]:
            if self._topic == config.topic("evaluations") and not is_back.is_set():
                failed.append(self._topic)
                raise error
            return super().ends()

    monkeypatch.setattr(backlogs, "GroupOffsets", Offsets)
    with BacklogMonitor(config, {}) as monitor:
        wait_until(lambda: roles(monitor) == {"model", "drift"} and len(failed) > 2)
        is_back.set()
        wait_until(lambda: roles(monitor) == {"model", "explainer", "drift"})
    # librdkafka logs connections of its own
    [line] = [each.getMessage() for each in caplog.records if each.name == backlogs.log.name]
    assert line.startswith("explainer, evaluations: the backlog is unknown: ")
    assert str(error) in line


def test_a_group_that_no_longer_answers_is_left_out_alone(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlogs, "STALE_S", 2.0)
    is_away = threading.Event()

    class Offsets(GroupOffsets):
        def ends(self) -> Mapping[int, int]:
            if self._topic == config.topic("evaluations") and is_away.is_set():
                raise client.BrokerError("the coordinator is away")
            return super().ends()

    monkeypatch.setattr(backlogs, "GroupOffsets", Offsets)
    with BacklogMonitor(config, {}) as monitor:
        wait_until(lambda: roles(monitor) == {"model", "explainer", "drift"})
        is_away.set()
        wait_until(lambda: roles(monitor) == {"model", "drift"})


def test_metrics_are_of_each_group_and_partition_and_without_a_backlog_0() -> None:
    features, changes = client.TopicPartition("features", 2), client.TopicPartition("changes", 0)
    since = time.time() - 100.0
    found = {
        ("model", features): PartitionBacklog(7, since),
        ("alerts", changes): PartitionBacklog(0, None),
    }
    registry = CollectorRegistry()
    answered_at = time.monotonic() - 50.0
    answers = [Answer("model", {}, answered_at), Answer("model", found, time.monotonic())]
    registry.register(BacklogCollector(lambda: found, lambda: answers))

    def value(name: str, role: str, stream: str) -> float | None:
        return registry.get_sample_value(name, {"role": role, "stream": stream})

    assert value("fluxplain_group_lag_messages", "model", "features-2") == 7
    assert value("fluxplain_group_lag_messages", "alerts", "changes-0") == 0
    age = value("fluxplain_group_oldest_age_seconds", "model", "features-2")
    assert age is not None
    assert 100.0 <= age <= time.time() - since
    assert value("fluxplain_group_oldest_age_seconds", "alerts", "changes-0") == 0
    silent_s = registry.get_sample_value("fluxplain_group_answer_age_seconds", {"role": "model"})
    assert silent_s is not None
    assert 50.0 <= silent_s <= time.monotonic() - answered_at


def test_groups_that_do_not_answer_delay_no_other_one(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    class Offsets(GroupOffsets):
        def commits(self) -> dict[int, int]:
            if self._topic != config.topic("explanations"):
                is_over.wait(60)
            return super().commits()

    monkeypatch.setattr(backlogs, "GroupOffsets", Offsets)
    with BacklogMonitor(config, {}) as monitor:
        wait_until(lambda: roles(monitor) == {"drift"})
        first_at = max(each.at for each in monitor.answers())
        wait_until(lambda: max(each.at for each in monitor.answers()) > first_at)
        assert roles(monitor) == {"drift"}
        is_over.set()


def test_leaving_does_not_wait_for_each_group_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, is_over = 0.0, threading.Event()

    class Silent(GroupOffsets):
        def __init__(self, *_: object, **__: object) -> None:
            is_over.wait(60)
            raise RuntimeError("over")

    def join(_thread: threading.Thread, timeout: float) -> None:
        nonlocal now
        now += timeout

    monkeypatch.setattr(backlogs, "GroupOffsets", Silent)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with BacklogMonitor(make_config(), OTHERS):
        monkeypatch.setattr(threading.Thread, "join", join)
    is_over.set()
    assert now <= backlogs.LEAVING_S

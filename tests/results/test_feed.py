"""A store is filled from a broker, whatever else stands in the topics."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.live_feed import Feed
from fluxplain.results.store import UNREADABLE, Store
from fluxplain.schemas import Explanation, Record
from tests.kit.records import letter
from tests.kit.support import make_config
from tests.kit.waiting import wait_until
from tests.monitor.dashboard.stream import STREAM, name, records


@pytest.fixture
def config() -> Iterator[Config]:
    with EmbeddedBroker() as broker:
        settings = make_config(
            features={name(i): "numeric" for i in range(3)}, explain={"alpha": 0.001}
        ).on_broker(broker.bootstrap_servers)
        create_topics(settings)
        yield settings


def test_the_past_is_read_first_then_what_comes(config: Config) -> None:
    past = list(records(400, features=3))
    publish(config, *past)
    publish_junk(config)
    store = Store()
    with running(config, store):
        wait_until(lambda: store.status.is_loaded)
        assert store.status.read == store.status.to_read == len(past) + 3
        assert store.streams[STREAM].records == 400
        assert store.left_out == {UNREADABLE: 3}
        assert store.streams[STREAM].throughput.rate(time.monotonic()) == 0.0
        publish(config, *records(100, features=3, first=400), letter(3))
        wait_until(lambda: store.streams[STREAM].newest_seq == 499 and store.letter_count == 1)


def test_the_past_is_loaded_only_when_each_partition_was_read_to_its_end(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    past, later = list(records(100, features=3)), list(records(300, features=0, first=100))
    publish(config, *past)
    store, poll = Store(), TopicReader.poll
    versions: dict[bool, set[int]] = {False: set(), True: set()}
    polls = count()

    def reluctant(reader: TopicReader, timeout_s: float, limit: int) -> list[Message]:
        versions[store.status.is_loaded].add(store.version)
        if next(polls) < 3:
            publish(config, *later[:100])
            del later[:100]
            return []
        # a few at a time, so that those of the past and the later ones come mixed
        return poll(reader, timeout_s, 10)

    monkeypatch.setattr(TopicReader, "poll", reluctant)
    with running(config, store):
        wait_until(lambda: store.version == len(past) + 300 and bool(versions[True]))
    assert min(versions[True]) >= len(past)


def test_lag_is_what_a_role_has_not_committed(config: Config) -> None:
    explanations = [r for r in records(100, features=3) if isinstance(r, Explanation)]
    publish(config, *explanations)
    publish_junk(config)
    commit(config, "drift", "explanations", len(explanations) + 3 - 20)
    store = Store()
    with running(config, store):
        wait_until(lambda: bool(store.status.roles))
    roles = store.status.roles
    assert [(role.part, role.topic, role.lag, role.reads_source) for role in roles] == [
        ("model", "features", 0, True),
        ("explainer", "evaluations", 0, False),
        ("drift", "explanations", 20, False),
    ]
    assert [role.stalled_s() > 0.0 for role in roles] == [False, False, True]
    assert store.status.trouble is None


def test_a_reader_may_begin_with_the_newest_messages(config: Config) -> None:
    producer = RecordProducer(config)
    for i in range(50):
        producer.send(config.topic("changes"), str(i).encode(), partition=i % 2)
    producer.flush()
    with TopicReader(config, ["changes"], from_beginning=True, newest=5) as reader:
        assert reader.backlog == 10
        values = []
        while reader.backlog:
            values += [int(message.value() or b"-1") for message in reader.poll(1.0)]
    assert sorted(values) == list(range(40, 50))


def publish(config: Config, *published: Record) -> None:
    producer = RecordProducer(config)
    for record in published:
        producer.send(config.topic(record.TOPIC), record.encode(), partition=0)
    producer.flush()


def publish_junk(config: Config) -> None:
    producer = RecordProducer(config)
    for junk in (b"", b"{}", b"\xff"):
        producer.send(config.topic("explanations"), junk, partition=0)
    producer.flush()


def commit(config: Config, role: Role, topic: str, offset: int) -> None:
    settings = {"bootstrap.servers": config.kafka.bootstrap_servers, "group.id": config.group(role)}
    place = TopicPartition(config.topic(topic), 0, offset)
    with closing(Consumer(settings)) as consumer:
        consumer.commit(offsets=[place], asynchronous=False)


@contextmanager
def running(config: Config, store: Store) -> Iterator[None]:
    """Run a feed, and fail if it ended by itself."""
    feed = Feed(config, store, on_failed=lambda: None)
    feed.start()
    try:
        yield
    finally:
        feed.stop()
    assert feed.error is None

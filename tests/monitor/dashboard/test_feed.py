"""The dashboard reads what others wrote, from a broker, and does not mind what it cannot read."""

import time
from collections.abc import Callable, Iterator

import pytest

from pipeline.config import Config
from pipeline.kafka.embedded import EmbeddedBroker
from pipeline.kafka.producer import RecordProducer
from pipeline.kafka.reader import TopicReader
from pipeline.kafka.topics import create_topics
from pipeline.monitor.dashboard.feed import Feed
from pipeline.monitor.dashboard.state import State
from tests.monitor.dashboard.stream import STREAM, letter, name, records
from tests.support import make_config


@pytest.fixture
def config() -> Iterator[Config]:
    with EmbeddedBroker() as broker:
        settings = make_config(
            features={name(i): "numeric" for i in range(3)}, explain={"alpha": 0.001}
        ).on_broker(broker.bootstrap_servers)
        create_topics(settings)
        yield settings


def test_the_past_is_read_first_then_what_comes(config: Config) -> None:
    producer = RecordProducer(config)
    past = list(records(400, features=3))
    for record in past:
        producer.send(config.topic(record.TOPIC), record.encode(), place=0)
    for junk in (b"", b"{}", b"\xff"):
        producer.send(config.topic("explanations"), junk, place=0)
    producer.flush()
    state = State()
    feed = Feed(config, state, failed=lambda: None)
    feed.start()
    try:
        _wait(lambda: state.operations.is_loaded)
        assert state.operations.to_read == len(past) + 3
        assert state.streams[STREAM].records == 400
        assert state.streams[STREAM].throughput.rate(time.monotonic()) == 0.0
        for record in (*records(100, features=3, first=400), letter(3)):
            producer.send(config.topic(record.TOPIC), record.encode(), place=0)
        producer.flush()
        _wait(lambda: state.streams[STREAM].newest_seq == 499 and state.letter_count == 1)
        _wait(lambda: bool(state.operations.roles))
        assert [role["part"] for role in state.operations.roles] == ["model", "explainer", "drift"]
        drift = state.operations.roles[-1]
        _wait(lambda: state.operations.roles[-1]["lag"] > 90 * len(drift))
    finally:
        feed.stop()
    assert feed.error is None


def test_a_reader_may_begin_with_the_newest_messages(config: Config) -> None:
    producer = RecordProducer(config)
    for i in range(50):
        producer.send(config.topic("changes"), str(i).encode(), place=i % 2)
    producer.flush()
    with TopicReader(config, ["changes"], from_beginning=True, newest=5) as reader:
        assert reader.backlog == 10
        values = {int(message.value() or b"-1") for message in reader.poll(5.0, limit=10)}
    assert values == set(range(40, 50))


def _wait(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)

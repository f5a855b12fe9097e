"""What a producer leaves in a partition: the beginning of what it was given, whatever fails.

On a real Kafka only: the embedded broker takes any batch.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from deploy.kafka import Cluster
from fluxplain.config import Config, load_config
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.producer import DeliveryError, OversizeError, RecordProducer
from fluxplain.kafka.topics.create import _wait_until_known
from fluxplain.kafka.topics.topic_reader import TopicReader
from tests.kit.kafka_topics import set_topic

pytestmark = pytest.mark.kafka

PARTITIONS = 24
MESSAGES = 20


@pytest.fixture
def config(config_path: Path, bootstrap_servers: str) -> Config:
    return load_config(config_path).on_broker(bootstrap_servers)


def make_topic(config: Config, name: str, partitions: int, **settings: str) -> None:
    client = AdminClient(client_settings(config))  # its answers come as long as it is there
    topic = NewTopic(
        config.topic(name),
        partitions,
        -1,
        config={key.replace("_", "."): value for key, value in settings.items()},
    )
    for future in client.create_topics([topic]).values():
        future.result(timeout=90)  # a broker that died may be taken for the controller
    _wait_until_known(config, [topic.topic])  # one that lags answers that it has no partitions


def read(config: Config, name: str) -> dict[int, list[int]]:
    """Return partition → the numbers that its messages begin with."""
    found: dict[int, list[int]] = defaultdict(list)
    with TopicReader(config, [name], from_beginning=True) as reader:
        for message in reader.until(reader.extent()):
            found[int(message.partition() or 0)].append(int((message.value() or b"").split()[0]))
    return found


def send_with_a_large_one(config: Config, large: int) -> None:
    """Send ten messages, of which the broker refuses one, each in a batch of its own."""
    producer = RecordProducer(config)
    try:
        for i in range(10):
            # of two that are so large, a batch has no room for both
            padding = random.Random(i).randbytes(900_000 if i == large else 600_000)
            producer.send(config.topic("predictions"), b"%d " % i + padding, partition=0)
    finally:
        producer.flush()


@pytest.mark.parametrize("large", [0, 3])
def test_behind_a_message_that_the_broker_refuses_nothing_is_sent(
    config: Config, large: int
) -> None:
    make_topic(config, "predictions", 1, max_message_bytes="700000")
    with pytest.raises(OversizeError, match="too large for"):
        send_with_a_large_one(config, large)
    # what is still on its way would be there soon
    time.sleep(1.0)
    found = read(config, "predictions").get(0, [])
    assert found == list(range(len(found)))
    assert len(found) <= large


def test_what_waits_behind_a_first_message_is_sent_although_nothing_follows(config: Config) -> None:
    make_topic(config, "predictions", 1)
    producer = RecordProducer(config)
    for i in range(10):
        producer.send(config.topic("predictions"), b"%d" % i, partition=0)
    deadline = time.monotonic() + 60.0
    while producer.waiting:
        assert time.monotonic() < deadline, f"{producer.waiting} messages wait"
        producer.serve()
        time.sleep(0.01)
    assert read(config, "predictions") == {0: list(range(10))}


@pytest.fixture(scope="module")
def short_of_replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers, of which one is dead; topics that want three replicas refuse all writes."""
    with Cluster(tmp_path_factory.mktemp("kafka"), brokers=3) as cluster:
        client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        controller = client.describe_cluster().result(30).controller.id
        cluster.kill_broker(next(node for node in cluster.plan.nodes if node != controller))
        yield cluster


def test_what_is_acknowledged_is_there_and_in_order_when_a_broker_takes_writes_again(
    short_of_replicas: Cluster, config_path: Path
) -> None:
    config = load_config(config_path).on_broker(short_of_replicas.bootstrap_servers)
    for attempt in range(3):
        name = f"attempt-{attempt}"
        make_topic(config, name, PARTITIONS, min_insync_replicas="3")
        producer = RecordProducer(config)
        for i in range(MESSAGES):
            for partition in range(PARTITIONS):
                producer.send(config.topic(name), b"%d" % i, partition=partition)
        time.sleep(0.2 + attempt / 10)  # within the first attempts
        set_topic(config, name, "min.insync.replicas", "2")
        producer.flush()
        assert read(config, name) == {p: list(range(MESSAGES)) for p in range(PARTITIONS)}


def test_a_producer_whose_messages_nobody_takes_gives_up_all_of_them(
    short_of_replicas: Cluster, config_path: Path
) -> None:
    config = load_config(config_path).on_broker(short_of_replicas.bootstrap_servers)
    make_topic(config, "refused", 1, min_insync_replicas="3")
    producer = RecordProducer(config, deadline_s=3.0)
    for i in range(MESSAGES):
        producer.send(config.topic("refused"), b"%d" % i, partition=0)
    with pytest.raises(DeliveryError, match="has acknowledged none for 3 s: the broker answers"):
        producer.flush()
    set_topic(config, "refused", "min.insync.replicas", "2")
    with pytest.raises(DeliveryError, match="has acknowledged none"):
        producer.send(config.topic("refused"), b"99", partition=0)
    time.sleep(2.0)
    assert read(config, "refused") == {}

"""Checkpoints in a topic of a real Kafka, which compacts it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from pipeline.config import Config, load_config
from pipeline.kafka.checkpoints import Checkpoint, Envelope, Identity, Slot, TopicCheckpointStore
from pipeline.kafka.checkpoints.topic import GENERATIONS, partition_of
from pipeline.kafka.client import client_settings, partitions_of
from pipeline.kafka.topics import create_topics
from tests.behaviour.conftest import SETTINGS, topic_store, topics, write_config
from tests.kafka.test_checkpoints import Large

pytestmark = pytest.mark.kafka

SLOT = Slot("model", "features", 1)
RECORDS = 5  # of a large checkpoint: its chunks and its header


@pytest.fixture
def config(bootstrap_servers: str, tmp_path: Path, prefix: str) -> Config:
    settings = {**SETTINGS, "topics": topics(prefix), "checkpoint": topic_store(tmp_path)}
    config = load_config(write_config(tmp_path / "pipeline.toml", settings))
    config = config.on_broker(bootstrap_servers)
    create_topics(config)
    return config


def store(config: Config) -> TopicCheckpointStore:
    return TopicCheckpointStore(config, Envelope(Identity.of("s", "c"), b"k" * 32))


def records(config: Config) -> list[bytes]:
    """Return the keys that are in the slot's partition now."""
    topic = config.topic("checkpoints")
    place = TopicPartition(topic, partition_of(SLOT, len(partitions_of(config, topic))), 0)
    consumer = Consumer({**client_settings(config), "group.id": "none"})
    end = consumer.get_watermark_offsets(place, timeout=10)[1]
    consumer.assign([place])
    keys: list[bytes] = []
    while True:
        for message in consumer.consume(100, 5.0):
            assert message.error() is None
            keys.append(message.key() or b"")
            if message.offset() == end - 1:
                consumer.close()
                return keys


def test_compaction_keeps_the_newest_and_bounds_the_rest(config: Config) -> None:
    admin = AdminClient(client_settings(config))
    quick = {
        "segment.bytes": str(1024 * 1024),
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        config.topic("checkpoints"),
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in quick.items()
        ],
    )
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(timeout=30)
    writer = store(config)
    for offset in range(1, 13):
        writer.save(SLOT, Checkpoint(offset, Large(Config(**SETTINGS))))
    deadline = time.monotonic() + 90
    # the newest segment is never compacted: it may hold some more
    while len(records(config)) > RECORDS * (GENERATIONS + 1):
        assert time.monotonic() < deadline, f"{len(records(config))} records are left"
        time.sleep(1)
    loaded = store(config).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 12


def test_only_the_own_partition_is_read(config: Config) -> None:
    for partition in range(4):
        place = replace(SLOT, partition=partition)
        store(config).save(place, Checkpoint(partition + 1, Large(Config(**SETTINGS))))
    topic = config.topic("checkpoints")
    places = {
        partition_of(replace(SLOT, role=role, partition=p), len(partitions_of(config, topic)))
        for role in ("model", "explainer", "drift")
        for p in range(4)
    }
    assert len(places) == 12, "as created, no two slots share a partition"
    loaded = store(config).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 2

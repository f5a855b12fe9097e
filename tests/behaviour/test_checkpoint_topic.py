"""Checkpoints in a topic of a real Kafka, which compacts it."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.kafka.checkpoints import topic as topic_module
from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, CheckpointError, Slot
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.checkpoints.records import GENERATIONS
from fluxplain.kafka.checkpoints.topic import TopicCheckpointStore, partition_of
from fluxplain.kafka.client import client_settings, partitions_of
from fluxplain.kafka.faust.peek import read_on
from fluxplain.stages import DriftStage
from tests.kit.in_process import run_with
from tests.kit.kafka_topics import set_topic
from tests.kit.sealed import Large
from tests.kit.settings import SETTINGS, topic_store
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.kafka

SLOT = Slot("model", "features", 1)
RECORDS = 5  # of a large checkpoint: its chunks and its header


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    return {"checkpoint": topic_store(tmp_path)}


def store(config: Config) -> TopicCheckpointStore:
    return TopicCheckpointStore(config, Envelope(Identity.of({"seed": "one"}, "c"), b"k" * 32))


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
    quick = {
        "segment.bytes": str(1024 * 1024),
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "100",
    }
    for name, value in quick.items():
        set_topic(config, "checkpoints", name, value)
    writer = store(config)
    for offset in range(1, 13):
        writer.save(SLOT, Checkpoint(offset, Large(Config(**SETTINGS))))
    # the newest segment is never compacted: it may hold some more
    wait_until(lambda: len(records(config)) <= RECORDS * (GENERATIONS + 1), 90.0)
    loaded = store(config).load(SLOT)
    assert loaded is not None
    assert loaded.next_offset == 12


def test_only_the_own_partition_is_read(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    slots = [replace(SLOT, role=r, partition=p) for r in ROLES for p in range(4)]
    partitions = len(partitions_of(config, config.topic("checkpoints")))
    assert len({partition_of(slot, partitions) for slot in slots}) == len(slots), "as created"
    writer = store(config)
    for offset, slot in enumerate(slots):
        writer.save(slot, Checkpoint(offset, DriftStage(Config(**SETTINGS))))
    read: set[int] = set()

    def watched(config: Config, topic: str, partition: int, *more: Any) -> int | None:
        read.add(partition)
        return read_on(config, topic, partition, *more)

    monkeypatch.setattr(topic_module, "read_on", watched)
    for offset, slot in enumerate(slots):
        read.clear()
        loaded = store(config).load(slot)
        assert loaded is not None
        assert loaded.next_offset == offset
        assert read == {partition_of(slot, partitions)}


def test_what_a_refusal_tells_to_do_helps(config: Config, config_path: Path) -> None:
    slot = replace(SLOT, topic=config.topic("features"))
    other = Envelope(Identity.of({"seed": "other"}, "c"), b"k" * 32)
    TopicCheckpointStore(config, other).save(slot, Checkpoint(7, Large(Config(**SETTINGS))))
    with pytest.raises(CheckpointError) as refusal:
        store(config).load(slot)
    [command] = re.findall("`fluxplain (.*?)`", str(refusal.value))
    broker = {"FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS": config.kafka.bootstrap_servers}
    result = run_with(config_path, *command.split(), "--yes", **broker)
    assert result.returncode == 0, result.stderr
    assert f"{slot}: removed" in result.stdout
    assert store(config).load(slot) is None
    # and their topic is described with the others
    result = run_with(config_path, "topics", "describe", **broker)
    assert result.returncode == 0, result.stderr
    assert config.topic("checkpoints") in result.stdout
    assert config.topic("features") in result.stdout

"""A stream waits until its output topic has its partition."""

import asyncio

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.kafka.worker import output_partitions
from fluxplain.kafka.worker.output_partitions import OutputPartitions
from tests.kit.support import linear_config

CONFIG = linear_config(control={"topic": True})


def test_a_missing_partition_is_reported_until_it_exists_and_found_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_partitions, "ASK_AGAIN_S", 0.0)
    counts = {CONFIG.topic("observations"): 1}
    outputs = OutputPartitions(CONFIG, Replica("join"), lambda topic, _beyond: counts[topic])

    def has(partition: int) -> bool:
        return asyncio.run(outputs.has(partition))

    assert has(0)
    assert not outputs.reasons
    assert not has(1)
    assert list(outputs.reasons) == [1]
    assert "has no partition 1" in outputs.reasons[1]
    assert asyncio.run(outputs.found()) == []
    counts[CONFIG.topic("observations")] = 2
    assert not has(1), "the dropped messages must be read again first"
    assert asyncio.run(outputs.found()) == [1]
    assert has(1)
    assert outputs.reasons == {}
    assert asyncio.run(outputs.found()) == []


def test_a_role_whose_records_keep_no_partition_never_waits() -> None:
    config: Config = linear_config()
    outputs = OutputPartitions(config, Replica("explainer"), lambda _topic, _beyond: 0)
    assert asyncio.run(outputs.has(7))


def test_a_wait_ends_if_its_stream_is_revoked_while_the_broker_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(output_partitions, "ASK_AGAIN_S", 0.0)

    def count(_topic: str, _beyond: int) -> int:
        outputs.forget()
        return 1

    outputs = OutputPartitions(CONFIG, Replica("join"), lambda _topic, _beyond: 1)
    assert not asyncio.run(outputs.has(1))
    outputs._count = count
    assert asyncio.run(outputs.found()) == []
    assert outputs.reasons == {}

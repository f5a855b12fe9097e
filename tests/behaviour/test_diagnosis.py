"""What ``fluxplain doctor`` finds on a real broker: topics, rights, clock, workers that run."""

import time
from pathlib import Path

import pytest

from fluxplain.config import Config
from fluxplain.kafka.producer import RecordProducer
from tests.kit.in_process import run_with
from tests.kit.kafka_pipeline import Start
from tests.kit.kafka_topics import set_topic
from tests.kit.streams import observations

pytestmark = pytest.mark.kafka

SERVERS = "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS"


def told(config: Config, config_path: Path) -> tuple[int, str]:
    result = run_with(config_path, "doctor", **{SERVERS: config.kafka.bootstrap_servers})
    return result.returncode, result.stdout


def test_topics_as_created_are_well(config: Config, config_path: Path) -> None:
    status, found = told(config, config_path)
    assert status == 0, found
    for part in (
        "cleanup, retention, replicas and message size are as wanted",
        "rights: this user may read and write all topics",
        "clock: no observation is ahead",
        "model: 0 messages to read, 0 workers",
    ):
        assert part in found


def test_compacted_features_and_a_short_retention_are_named(
    config: Config, config_path: Path
) -> None:
    set_topic(config, "features", "cleanup.policy", "compact")
    set_topic(config, "explanations", "retention.ms", "3600000")
    set_topic(config, "register", "cleanup.policy", "delete")
    status, found = told(config, config_path)
    assert status == 1
    assert f"{config.topic('features')} is compacted" in found
    assert f"{config.topic('explanations')} keeps messages for 1.0 hours" in found
    assert f"{config.topic('register')} has cleanup.policy delete" in found


def test_workers_that_run_and_settings_that_differ_are_named(
    start: Start, config: Config, config_path: Path
) -> None:
    with start() as pipeline:
        pipeline.process(observations(60))
        result = pipeline.run("doctor")
        assert result.returncode == 0, result.stdout
        assert "model: 0 messages to read, 1 worker" in result.stdout
        assert "those of the file are the registered ones" in result.stdout
    status, found = told(config, config_path)
    assert "0 workers" in found
    assert status == 0, found


def test_records_without_workers_and_from_the_future_are_named(
    config: Config, config_path: Path
) -> None:
    producer = RecordProducer(config)
    later = int((time.time() + 3600) * 1000)
    producer._producer.produce(config.topic("features"), b"{}", partition=0, timestamp=later)
    producer.flush()
    status, found = told(config, config_path)
    assert status == 0, found
    assert "more than 60 s ahead of this machine" in found
    assert "Start one: fluxplain worker --role model" in found

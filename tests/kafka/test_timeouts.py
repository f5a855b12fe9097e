"""Timeouts that follow from settings keep their order, whatever is set."""

from itertools import product
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from fluxplain.config import KafkaSettings
from fluxplain.config.replica import Replica
from fluxplain.kafka.faust.app import _faust_app
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import ALERTS_POLL_S, group_settings, subscriber_settings
from tests.kit.support import make_config

SHORTEST = {"session_timeout_s": 6.0, "rebalance_timeout_s": 10.0, "delivery_timeout_s": 60.0}
LONGEST = {
    "session_timeout_s": 1_800.0,
    "rebalance_timeout_s": 1_800.0,
    "delivery_timeout_s": 43_200.0,
}


def test_by_default_they_are_as_they_were() -> None:
    assert group_settings(KafkaSettings()) == {
        "consumer_metadata_max_age_ms": 30_000,
        "broker_session_timeout": 10.0,
        "broker_heartbeat_interval": 1.0,
        "broker_rebalance_timeout": 60.0,
        "broker_max_poll_interval": 1_000.0,
        "broker_request_timeout": 90.0,
    }
    static = group_settings(KafkaSettings(group_instance_id="a"))
    assert static["broker_session_timeout"] == 45.0
    own = KafkaSettings(group_instance_id="a", session_timeout_s=20.0)
    assert group_settings(own)["broker_session_timeout"] == 20.0


def test_workers_take_what_is_set(tmp_path: Path) -> None:
    config = make_config(kafka=LONGEST, checkpoint={"directory": tmp_path})
    worker = _faust_app(config, Replica("model")).conf
    assert worker.broker_session_timeout == 1_800.0
    assert worker.broker_rebalance_timeout == 1_800.0
    assert RecordProducer(config)._deadline_s == 43_200.0
    assert RecordProducer(config, deadline_s=3.0)._deadline_s == 3.0, "of a command"
    assert config.fingerprint() == make_config().fingerprint(), "they change no results"


@pytest.mark.parametrize("choice", [*product([SHORTEST, LONGEST], repeat=3)])
def test_whatever_is_set_each_outlasts_those_that_it_must(
    choice: tuple[dict[str, float], ...],
) -> None:
    chosen = {key: each[key] for key, each in zip(SHORTEST, choice, strict=True)}
    kafka = KafkaSettings(**chosen)
    found = group_settings(kafka)
    assert found["broker_heartbeat_interval"] < found["broker_session_timeout"] / 3
    assert found["broker_session_timeout"] <= found["broker_request_timeout"]
    assert found["broker_rebalance_timeout"] < found["broker_request_timeout"]
    assert found["broker_max_poll_interval"] > kafka.delivery_timeout_s
    alerts = subscriber_settings(kafka, ALERTS_POLL_S)
    assert alerts["max.poll.interval.ms"] >= alerts["session.timeout.ms"]
    Consumer({"group.id": "x", **alerts}).close()  # raises for what librdkafka does not allow

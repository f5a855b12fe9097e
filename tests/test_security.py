"""What clients of a secured broker say when it refuses them."""

import pytest
from confluent_kafka import KafkaError

from fluxplain.config import Config, ConfigError
from fluxplain.kafka import client
from fluxplain.kafka.client import AccessError, BrokerError, no_topics, refusal
from fluxplain.kafka.embedded import EmbeddedBroker
from fluxplain.kafka.producer import DeliveryError, RecordProducer
from fluxplain.kafka.topics.create import create_topics
from fluxplain.kafka.topics.progress import GroupOffsets
from tests.kit.faulty_broker import FaultyBroker
from tests.kit.loading import SECRET
from tests.kit.support import make_config

FIND_COORDINATOR = 10
INIT_PRODUCER_ID = 22
"""Kafka's numbers of requests."""


def secured(protocol: str = "SASL_SSL", **kafka: str) -> Config:
    user = {"username": "ada", "password": SECRET}
    return make_config(kafka={"security_protocol": protocol, **user, **kafka})


def test_a_client_that_authenticates_is_told_that_the_broker_does_not() -> None:
    with EmbeddedBroker() as broker:
        config = secured("SASL_PLAINTEXT", bootstrap_servers=broker.bootstrap_servers)
        with pytest.raises(BrokerError) as error:
            client.cluster(config, timeout_s=2.0)
    reason = str(error.value)
    assert broker.bootstrap_servers in reason
    assert "kafka.security_protocol" in reason
    assert SECRET not in reason


def test_a_busy_broker_is_asked_again() -> None:
    with FaultyBroker() as broker:
        broker.delay(400)
        config = make_config(kafka={"bootstrap_servers": broker.bootstrap_servers})
        # a client's first answer takes three round trips, 1.2 s
        assert client.cluster(config, timeout_s=1.0).brokers


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, AccessError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, BrokerError),
    ],
)
def test_what_acls_forbid_is_told_apart(code: int, kind: type[BrokerError]) -> None:
    config = secured()
    error = refusal(config, "cannot read x", KafkaError(code))
    assert type(error) is kind
    assert "cannot read x" in str(error)
    assert ("'ada'" in str(error)) == ("ACLs" in str(error)) == (kind is AccessError)


def test_topics_that_acls_may_hide_are_not_just_called_missing() -> None:
    config = secured()
    assert "ACLs hide them from kafka.username 'ada'" in str(no_topics(config, ["a", "b"]))
    assert "ACLs" not in str(no_topics(make_config(), ["a", "b"]))


def test_what_acls_do_not_let_a_producer_send_is_told() -> None:
    with FaultyBroker() as broker:
        config = make_config(kafka={"bootstrap_servers": broker.bootstrap_servers})
        broker.refuse(INIT_PRODUCER_ID, KafkaError.CLUSTER_AUTHORIZATION_FAILED, times=100)
        producer = RecordProducer(config)

        def send() -> None:
            producer.send(config.topic("features"), b"{}", partition=0)
            producer.flush()

        with pytest.raises(DeliveryError, match="ACLs do not allow it"):
            send()


@pytest.mark.slow
def test_what_acls_do_not_let_a_group_do_is_told() -> None:
    with FaultyBroker() as broker:
        config = make_config(kafka={"bootstrap_servers": broker.bootstrap_servers})
        create_topics(config)
        broker.refuse(FIND_COORDINATOR, KafkaError.GROUP_AUTHORIZATION_FAILED, times=100)
        offsets = GroupOffsets(config, "model", "features")
        try:
            with pytest.raises(AccessError, match="ACLs do not allow it"):
                offsets.committed()
        finally:
            offsets.close()


def test_an_embedded_broker_takes_no_settings_that_are_for_a_secured_one() -> None:
    config = secured()
    with EmbeddedBroker() as broker:
        with pytest.raises(ConfigError, match=r"kafka\.security_protocol is 'SASL_SSL'"):
            broker.settings_for(config)
        assert broker.settings_for(make_config()).kafka.security_protocol == "PLAINTEXT"

"""What an operator does to topics and users while a pipeline runs."""

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from fluxplain.config import Config
from fluxplain.kafka.client import client_settings
from tests.kit.waiting import wait_until

ANSWER_S = 90.0
"""Longest wait for an answer, in seconds: a broker that died may be taken for the controller."""


def set_topic(config: Config, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, config.topic(topic), incremental_configs=[entry])
    client = AdminClient(client_settings(config))  # its answers come as long as it is there
    for future in client.incremental_alter_configs([resource]).values():
        future.result(timeout=ANSWER_S)


def set_password(bootstrap_servers: str, user: str, password: str) -> None:
    """Let a user in by SCRAM-SHA-512, from now on with this password alone."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(user, credential, password.encode())
    client = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in client.alter_user_scram_credentials([change]).values():
        future.result(timeout=ANSWER_S)


def add_partitions(config: Config, topic: str, count: int) -> None:
    """Make a topic have so many partitions, and wait until a broker shows them."""
    client, name = AdminClient(client_settings(config)), config.topic(topic)

    def has() -> bool:
        return len(client.list_topics(name, timeout=ANSWER_S).topics[name].partitions) >= count

    if not has():
        for future in client.create_partitions([NewPartitions(name, count)]).values():
            future.result(timeout=ANSWER_S)
        wait_until(has, ANSWER_S, what=lambda: f"{name} gets {count} partitions")

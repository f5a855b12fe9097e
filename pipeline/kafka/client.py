"""Settings that every client of Kafka shares, and what can go wrong with the broker."""

import logging
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata

from pipeline.config import Config

LIBRDKAFKA_LOG = "fluxplain.librdkafka"

librdkafka_log = logging.getLogger(LIBRDKAFKA_LOG)
"""What librdkafka says of its connections, over and over. Workers put it into their log; for
commands the error that follows says it once."""
librdkafka_log.propagate = False
librdkafka_log.addHandler(logging.NullHandler())


class BrokerError(RuntimeError):
    """The broker does not answer, or refuses. The message says which one and what to do."""


def client_settings(config: Config) -> dict[str, Any]:
    """Return librdkafka's settings for a client of the configured broker."""
    return {
        "bootstrap.servers": config.kafka.bootstrap_servers,
        "log_level": 3,
        "logger": librdkafka_log,
    }


def cluster(config: Config, timeout_s: float = 5.0) -> ClusterMetadata:
    """Return what the cluster says of itself: brokers, topics, id.

    Raises
    ------
    BrokerError
        If no broker answers in time.
    """
    try:
        return AdminClient(client_settings(config)).list_topics(timeout=timeout_s)
    except KafkaException:
        raise BrokerError(
            f"no broker answers at {config.kafka.bootstrap_servers} "
            "(kafka.bootstrap_servers, or the environment variable "
            "FLUXPLAIN_KAFKA__BOOTSTRAP_SERVERS)"
        ) from None

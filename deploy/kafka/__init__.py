"""Runs Apache Kafka 4 on this machine, without Docker: `python -m deploy.kafka --help`."""

from deploy.kafka.cluster import Cluster
from deploy.kafka.files import KafkaError

__all__ = ["Cluster", "KafkaError"]

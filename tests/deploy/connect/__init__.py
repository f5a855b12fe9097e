"""A PostgreSQL and a Kafka Connect of the tests, from Maven Central."""

from deploy.kafka.java import jars
from tests.deploy.connect.database import Database
from tests.deploy.connect.worker import Connect

__all__ = ["Connect", "Database", "jars"]

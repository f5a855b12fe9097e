"""The embedded broker: librdkafka's mock cluster, inside this process, with nothing to install.

It speaks the real protocol over TCP, with consumer groups and commits, to any client on this
machine. Its limits:

- everything is in memory and lost when the process ends;
- each partition keeps only its last 5 MiB or 100,000 messages, so a producer must wait for the
  consumers, as ``fluxplain replay`` does;
- topics appear when they are first requested, always with 4 partitions and without settings;
- it listens on a free port of localhost, without authentication.

It is for trials, demonstrations and tests, not for data that matters.
"""

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Self

from confluent_kafka import Producer
from confluent_kafka.admin import ClusterMetadata

from fluxplain.config import EMBEDDED, ENV_PREFIX, Config, ConfigError

ADDRESS_FILE = Path(".fluxplain/embedded-broker")
"""File with the address of a running embedded broker, below the working directory."""

PARTITIONS = 4
"""Partitions of every topic of the embedded broker."""

PARTITION_BYTES = 5 * 1024 * 1024
"""Bytes that a partition of the embedded broker keeps; older messages are dropped, read or not."""

CHECKPOINT_INTERVAL_S = 0.5
"""Seconds between checkpoints on the embedded broker: its producer waits for commits."""

_CLUSTER_PREFIX = "mockCluster"


class EmbeddedBroker:
    """A broker that runs while this object is open.

    Examples
    --------
    >>> with EmbeddedBroker() as broker:
    ...     broker.bootstrap_servers.partition(":")[0]
    '127.0.0.1'
    """

    def __init__(self) -> None:
        self._producer: Producer | None = Producer(
            {"test.mock.num.brokers": 1, "log_level": 3, "log.queue": False}
        )
        metadata = self._producer.list_topics(timeout=10)
        self.bootstrap_servers = ",".join(
            f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()
        )
        self._address_file: Path | None = None

    def settings_for(self, config: Config) -> Config:
        """Return the settings for this broker; raise ``ConfigError`` if they require security."""
        if config.kafka.security_protocol != "PLAINTEXT":
            raise ConfigError(
                f"kafka.security_protocol is {config.kafka.security_protocol!r}, but the embedded "
                "broker has only 'PLAINTEXT': remove the security settings from [kafka]"
            )
        return config.on_broker(self.bootstrap_servers)

    def publish_address(self) -> None:
        """Write the address where ``bootstrap_servers = "embedded"`` looks for it.

        Raises ``ConfigError`` if another embedded broker runs from the same directory.
        """
        other = ADDRESS_FILE.read_text() if ADDRESS_FILE.exists() else ""
        if _answers(other.strip()):
            raise ConfigError(f"an embedded broker already runs from this directory, at {other}")
        ADDRESS_FILE.parent.mkdir(parents=True, exist_ok=True)
        complete = ADDRESS_FILE.with_name(f"{ADDRESS_FILE.name}.{os.getpid()}")
        complete.write_text(self.bootstrap_servers)
        complete.replace(ADDRESS_FILE)  # nobody reads a part of it
        self._address_file = ADDRESS_FILE.absolute()

    def close(self) -> None:
        """Stop the broker and drop its data."""
        if self._address_file:
            with suppress(OSError):  # the folder may be gone
                if self._address_file.read_text() == self.bootstrap_servers:  # not another's
                    self._address_file.unlink()
            self._address_file = None
        self._producer = None  # the mock cluster ends with its client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _answers(address: str) -> bool:
    host, _, port = address.split(",", maxsplit=1)[0].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except (OSError, ValueError):
        return False
    return True


def resolve(config: Config) -> Config:
    """Return the settings with ``"embedded"`` replaced by the running broker's address.

    Raises ``ConfigError`` if no embedded broker was started from this directory.
    """
    if config.kafka.bootstrap_servers != EMBEDDED:
        return config
    try:
        return config.on_broker(ADDRESS_FILE.read_text().strip())
    except OSError:
        raise ConfigError(
            "kafka.bootstrap_servers is 'embedded', but no embedded broker runs from this "
            "directory: start one with `fluxplain up --embedded` or `fluxplain broker`"
        ) from None


def is_embedded_cluster(metadata: ClusterMetadata) -> bool:
    """Return whether a cluster is an embedded broker."""
    return str(metadata.cluster_id).startswith(_CLUSTER_PREFIX)


def workers_environment(broker: EmbeddedBroker, state: Path) -> dict[str, str]:
    """Return the variables that make workers use this broker, with a folder for their state."""
    return {
        f"{ENV_PREFIX}KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        f"{ENV_PREFIX}CHECKPOINT__DIRECTORY": str(state),
        f"{ENV_PREFIX}CHECKPOINT__INTERVAL_S": str(CHECKPOINT_INTERVAL_S),
    }

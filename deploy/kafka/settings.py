"""The fixed settings of a cluster, and those of its brokers."""

import random
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import orjson

from deploy.kafka.files import KafkaError

HOST = "127.0.0.1"

LISTENERS = ("PLAINTEXT", "CONTROLLER", "SASL_SSL", "SSL")
"""Listeners of a broker, in the order of its ports."""

PORTS = range(10_000, 32_000, 16)
"""The first port of each block of 16; a cluster has one block.

They are below the ephemeral ports: otherwise a client that keeps trying to reach a killed broker
may be assigned the very port that the broker must return to.
"""

USERNAME = "fluxplain"


@dataclass(frozen=True)
class Plan:
    """The settings of a cluster that never change."""

    cluster_id: str
    brokers: int
    secure: bool
    first_port: int

    @property
    def nodes(self) -> range:
        """Ids of the nodes, each one a broker and a controller."""
        return range(1, self.brokers + 1)

    @property
    def listeners(self) -> Sequence[str]:
        """Listeners of each node."""
        return LISTENERS if self.secure else LISTENERS[:2]

    def address(self, node: int, listener: str) -> str:
        """Return the address of a node's listener."""
        port = self.first_port + (node - 1) * len(LISTENERS) + LISTENERS.index(listener)
        return f"{HOST}:{port}"

    def require(self, listener: str) -> None:
        """Raise ``KafkaError`` without this listener."""
        if listener not in self.listeners:
            raise KafkaError("this cluster was made without secure listeners")

    def addresses(self, listener: str) -> str:
        """Return the addresses of a listener on all nodes, comma-separated."""
        self.require(listener)
        return ",".join(self.address(node, listener) for node in self.nodes)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a plan; None if there is no file."""
        return cls(**orjson.loads(path.read_bytes())) if path.is_file() else None

    def write(self, path: Path) -> None:
        """Write this plan atomically."""
        aside = path.with_suffix(".new")
        aside.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2))
        aside.rename(path)


def free_block() -> int:
    """Return the first port of a block in which every port is free."""
    for first in random.sample(PORTS, k=200):
        if all(_is_free(port) for port in range(first, first + PORTS.step)):
            return first
    raise KafkaError(f"no block of 16 free ports was found on {HOST}")


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True


def server_properties(plan: Plan, node: int, password: str) -> str:
    """Return the settings of a broker, as the text of a file.

    Paths are relative to the broker's folder.
    """
    settings = {**_network(plan, node), **_replication(plan.brokers), **SMALL}
    if plan.secure:
        settings |= _security(password)
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def _network(plan: Plan, node: int) -> dict[str, str]:
    voters = (f"{each}@{plan.address(each, 'CONTROLLER')}" for each in plan.nodes)
    listeners = (f"{name}://{plan.address(node, name)}" for name in plan.listeners)
    protocols = (f"{name}:{name}" for name in plan.listeners if name != "CONTROLLER")
    return {
        "process.roles": "broker,controller",
        "node.id": str(node),
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": ",".join((*protocols, "CONTROLLER:PLAINTEXT")),
        "log.dirs": "data",
    }


def _replication(brokers: int) -> dict[str, str]:
    """Return settings with which one broker of three may die without loss."""
    in_sync = min(2, brokers)
    return {
        "default.replication.factor": str(brokers),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(brokers),
        "transaction.state.log.replication.factor": str(brokers),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(brokers),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }


SMALL = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.segment.bytes": str(1 << 20),
    "share.coordinator.state.topic.num.partitions": "4",
    # members of a local group all join at once: do not wait for more
    "group.initial.rebalance.delay.ms": "0",
    # 5 s instead of 9 until a killed broker's partitions move, and it may return
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    # 8 MiB instead of 128 for the keys of a segment, and 128 KiB instead of 512 to copy it
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    "log.cleaner.io.buffer.size": str(128 << 10),
    "num.network.threads": "2",
    "num.io.threads": "4",
}
"""Settings for a small machine and short waits."""


def _security(password: str) -> dict[str, str]:
    modules = "org.apache.kafka.common.security"
    scram = f"{modules}.scram.ScramLoginModule required;"
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "../tls/broker.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "../tls/ca.pem",
        "listener.name.ssl.ssl.client.auth": "requested",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{modules}.plain.PlainLoginModule required user_{USERNAME}="{password}";'
        ),
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
    }

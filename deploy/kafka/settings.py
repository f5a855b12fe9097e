"""What is decided once for a cluster, and the settings of its brokers."""

import random
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import orjson

from deploy.kafka.errors import KafkaError

HOST = "127.0.0.1"

LISTENERS = ("PLAINTEXT", "CONTROLLER", "SASL_SSL", "SSL")
"""What a broker listens for, in the order of its ports."""

PORTS = range(10_000, 32_000, 16)
"""The first port of each block of 16; a cluster has a block.

They are below those that systems give to outgoing connections. Among those, a client that tries
again and again to reach a killed broker may get the very port that the broker has to come back to.
"""

USERNAME = "fluxplain"


@dataclass(frozen=True)
class Plan:
    """What is decided once for a cluster, and kept over restarts."""

    cluster_id: str
    brokers: int
    secure: bool
    first_port: int

    @property
    def nodes(self) -> range:
        """Ids of the nodes, each a broker and a controller."""
        return range(1, self.brokers + 1)

    @property
    def listeners(self) -> Sequence[str]:
        """Listeners of each node."""
        return LISTENERS if self.secure else LISTENERS[:2]

    def address(self, node: int, listener: str) -> str:
        """Return the address of a node's listener."""
        port = self.first_port + (node - 1) * len(LISTENERS) + LISTENERS.index(listener)
        return f"{HOST}:{port}"

    def addresses(self, listener: str) -> str:
        """Return the addresses of a listener on all nodes, comma-separated."""
        return ",".join(self.address(node, listener) for node in self.nodes)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a plan."""
        return cls(**orjson.loads(path.read_bytes()))

    def write(self, path: Path) -> None:
        """Write this plan, whole or not at all."""
        aside = path.with_suffix(".new")
        aside.write_bytes(orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2))
        aside.rename(path)


def free_block() -> int:
    """Return the first port of a block in which every port is free."""
    for first in random.sample(PORTS, k=200):
        if all(_is_free(port) for port in range(first, first + PORTS.step)):
            return first
    raise KafkaError(f"there are hardly any free ports on {HOST}")


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
    """Return settings by which one broker of three can die and nothing is lost."""
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
    # whoever waits for a group on this machine is not helped by a broker that waits for more of it
    "group.initial.rebalance.delay.ms": "0",
    # a killed broker's partitions move, and it may come back, after 5 s instead of 9
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    # 8 MiB instead of 128 for the keys of a segment, and 128 KiB instead of 512 to copy it
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    "log.cleaner.io.buffer.size": str(128 << 10),
    "num.network.threads": "2",
    "num.io.threads": "4",
}
"""Settings for a small machine, on which nobody waits longer than needed."""


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

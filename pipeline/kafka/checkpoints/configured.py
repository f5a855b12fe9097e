"""Opens the configured store, and computes the identity of its checkpoints."""

from contextlib import closing

from confluent_kafka.admin import ClusterMetadata

from fluxplain.config import Config, ConfigError
from fluxplain.config.replica import Role
from fluxplain.kafka.checkpoints.checkpoint import CheckpointStore, Slot
from fluxplain.kafka.checkpoints.checkpoint_history import NEAR, History
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope, Identity
from fluxplain.kafka.client import partitions_of
from fluxplain.kafka.embedded import is_embedded_cluster
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.registered import TOPIC as REGISTER
from fluxplain.kafka.ownership.registered import Fingerprint, Registered
from fluxplain.kafka.topics.create import topic_ids
from fluxplain.schemas import INPUTS


def open_store(
    config: Config, metadata: ClusterMetadata, identity: Identity | None = None
) -> CheckpointStore:
    """Return the configured store.

    Unless ``identity`` is given, the broker and the register are asked for it. Raises
    ``BrokerError``, or ``ConfigError`` if the broker cannot keep checkpoints as configured.
    """
    if config.checkpoint.store == "topic" and is_embedded_cluster(metadata):
        raise ConfigError(
            "checkpoint.store is 'topic', but the embedded broker keeps too little of a topic: set "
            "it to 'directory'"
        )
    if identity is None:
        with closing(Register(config)) as register:
            identity = identity_of(config, metadata, register.read())
    envelope = Envelope(identity, config.checkpoint.signing_key())
    if config.checkpoint.store == "topic":
        # loads aiokafka, which few commands need otherwise
        from fluxplain.kafka.checkpoints.topic import TopicCheckpointStore  # noqa: PLC0415

        return TopicCheckpointStore(config, envelope)
    history = History(config.checkpoint.history, config.topics.retention_hours, NEAR)
    return DirectoryCheckpointStore(config.checkpoint.directory, envelope, history)


def identity_of(
    config: Config, metadata: ClusterMetadata, registered: Registered | None = None
) -> Identity:
    """Return the identity of this configuration's checkpoints; may raise ``BrokerError``.

    ``registered`` is the register's content; None if it does not matter.
    """
    found = registered or Registered()
    ids = topic_ids(config)
    return Identity.of(
        config.fingerprint(),
        str(metadata.cluster_id),
        ids,
        libraries(config),
        registered=found.number or 1,  # as the first worker will register
        history=found.versions,
        adopted=found.adopted,
        register=ids.get(config.topic(REGISTER)),
    )


def fingerprint_of(config: Config, identity: Identity) -> Fingerprint:
    """Return the fingerprint of a pipeline, without the topics that its workers write."""
    written = {config.topic(record.TOPIC) for record in INPUTS}
    logs = {topic: log for topic, log in identity.logs.items() if topic in written}
    return Fingerprint(identity.settings, identity.versions, logs)


def libraries(config: Config) -> set[str]:
    """Return the packages besides River whose versions affect the built-in models."""
    factories = {each.model.factory for each in (config, *config.own_streams.values())}
    return {package for factory, package in _LIBRARIES.items() if factory in factories}


_LIBRARIES = {
    "fluxplain.models:from_sklearn": "scikit-learn",
    "fluxplain.models:from_torch": "torch",
}


def slots(config: Config, role: Role | None = None, partition: int | None = None) -> list[Slot]:
    """Return the slots of a role (None: all) and a partition of its input (None: all).

    Raises ``ConfigError`` if there is no such partition.
    """
    found = [
        Slot.of(replica, topic, each)
        for replica in config.replicas(role)
        for topic in map(config.topic, config.inputs(replica.role))
        for each in partitions_of(config, topic)
        if partition in (None, each)
    ]
    if not found:
        who = f"{role} reads no" if role else "no role reads"
        raise ConfigError(f"{who} partition {partition}")
    return found

"""Creates the topics, with their partitions and settings; nothing else does."""

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, BrokerMetadata, ClusterMetadata, NewTopic

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, client_settings, cluster, refusal
from fluxplain.kafka.embedded import PARTITIONS, is_embedded_cluster
from fluxplain.kafka.ownership.registered import TOPIC as REGISTER
from fluxplain.kafka.timeouts import CREATE_S, REQUEST_S
from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation, Note, Prediction, Reasons
from fluxplain.schemas.wording import plural

log = logging.getLogger("fluxplain.worker")

_HOUR_MS = 3_600_000

_PASSING = {KafkaError._DESTROY, KafkaError._TRANSPORT}
"""Transient errors of a request while the cluster restarts; it is repeated."""

SAFE_REPLICATION = 3
"""Replication factor from which on two in-sync replicas are required: then one broker may die
without loss or interruption. With a smaller factor Kafka requires only one."""

_COMPACTED = {
    "cleanup.policy": "compact",
    # compact early: a forest of some megabytes every few seconds would fill the disk
    "segment.bytes": str(32 * 1024 * 1024),
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.2",
}


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create."""

    name: str
    partitions: int
    replication: int
    settings: dict[str, str]
    purpose: str


def topic_specs(config: Config) -> list[TopicSpec]:
    """Return the pipeline's topics, in the order of the data flow."""
    topics = config.topics
    in_sync = {"min.insync.replicas": "2"} if topics.replication >= SAFE_REPLICATION else {}
    retention = {"retention.ms": str(int(topics.retention_hours * _HOUR_MS))}
    streams, features = topics.features_partitions, topics.partitions
    specs: list[TopicSpec] = []

    def add(name: str, partitions: int, settings: dict[str, str], purpose: str) -> None:
        settings = {**settings, **in_sync}
        full = config.topic(name)
        specs.append(TopicSpec(full, partitions, topics.replication, settings, purpose))

    deleted = {"cleanup.policy": "delete", **retention}
    add("features", streams, deleted, "observations: written by your producers")
    if config.label.topic:
        add("labels", streams, deleted, "labels that come later: written by your producers")
    if config.control.topic:
        add("control", streams, deleted, "what changes while the pipeline runs")
    if config.is_joined:
        purpose = "all of these, in the order in which they are taken (internal)"
        add("observations", streams, deleted, purpose)
    for record, purpose in (
        (Prediction, "what the model said of each"),
        (Reasons, "why it said so of some"),
        (Evaluation, "the model's answers on perturbed inputs (internal)"),
        (Explanation, "the explanations of each feature"),
        (Change, "explanations that changed, and losses"),
        (DeadLetter, "what could not be used, and why"),
    ):
        add(record.TOPIC, features, deleted, purpose)
    # one partition: of two notes about a feature the later one holds
    add(Note.TOPIC, 1, {"cleanup.policy": "compact"}, "what people note about changes")
    purpose = "the settings that run, and the owners of partitions (internal)"
    add(REGISTER, 1, {"cleanup.policy": "compact"}, purpose)  # one partition: one order
    if config.checkpoint.store == "topic":
        # one per role and partition of its input, so that a worker reads only its own
        partitions = 3 * max(streams, features)
        add("checkpoints", partitions, _COMPACTED, "state of the workers (internal)")
    return specs


def create_topics(config: Config) -> dict[str, str]:
    """Create the missing topics, wait until every broker knows them, and return name → result.

    The embedded broker creates topics on a metadata request, with its own number of partitions.
    Raises ``BrokerError``, also if created topics do not appear.
    """
    metadata = cluster(config)
    specs = topic_specs(config)
    missing = [spec for spec in specs if spec.name not in metadata.topics]
    results = {spec.name: "exists" for spec in specs}
    admin = AdminClient(client_settings(config))
    if is_embedded_cluster(metadata):
        for spec in missing:
            admin.list_topics(spec.name, timeout=REQUEST_S)
            results[spec.name] = f"created, with the embedded broker's {PARTITIONS} partitions"
        return results
    return results | _create(config, admin, missing)


def _create(config: Config, admin: AdminClient, specs: list[TopicSpec]) -> dict[str, str]:
    if not specs:
        return {}
    new = [NewTopic(s.name, s.partitions, s.replication, config=s.settings) for s in specs]
    results = {}
    for name, future in admin.create_topics(new).items():
        try:
            future.result(timeout=CREATE_S)
            results[name] = "created"
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise refusal(config, f"cannot create topic {name}", error.args[0]) from None
            results[name] = "exists"
    _wait_until_known(config, results)
    return results


def _wait_until_known(config: Config, names: Collection[str]) -> None:
    """Wait until every broker knows the new topics."""
    deadline = time.monotonic() + CREATE_S
    # the list of brokers is refreshed: a dead one disappears from it
    while unaware := [
        address
        for address in map(_address, cluster(config).brokers.values())
        if not _knows(config.on_broker(address), names)
    ]:
        if time.monotonic() > deadline:
            raise BrokerError(
                f"the topics were created, but {', '.join(unaware)} does not know them yet, or "
                "cannot be reached from here"
            )
        time.sleep(0.1)


def _address(broker: BrokerMetadata) -> str:
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return f"{host}:{broker.port}"


def _knows(config: Config, names: Collection[str]) -> bool:
    """Return whether a broker knows the topics, and a leader for each partition."""
    try:
        known = cluster(config).topics
    except BrokerError:
        return False
    return all(
        name in known and all(each.leader >= 0 for each in known[name].partitions.values())
        for name in names
    )


def topic_ids(config: Config) -> dict[str, str]:
    """Return topic → id, which changes when a topic is deleted and created again.

    Empty for the embedded broker, which has no ids. May raise ``BrokerError``.
    """
    metadata = cluster(config)
    names = [spec.name for spec in topic_specs(config) if spec.name in metadata.topics]
    if is_embedded_cluster(metadata) or not names:
        return {}
    admin = AdminClient(client_settings(config))  # must live until the answer arrives
    deadline = time.monotonic() + CREATE_S
    while True:
        futures = admin.describe_topics(TopicCollection(names), request_timeout=CREATE_S)
        try:
            return {name: str(future.result().topic_id) for name, future in futures.items()}
        except KafkaException as error:
            if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                raise refusal(config, "cannot describe the topics", error.args[0]) from None
        time.sleep(0.2)


def feature_partitions(config: Config) -> int:
    """Return the number of partitions that the features are distributed over.

    Partitions added later stay unused: a feature's records must not move away from their state.
    Raises ``BrokerError`` if a topic has fewer than configured.
    """
    metadata = cluster(config)
    wanted = config.topics.partitions
    if is_embedded_cluster(metadata):
        return min(wanted, PARTITIONS)
    for name in map(config.topic, (Evaluation.TOPIC, Explanation.TOPIC)):
        if name in metadata.topics and (found := len(metadata.topics[name].partitions)) < wanted:
            raise BrokerError(
                f"{name} has {plural(found, 'partition')}, but topics.partitions is {wanted}: add "
                "partitions to the topic, or change the setting"
            )
    return wanted


def warn_of_joined_partitions(config: Config) -> None:
    """Warn unless the joined topics and ``observations`` have equally many partitions.

    A label must be in the partition of its observation, and each partition is a stream. Messages
    wait while ``observations`` lacks their partition.
    """
    if found := unequal_partitions(config, cluster(config)):
        log.warning("%s", found)


def unequal_partitions(config: Config, metadata: ClusterMetadata) -> str | None:
    """Return what differs between the partitions of the joined topics; None if nothing does."""
    if not config.is_joined:
        return None
    names = [config.topic(name) for name in (*config.inputs("join"), config.source)]
    counts = {name: len(metadata.topics[name].partitions) for name in names}
    if len(set(counts.values())) == 1:
        return None
    found = ", ".join(f"{name} has {count}" for name, count in counts.items())
    return f"the joined topics need the same number of partitions, but {found}"


def missing_topics(config: Config) -> list[str]:
    """Return the names of the pipeline's topics that do not exist; may raise ``BrokerError``."""
    existing = cluster(config).topics
    return [spec.name for spec in topic_specs(config) if spec.name not in existing]

"""The topics: names, partitions, settings; created by one command, never by accident."""

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.config import Config
from pipeline.kafka.client import BrokerError, client_settings, cluster
from pipeline.kafka.embedded import PARTITIONS, is_embedded_cluster
from schemas import Change, DeadLetter, Evaluation, Explanation, Observation, Prediction, Record

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic as it is to be created."""

    name: str
    partitions: int
    replication: int
    settings: dict[str, str]
    purpose: str


def topic_specs(config: Config) -> list[TopicSpec]:
    """Return the pipeline's topics, in the order of the data's flow."""
    retention = {"retention.ms": str(int(config.topics.retention_hours * _HOUR_MS))}
    purposes: dict[type[Record], str] = {
        Observation: "observations: written by your producers",
        Prediction: "what the model said of each",
        Evaluation: "the model's answers on perturbed inputs (internal)",
        Explanation: "iPFI, iSAGE and iPDP of each feature",
        Change: "explanations that changed",
        DeadLetter: "what could not be used, and why",
    }
    return [
        TopicSpec(
            name=config.topic(record.TOPIC),
            partitions=(
                config.topics.features_partitions
                if record is Observation
                else config.topics.partitions
            ),
            replication=config.topics.replication,
            settings={"cleanup.policy": "delete", **retention},
            purpose=purpose,
        )
        for record, purpose in purposes.items()
    ]


def create_topics(config: Config) -> dict[str, str]:
    """Create the topics that are missing and return name → what happened.

    On the embedded broker, which cannot be asked to create topics, they appear by being asked
    for, with its own number of partitions.

    Raises
    ------
    BrokerError
        If the broker does not answer, or refuses.
    """
    metadata = cluster(config)
    specs = topic_specs(config)
    missing = [spec for spec in specs if spec.name not in metadata.topics]
    results = {spec.name: "exists" for spec in specs}
    admin = AdminClient(client_settings(config))
    if is_embedded_cluster(metadata):
        for spec in missing:
            admin.list_topics(spec.name, timeout=10)
            results[spec.name] = f"created, with the embedded broker's {PARTITIONS} partitions"
        return results
    return results | _create(admin, missing)


def _create(admin: AdminClient, specs: list[TopicSpec]) -> dict[str, str]:
    if not specs:
        return {}
    futures = admin.create_topics(
        [
            NewTopic(spec.name, spec.partitions, spec.replication, config=spec.settings)
            for spec in specs
        ]
    )
    results = {}
    for name, future in futures.items():
        try:
            future.result(timeout=30)
            results[name] = "created"
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise BrokerError(f"cannot create topic {name}: {error.args[0].str()}") from None
            results[name] = "exists"
    return results


def missing_topics(config: Config) -> list[str]:
    """Return the names of the pipeline's topics that do not exist.

    Raises
    ------
    BrokerError
        If the broker does not answer.
    """
    existing = cluster(config).topics
    return [spec.name for spec in topic_specs(config) if spec.name not in existing]

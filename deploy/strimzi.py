"""Topics and users as Strimzi's operators take them: ``python -m deploy.strimzi``.

Each process has a user of its own, who may do what that process does, and nothing else. So a leaked
password of the dashboard writes notes at most, and none at all reaches another pipeline.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from fluxplain.alerts.forward import GROUP as ALERTS
from fluxplain.cli.common import DEFAULT_CONFIG
from fluxplain.config import ENV_PREFIX, KEY_LENGTH, Config, ConfigError, load_config
from fluxplain.config.replica import Role
from fluxplain.kafka.ownership.registered import TOPIC as REGISTER
from fluxplain.kafka.topics.create import topic_specs
from fluxplain.kafka.topics.topic_reader import GROUP as READER
from fluxplain.monitor.dashboard.note_requests import may_write
from fluxplain.schemas import SHOWN, Note

API_VERSION = "kafka.strimzi.io/v1"

CHECKPOINTS = "checkpoints"

CLUSTER = "kafka"
"""Name of the Kafka resource that topics and users belong to."""

WRITES: dict[Role, tuple[str, ...]] = {
    "join": ("observations",),
    "model": ("predictions", "reasons", "evaluations"),
    "explainer": ("explanations",),
    "drift": (),
}
"""Role → the topics that no other role writes; see :func:`_own` for control."""

EVERY_ROLE_WRITES = ("changes", "dead-letters")
"""Every role publishes the gaps and cold starts that it finds to ``changes``."""

Manifest = dict[str, Any]

Rights = Mapping[str, Iterable[str]]
"""Operation → names that it is allowed on."""


def topics(config: Config) -> list[Manifest]:
    """Return a KafkaTopic for each topic, with the settings of ``fluxplain topics create``."""
    return [
        _manifest(
            "KafkaTopic",
            spec.name,
            {
                "topicName": spec.name,
                "partitions": spec.partitions,
                "replicas": spec.replication,
                "config": spec.settings,
            },
        )
        for spec in topic_specs(config)
    ]


def users(config: Config) -> list[Manifest]:
    """Return a KafkaUser for each process, one for those that send observations, and one for who
    acknowledges changes, mutes features and, if that is possible, announces models.

    Each process asks whether all topics are there, so it may know that they are; what only reads
    has no checkpoints.
    """
    prefix = config.topics.prefix
    every_topic = [spec.name.removeprefix(prefix) for spec in topic_specs(config)]
    checkpoints = [CHECKPOINTS] if config.checkpoint.store == "topic" else []
    public = [topic for topic in every_topic if topic != CHECKPOINTS]
    groups = [*map(config.group, config.replicas())]
    inputs = {replica.role: config.inputs(replica.role) for replica in config.replicas()}
    rights: dict[str, tuple[Rights, Rights]] = {
        role: (
            {
                "Describe": every_topic,
                "Read": [*taken, REGISTER, *checkpoints],
                "Write": [*_own(config, role), *EVERY_ROLE_WRITES, REGISTER, *checkpoints],
            },
            {
                "Read": map(config.group, config.replicas(role)),
                "Describe": map(config.topic, checkpoints),
            },
        )
        for role, taken in inputs.items()
    }
    exports = config.dashboard.metrics_port is not None
    # the age of a message that waits is in the message
    read = [*SHOWN, *chain.from_iterable(inputs.values())] if exports else SHOWN
    asked = [*groups, f"{prefix}{READER}", *([f"{prefix}{ALERTS}"] if exports else [])]
    noted = [Note.TOPIC] if may_write(config.dashboard) else []
    rights["dashboard"] = (
        {"Describe": public, "Read": dict.fromkeys(read), "Write": noted},
        {"Describe": asked},
    )
    rights["alerts"] = (
        {"Describe": public, "Read": ["changes", Note.TOPIC]},
        {"Read": [f"{prefix}{ALERTS}"], "Describe": [f"{prefix}{READER}"]},
    )
    rights["keda"] = {"Describe": [*chain.from_iterable(inputs.values())]}, {"Describe": groups}
    rights["producer"] = {"Write": ["features", *(["labels"] if config.label.topic else [])]}, {}
    # `changes` say what can be acknowledged, and which models are in use and cannot be withdrawn
    written = [Note.TOPIC, *(["control"] if config.control.topic else [])]
    rights["operator"] = (
        {"Describe": public, "Read": ["changes", Note.TOPIC], "Write": written},
        {"Describe": [f"{prefix}{READER}"]},
    )
    return [_user(config, name, *each) for name, each in rights.items()]


def _own(config: Config, role: Role) -> Iterator[str]:
    """Yield the topics that no other role writes: of model also control, with a time budget."""
    yield from WRITES[role]
    streams = [config, *config.own_streams.values()]
    if role == "model" and any(each.explain.budget_ms is not None for each in streams):
        yield "control"


def _user(config: Config, name: str, on_topics: Rights, on_groups: Rights) -> Manifest:
    full = {operation: map(config.topic, names) for operation, names in on_topics.items()}
    acls = [*_acls("topic", full), *_acls("group", on_groups)]
    spec = {
        "authentication": {"type": "scram-sha-512"},
        "authorization": {"type": "simple", "acls": acls},
    }
    return _manifest("KafkaUser", config.topics.prefix + name, spec)


def _acls(kind: str, allowed: Rights) -> Iterator[Manifest]:
    operations: dict[str, list[str]] = defaultdict(list)
    for operation, names in allowed.items():
        for name in names:
            operations[name].append(operation)
    for name, granted in operations.items():
        # what may be read or written may be described too
        least = [each for each in granted if each != "Describe"] or granted
        resource = {"type": kind, "name": name, "patternType": "literal"}
        yield {"resource": resource, "operations": least}


def _manifest(kind: str, name: str, spec: Manifest) -> Manifest:
    # Kubernetes allows fewer letters than Kafka
    metadata = {
        "name": name.lower().replace("_", "-"),
        "labels": {"strimzi.io/cluster": CLUSTER},
    }
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def main(config: Annotated[Path, typer.Argument(help="Settings.")] = DEFAULT_CONFIG) -> None:
    """Write the topics and users of a pipeline as Kubernetes manifests, for Strimzi."""
    # the settings want one, though nothing is signed here
    os.environ.setdefault(f"{ENV_PREFIX}CHECKPOINT__KEY", "-" * KEY_LENGTH)
    try:
        settings = load_config(config, "reader")
    except ConfigError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    print(f"# Made by `python -m deploy.strimzi {config}`.")
    print(yaml.safe_dump_all([*topics(settings), *users(settings)], sort_keys=False), end="")


if __name__ == "__main__":
    typer.run(main)

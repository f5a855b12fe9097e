"""Findings about the topics: do they exist, with the partitions and settings that are wanted."""

from collections.abc import Iterator, Mapping

from confluent_kafka.admin import ClusterMetadata

from fluxplain.cli.doctor.findings import Finding, ok
from fluxplain.cli.setup import check_streams
from fluxplain.config import Config
from fluxplain.kafka.client import no_topics
from fluxplain.kafka.embedded import is_embedded_cluster
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.kafka.topics.create import (
    TopicSpec,
    feature_partitions,
    topic_specs,
    unequal_partitions,
)
from fluxplain.kafka.topics.describe import Described
from fluxplain.schemas.wording import plural

CHANGE = "Set it with kafka-configs.sh --alter --topic"

FOREVER = "-1"


def topic_findings(config: Config, metadata: ClusterMetadata) -> Iterator[Finding]:
    """Compare the topics with what `fluxplain topics create` would make."""
    specs = topic_specs(config)
    missing = [spec.name for spec in specs if spec.name not in metadata.topics]
    if missing:
        yield Finding("problem", str(no_topics(config, missing)))
        specs = [spec for spec in specs if spec.name not in missing]
    else:
        yield ok(f"topics: all {len(specs)} exist")
    feature_partitions(config)
    if config.topic(config.source) not in missing:
        partitions = len(metadata.topics[config.topic(config.source)].partitions)
        check_streams(config, partitions)
        yield ok(f"streams: {config.topic(config.source)} has {plural(partitions, 'partition')}")
    if not missing and (found := unequal_partitions(config, metadata)):
        yield Finding("problem", found, "Add partitions to those with fewer")
    if is_embedded_cluster(metadata):
        yield ok("topics: the embedded broker has no retention, compaction or replicas to check")
        return
    if specs:
        yield from _settings(config, metadata, specs)


def _settings(
    config: Config, metadata: ClusterMetadata, specs: list[TopicSpec]
) -> Iterator[Finding]:
    found = Described(config).settings([spec.name for spec in specs])
    unlike = []
    for spec in specs:
        replicas = min(
            len(each.replicas) for each in metadata.topics[spec.name].partitions.values()
        )
        if replicas < spec.replication:
            what = f"{spec.name} has {plural(replicas, 'replica')}, but topics.replication is"
            remedy = "Add replicas with kafka-reassign-partitions.sh"
            unlike.append(Finding("warning", f"{what} {spec.replication}", remedy))
        unlike += differences(spec, found[spec.name])
    yield from unlike
    if not unlike:
        yield ok("topics: cleanup, retention, replicas and message size are as wanted")


def differences(spec: TopicSpec, found: Mapping[str, str]) -> Iterator[Finding]:
    """Yield what differs between a topic's settings and those wanted, if it does harm."""
    remedy, wanted = f"{CHANGE} {spec.name}", spec.settings["cleanup.policy"]
    policy = found.get("cleanup.policy", wanted)
    if wanted == "delete" and "compact" in policy:
        what = f"{spec.name} is compacted: of records with equal keys only the last one stays"
        yield Finding("problem", what, f"{remedy} --add-config cleanup.policy=delete")
    elif wanted == "compact" and policy != "compact":
        what = f"{spec.name} has cleanup.policy {policy}: the newest records would be deleted, too"
        yield Finding("problem", what, f"{remedy} --add-config cleanup.policy=compact")
    kept, least = found.get("retention.ms", FOREVER), spec.settings.get("retention.ms")
    if least is not None and kept != FOREVER and int(kept) < int(least):
        hours = f"{int(kept) / 3_600_000:,.1f} hours, less than topics.retention_hours"
        what = f"{spec.name} keeps messages for {hours}: older ones cannot be read again"
        yield Finding("warning", what, f"{remedy} --add-config retention.ms={least}")
    size = int(found.get("max.message.bytes", MAX_MESSAGE_BYTES))
    if size < MAX_MESSAGE_BYTES:
        what = f"{spec.name} takes messages of at most {size:,} bytes: longer ones end a worker"
        yield Finding("warning", what, f"{remedy} --add-config max.message.bytes=1000000")
    in_sync = spec.settings.get("min.insync.replicas")
    if in_sync and int(found.get("min.insync.replicas", in_sync)) < int(in_sync):
        what = (
            f"{spec.name} has min.insync.replicas below {in_sync}: a dying broker can lose records"
        )
        yield Finding("warning", what, f"{remedy} --add-config min.insync.replicas={in_sync}")

"""Topics: creating, reading and feeding them, and the progress of the roles."""

from fluxplain.kafka.topics.create import (
    TopicSpec,
    create_topics,
    feature_partitions,
    missing_topics,
    topic_ids,
    topic_specs,
    warn_of_joined_partitions,
)

__all__ = [
    "TopicSpec",
    "create_topics",
    "feature_partitions",
    "missing_topics",
    "topic_ids",
    "topic_specs",
    "warn_of_joined_partitions",
]

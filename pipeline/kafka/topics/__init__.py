"""Topics: created, read, fed, and how far the roles have read them."""

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

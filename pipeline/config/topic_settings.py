"""The table ``[topics]``."""

from typing import Annotated

from pydantic import Field

from fluxplain.config.base import Section

PartitionCount = Annotated[int, Field(ge=1, le=1000)]


class TopicSettings(Section):
    """Names, partitions, replication and retention of the topics."""

    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]*$", max_length=200)] = "fluxplain."
    """Prefix of the names of all topics and consumer groups."""
    partitions: PartitionCount = 4
    """Partitions of each topic except `features`, when it is created."""
    features_partitions: PartitionCount = 1
    """Partitions of `features`, when it is created; each has its own model."""
    replication: Annotated[int, Field(ge=1, le=10)] = 1
    """Replication factor; use 3 on a cluster. From 3 on, `fluxplain topics create` sets
    `min.insync.replicas` to 2: a message counts as written once two replicas have it."""
    retention_hours: Annotated[float, Field(gt=0.0)] = 168.0
    """Hours to keep messages. Checkpoints never expire."""

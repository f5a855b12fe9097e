"""Metrics of partitions, also before their first checkpoint."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.metrics.partitions import StatusCollector
from fluxplain.kafka.worker.partition import PartitionProgress, SavedCheckpoint

TP = TopicPartition("features", 0)


def test_the_age_of_a_missing_checkpoint_counts_from_when_the_partition_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that never writes one has no other time, and must raise an alert as well."""
    status = cast(Any, SimpleNamespace(context=SimpleNamespace(replica="model")))
    collector = StatusCollector(status, cast(Any, None))
    saved = SavedCheckpoint(150.0, 9)
    seen = []
    held: list[list[PartitionProgress]] = [
        [PartitionProgress(TP, 5, 5)],
        [PartitionProgress(TP, 7, 5)],
        [PartitionProgress(TP, 7, 7, saved)],
        [],
        [PartitionProgress(TP, 9, 7)],
    ]
    for now, each in enumerate(held):
        monkeypatch.setattr(time, "time", lambda now=now: 100.0 + now)
        families = {family.name: family.samples for family in collector._of_partitions(each)}
        seen.append([sample.value for sample in families["fluxplain_checkpoint_timestamp_seconds"]])
    assert seen == [[100.0], [100.0], [150.0], [], [104.0]]

"""When a message was published is unknown if its producer did not know it."""

from unittest.mock import Mock

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE

from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.topics.oldest_messages import _time_of

TP = TopicPartition("features", 0)


@pytest.mark.parametrize(
    ("kind", "at_ms", "found"),
    [
        (TIMESTAMP_CREATE_TIME, 1_700_000_000_125, {TP: 1_700_000_000.125}),
        (TIMESTAMP_CREATE_TIME, 0, {}),
        (TIMESTAMP_CREATE_TIME, -1, {}),
        (TIMESTAMP_NOT_AVAILABLE, 5, {}),
    ],
)
def test_a_time_that_is_not_above_0_is_unknown(
    kind: int, at_ms: int, found: dict[TopicPartition, float]
) -> None:
    message = Mock(**{"error.return_value": None, "timestamp.return_value": (kind, at_ms)})
    assert _time_of(TP, message) == found

"""When the oldest message was published, or that it is unknown or that there is none."""

from unittest.mock import Mock

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, KafkaError

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
    assert _time_of(TP, message, 9) == found


@pytest.mark.parametrize(("offset", "found"), [(9, {TP: None}), (7, {})])
def test_a_log_that_ends_before_its_end_has_an_open_transaction(
    offset: int, found: dict[TopicPartition, None]
) -> None:
    error = KafkaError(KafkaError._PARTITION_EOF)
    message = Mock(**{"error.return_value": error, "offset.return_value": offset})
    assert _time_of(TP, message, 9) == found

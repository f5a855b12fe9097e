"""A broker that refuses on demand: librdkafka's mock cluster, through its own interface in C."""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int16, c_int32, c_size_t, c_void_p
from pathlib import Path
from typing import Self

import confluent_kafka

PRODUCE = 0
"""Kafka's number of the Produce request."""

RD_KAFKA_PRODUCER = 0

ONLY_BROKER = 1

FIRST_MEMBERS_MS = 100
"""Milliseconds that a new group waits for more members: no role has any in these tests.

It would be 3,000, at each start of each pipeline.
"""


class FaultyBroker:
    """The embedded broker with less delay, whose next requests can be made to fail."""

    def __init__(self) -> None:
        self._lib = _library()
        error = ctypes.create_string_buffer(512)
        self._client = self._lib.rd_kafka_new(RD_KAFKA_PRODUCER, None, error, 512)
        assert self._client, error.value
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, 1)
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, FIRST_MEMBERS_MS)
        self.bootstrap_servers = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def refuse(self, request: int, error: int, times: int = 1) -> None:
        """Answer the next requests of a kind with an error code of Kafka's protocol."""
        errors = (c_int * times)(*[error] * times)
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, c_int16(request), c_size_t(times), errors
        )

    def delay(self, milliseconds: int) -> None:
        """Send each answer that much later."""
        self._lib.rd_kafka_mock_broker_set_rtt(self._cluster, ONLY_BROKER, milliseconds)

    def set_down(self, *, is_down: bool) -> None:
        """Close all connections and take no new ones; or take them again."""
        change = "down" if is_down else "up"
        set_state = getattr(self._lib, f"rd_kafka_mock_broker_set_{change}")
        set_state(self._cluster, ONLY_BROKER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)


def _library() -> ctypes.CDLL:
    package = Path(confluent_kafka.__file__).parent
    places = [package.parent / "confluent_kafka.libs", package / ".dylibs"]
    found = [path for place in places for path in place.glob("librdkafka*")]
    assert found, "confluent-kafka was not installed from a wheel, which brings librdkafka"
    lib = ctypes.CDLL(str(found[0]))
    lib.rd_kafka_new.restype = c_void_p
    lib.rd_kafka_new.argtypes = [c_int, c_void_p, c_char_p, c_size_t]
    lib.rd_kafka_destroy.argtypes = [c_void_p]
    lib.rd_kafka_mock_cluster_new.restype = c_void_p
    lib.rd_kafka_mock_cluster_new.argtypes = [c_void_p, c_int]
    lib.rd_kafka_mock_cluster_destroy.argtypes = [c_void_p]
    lib.rd_kafka_mock_cluster_bootstraps.restype = c_char_p
    lib.rd_kafka_mock_cluster_bootstraps.argtypes = [c_void_p]
    lib.rd_kafka_mock_group_initial_rebalance_delay_ms.argtypes = [c_void_p, c_int32]
    lib.rd_kafka_mock_push_request_errors_array.argtypes = [
        c_void_p,
        c_int16,
        c_size_t,
        POINTER(c_int),
    ]
    lib.rd_kafka_mock_broker_set_down.argtypes = [c_void_p, c_int32]
    lib.rd_kafka_mock_broker_set_up.argtypes = [c_void_p, c_int32]
    lib.rd_kafka_mock_broker_set_rtt.argtypes = [c_void_p, c_int32, c_int]
    return lib

"""Which requests a worker's health server answers."""

import urllib.request
from urllib.error import HTTPError

import pytest
from prometheus_client import CollectorRegistry

from fluxplain.config.replica import Replica
from fluxplain.kafka.worker.health import Health, HealthServer
from tests.kit.support import linear_config

PATHS = ("/metrics", "/healthz", "/readyz")


def start(host: str) -> str:
    """Return the address of a healthy worker's server."""
    health = Health(Replica("model"), waits_for=None, is_ready=True)
    config = linear_config(health={"host": host})
    return HealthServer(config, lambda: health, CollectorRegistry()).start()


def status(address: str, **headers: str) -> int:
    request = urllib.request.Request(address, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


@pytest.fixture(scope="module")
def local() -> str:
    return start("127.0.0.1")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost:1", 200), ("127.0.0.1", 200), ("[::1]:1", 200), ("evil.example", 421)],
)
def test_on_localhost_other_names_are_refused(
    local: str, path: str, host: str, expected: int
) -> None:
    assert status(local + path) == 200
    assert status(local + path, Host=host) == expected


def test_on_another_address_every_name_is_answered() -> None:
    port = start("0.0.0.0").rpartition(":")[2]
    for path in PATHS:
        assert status(f"http://127.0.0.1:{port}{path}", Host="worker-1.example.com:9400") == 200

"""A registry of each test's own."""

from collections.abc import Iterator

import pytest

from tests.kit.registry import RegistryServer


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running

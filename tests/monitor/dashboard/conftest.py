"""What the tests of the dashboard share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.monitor.dashboard.browser import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Run the browser, one for all tests."""
    with chromium() as running:
        yield running

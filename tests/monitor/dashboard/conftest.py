"""A browser, and a dashboard of a stream for it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.monitor.dashboard.browser import Dashboard, Visit, chromium, dashboard
from tests.monitor.dashboard.stream import records

Open = Callable[..., Visit]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Run the browser, one for all tests."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(tmp_path_factory.mktemp("dashboard"), features=9) as served:
        served.publish(*records(2_000))
        yield served


@pytest.fixture
def open_page(browser: Browser, running: Dashboard) -> Iterator[Open]:
    visits: list[Visit] = []

    def open_it(fragment: str = "", **context: Any) -> Visit:
        visit = Visit(browser, f"{running.address}/{fragment}", **context)
        visits.append(visit)
        visit.live()
        return visit

    yield open_it
    for visit in visits:
        visit.close()

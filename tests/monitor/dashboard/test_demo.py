"""The dashboard of a running demonstration, which ends by itself."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.monitor.dashboard.browser import Visit
from tests.monitor.dashboard.demo import demo

pytestmark = pytest.mark.browser


def test_the_page_shows_the_running_demo(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path, "--records", "1000") as running:
        visit = Visit(browser, running.address)
        names = visit.page.locator("#feature-list .name")
        for name in ("salary", "age", "elevel"):
            expect(names.filter(has_text=name)).to_be_visible(timeout=60_000)
        status = visit.page.locator("#status-text")
        first = status.inner_text()
        expect(status).not_to_have_text(first)
        expect(status).to_have_text(re.compile(r"Live, record (\d|,)+"))
        assert "iPFI importance of 5 features" in visit.chart("importance")
        visit.close()
        assert running.end() == 0

"""All features over time as colours."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.monitor.dashboard.browser import PHONE, WIDE, Visit, dashboard
from tests.monitor.dashboard.stream import records

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_many_features_are_shown_as_colours_and_one_can_be_chosen(
    browser: Browser, tmp_path: Path, viewport: dict[str, int]
) -> None:
    with dashboard(tmp_path, features=30) as served:
        served.publish(*records(300, features=30, half=0))
        visit = Visit(browser, f"{served.address}/", viewport=viewport)
        visit.live()
        heat = visit.page.locator("#heat-chart")
        expect(heat).to_have_attribute("aria-label", re.compile("of 30 features"))
        assert visit.barriers() == []
        visit.page.get_by_role("searchbox").fill("f1")
        expect(heat).to_have_attribute("aria-label", re.compile("of 11 features"))
        heat.scroll_into_view_if_needed()
        heat.click(position={"x": 200, "y": 12})
        expect(visit.page.locator("#effect-title")).to_have_text(re.compile("Effect of f1"))
        visit.close()


def test_few_features_need_no_colours(browser: Browser, tmp_path: Path) -> None:
    with dashboard(tmp_path, features=5) as served:
        served.publish(*records(100, features=5))
        visit = Visit(browser, f"{served.address}/", viewport=WIDE)
        visit.live()
        expect(visit.page.locator("#heat")).to_be_hidden()
        visit.close()

"""The first lines of the page, which say whether anything is to be done."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.monitor.dashboard.browser import PHONE, WIDE, Visit, dashboard
from tests.monitor.dashboard.stream import change, records

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_it_is_calm_until_something_changes_and_opens_what_did(
    browser: Browser, tmp_path: Path, viewport: dict[str, int]
) -> None:
    with dashboard(tmp_path, features=3) as served:
        quiet = [each for each in records(600, features=3, half=0) if each.TOPIC != "changes"]
        served.publish(*quiet)
        visit = Visit(browser, f"{served.address}/", viewport=viewport)
        visit.live()
        page = visit.page
        expect(page.locator("#headline-change")).to_have_text("No change so far.")
        expect(page.locator("#headline-tone")).to_have_text("Calm")
        expect(page.locator("#headline-model")).to_contain_text("the model relies most on f2")
        changed = replace(change("f1", 590, "ipfi"), effect_size=0.6)
        served.publish(changed)
        expect(page.locator("#headline-tone")).to_have_text("Changed")
        expect(page.locator("#headline-change")).to_contain_text("iPFI of f1 rose from")
        others = [
            replace(change("f0", 592, m), incident=changed.incident) for m in ("ipfi", "isage")
        ]
        served.publish(*others)
        folded = page.locator("#change-list details")
        expect(folded).to_contain_text("2 other changes, records 590 to 592")
        sentence = page.locator("#change-list .sentence")
        expect(sentence).to_contain_text("iPFI of f1 rose from")
        expect(sentence).to_contain_text(", with 2 other changes")
        expect(page.locator("#changes-count")).to_have_text("1 incident")
        expect(folded.locator("button").first).to_be_hidden()
        folded.locator("summary").click()
        expect(folded.locator("button").first).to_be_visible()
        assert visit.barriers() == []
        page.locator("#headline-change").press("Enter")
        expect(page.locator("#story-title")).to_be_visible()
        assert changed.id in page.url
        visit.close()

"""Changes are acknowledged and features muted on the page, by keyboard, and all see it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from fluxplain.schemas import Change
from tests.monitor.dashboard.browser import PHONE, WIDE, Dashboard, Visit, dashboard
from tests.monitor.dashboard.stream import change, records

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tmp_path, features=3) as served:
        quiet = [each for each in records(600, features=3, half=0) if each.TOPIC != "changes"]
        served.publish(*quiet)
        yield served


def opened(browser: Browser, served: Dashboard, one: Change, **context: Any) -> Visit:
    served.publish(one)
    visit = Visit(browser, f"{served.address}/#change={one.id}", **context)
    visit.live()
    expect(visit.page.locator("#story-title")).to_be_visible()
    return visit


@pytest.mark.parametrize(("viewport", "theme"), [(WIDE, "light"), (PHONE, "dark")])
def test_a_change_is_acknowledged_for_all_to_see_until_it_is_opened_again(
    browser: Browser, served: Dashboard, viewport: dict[str, int], theme: str
) -> None:
    one = replace(change("f1", 590, "ipfi"), effect_size=0.5)
    visit = opened(browser, served, one, viewport=viewport, color_scheme=theme)
    other = Visit(browser, f"{served.address}/")
    page = visit.page
    expect(page.locator("#headline-tone")).to_have_text("Changed")
    story = page.locator("#story")
    story.get_by_role("button", name="Acknowledge").press("Enter")
    expect(story.get_by_label("Note")).to_be_focused()
    page.keyboard.press("Escape")
    expect(story.locator("form")).to_have_count(0)
    expect(story.locator("#story-title")).to_be_focused()
    story.get_by_role("button", name="Acknowledge").press("Enter")
    page.keyboard.type("a release")
    page.keyboard.press("Tab")
    page.keyboard.type("Ada")
    served.publish(replace(one, status="confirmed", status_seq=595))  # draws the story again
    expect(story).to_contain_text("confirmed")
    expect(story.get_by_label("Your name")).to_be_focused()
    assert visit.barriers() == []
    page.keyboard.press("Enter")
    expect(story).to_contain_text(re.compile(r"✓ Acknowledged: a release \(Ada, "))
    expect(page.locator("#headline-tone")).to_have_text("Calm")
    assert visit.barriers() == []
    expect(other.page.locator("#change-list .known")).to_have_text("✓ Ada: a release")
    expect(other.page.locator("#headline-change")).to_contain_text("the last, acknowledged: ")
    story.get_by_role("button", name="Open again").press("Enter")
    expect(other.page.locator("#change-list .known")).to_have_count(0)
    expect(page.locator("#headline-tone")).to_have_text("Changed")
    visit.close()
    other.close()


def test_a_muted_feature_is_folded_behind_a_count_until_it_is_unmuted(
    browser: Browser, served: Dashboard
) -> None:
    visit = opened(browser, served, replace(change("f1", 590, "ipfi"), effect_size=0.5))
    page = visit.page
    story = page.locator("#story")
    story.get_by_role("button", name="Mute f1").press("Enter")
    page.keyboard.press("Enter")
    expect(story.locator("form")).to_be_visible()  # a reason is required
    page.keyboard.type("follows the season")
    story.get_by_label("How long").select_option("for 8 hours")
    story.get_by_role("button", name="Mute f1").press("Enter")
    expect(story).to_contain_text(re.compile(r"f1 is muted: follows the season \(.*, until "))
    expect(page.locator("#headline-change")).to_contain_text("apart from those of muted features")
    page.get_by_role("button", name="All changes").press("Enter")
    folded = page.locator("#change-list details")
    expect(folded.locator("summary")).to_have_text("Muted: 1 change of 1 feature")
    expect(folded.locator("button[data-id]")).to_be_focused()
    folded.locator("summary").press("Enter")
    expect(folded.locator("button").first).to_be_hidden()
    folded.locator("summary").press("Enter")
    expect(folded).to_contain_text("follows the season")
    assert visit.barriers() == []
    page.get_by_role("button", name="Unmute f1").press("Enter")
    expect(folded).to_have_count(0)
    expect(page.locator("#headline-tone")).to_have_text("Changed")
    visit.close()


def test_a_page_that_may_not_write_shows_the_commands(browser: Browser, served: Dashboard) -> None:
    served.stop()
    served.address = served.start(FLUXPLAIN_DASHBOARD__WRITE="false")
    one = change("f1", 590, "ipfi")
    visit = opened(browser, served, one)
    story = visit.page.locator("#story")
    expect(story).to_contain_text(f'fluxplain acknowledge {one.id} --note "…"')
    expect(story).to_contain_text('fluxplain mute f1 --reason "…"')
    expect(story.get_by_role("button", name="Acknowledge")).to_have_count(0)
    assert visit.barriers() == []
    visit.close()

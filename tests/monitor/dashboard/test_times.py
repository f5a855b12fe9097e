"""Charts over the records' own times, and colours that stay."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from fluxplain.schemas import Prediction, Record
from tests.monitor.dashboard.browser import WIDE, Visit, dashboard
from tests.monitor.dashboard.stream import records

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)

BEGAN_S = 1_795_392_506.639

IMPORTED = "async (name) => (await import('/js/{}.js')).{}(name)"


def a_minute_apart(found: Iterator[Record]) -> Iterator[Record]:
    for each in found:
        timed = isinstance(each, Prediction)
        yield replace(each, ts=BEGAN_S + 60.0 * each.seq) if timed else each  # type: ignore[attr-defined, call-arg]


def test_ranges_are_of_time_if_records_have_one_and_a_link_keeps_them(
    browser: Browser, tmp_path: Path
) -> None:
    with dashboard(tmp_path, features=2) as served:
        served.publish(*a_minute_apart(records(2_000, features=2)))
        visit = Visit(browser, f"{served.address}/", viewport=WIDE, timezone_id="UTC")
        visit.live()
        ranges = visit.page.locator("#ranges label")
        expect(ranges).to_have_text(["All", "Last hour", "Last day"])
        said = visit.page.evaluate(IMPORTED.format("times", "recordText"), 1_000)
        assert said == "Record 1,000, 23 Nov 2026, 16:48:26"
        ranges.filter(has_text="Last hour").click()
        expect(visit.page).to_have_url(re.compile("range=hour"))
        first, last = visit.page.evaluate(IMPORTED.format("store", "range"), None)
        assert last == 1_999
        assert first == pytest.approx(1_940, abs=10)
        visit.page.locator("#performance [data-table]").click()
        newest = visit.page.locator("#performance-table tbody th").last
        expect(newest).to_have_text(re.compile(r"1,9\d\d, 24 Nov 2026, 09:\d\d:26"))
        again = Visit(browser, visit.page.url, viewport=WIDE)
        again.live()
        expect(again.page.locator("#ranges input:checked")).to_have_value("hour")
        visit.close()
        again.close()


def test_without_times_records_are_counted(browser: Browser, tmp_path: Path) -> None:
    with dashboard(tmp_path, features=2) as served:
        served.publish(*records(1_000, features=2))
        visit = Visit(browser, f"{served.address}/", viewport=WIDE)
        visit.live()
        expect(visit.page.locator("#ranges label")).to_have_text(["All", "Last 500"])
        assert visit.page.evaluate(IMPORTED.format("times", "recordText"), 700) == "Record 700"
        visit.close()


def test_a_feature_keeps_its_colour_whatever_else_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    named = {"features": {"f2": "Oil pressure"}, "units": {"f2": "bar"}}
    with dashboard(tmp_path, features=20, dashboard=named) as served:
        served.publish(*records(200, features=20, half=0))
        visit = Visit(browser, f"{served.address}/", viewport=WIDE)
        visit.live()
        expect(visit.page.locator("#feature-list")).to_contain_text("Oil pressure")
        expect(visit.page.locator("#effect-title")).to_have_text("Effect of Oil pressure [bar]")
        style = IMPORTED.format("palette", "styleOf")
        before = visit.page.evaluate(style, "f2")
        visit.page.locator("#top").select_option("12")
        expect(visit.page.locator("#importance-chart")).to_have_attribute(
            "aria-label", re.compile("12 features")
        )
        known = [visit.page.evaluate(style, f"f{i}") for i in range(20)]
        shown = [str(each) for each in known if each is not None]
        assert len(set(shown)) == len(shown) == 12
        assert visit.page.evaluate(style, "f2") == before
        visit.page.reload()
        visit.live()
        expect(visit.page.locator("#top")).to_have_value("12")
        assert visit.page.evaluate(style, "f2") == before
        visit.close()

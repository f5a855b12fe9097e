"""The page as people see it, in a real browser, from records on a real broker."""

import random
import re
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route, expect

from fluxplain.monitor.dashboard.server import PAGE
from fluxplain.schemas import Change
from tests.kit.records import letter, prediction
from tests.kit.waiting import wait_until
from tests.monitor.dashboard.browser import PHONE, WIDE, Dashboard, Visit, dashboard
from tests.monitor.dashboard.conftest import Open
from tests.monitor.dashboard.demo import demo
from tests.monitor.dashboard.stream import change, explanation, records

pytestmark = pytest.mark.browser

NEXT = count(2_000, 100)
"""Where the next records of the stream begin, so that tests may publish some."""

NUMBERS = "async () => (await import('/js/store.js')).data.numbers"

expect.set_options(timeout=20_000)


def test_the_past_is_shown_and_moves_on_without_reload(running: Dashboard, open_page: Open) -> None:
    visit = open_page()
    expect(visit.page.locator("#feature-list button")).to_have_count(9)
    expect(visit.changes()).to_have_count(5)
    assert re.match(
        r"iPFI importance of 5 features over time\. Now: f2 0\.3", visit.chart("importance")
    )
    seq = next(NEXT)
    expect(visit.page.locator("#status-text")).to_have_text(f"Live, record {seq - 1:,}")
    running.publish(*records(100, first=seq, half=1_000))
    expect(visit.page.locator("#status-text")).to_have_text(f"Live, record {seq + 90 + 9:,}")
    expect(visit.page.locator("#figures")).to_contain_text(re.compile(r"Records\s*2,\d00"))


def test_a_change_appears_and_is_announced_to_screen_readers(
    running: Dashboard, open_page: Open
) -> None:
    visit = open_page()
    before = visit.changes().count()
    running.publish(change("f7", next(NEXT), "isage"))
    expect(visit.changes()).to_have_count(before + 1)
    expect(visit.changes().first).to_contain_text("f7")
    expect(visit.page.locator("#announcer")).to_contain_text("iSAGE of f7 rose")


def test_a_change_of_the_wrong_predictions_is_named(running: Dashboard, open_page: Open) -> None:
    visit = open_page()
    before = visit.changes().count()
    running.publish(replace(change(None, next(NEXT), "loss"), id="0" * 12, signal="error"))
    expect(visit.changes()).to_have_count(before + 1)
    named = visit.page.locator(f"#change-list [data-id='{'0' * 12}']")
    expect(named).to_contain_text("wrong predictions")
    expect(visit.page.locator("#announcer")).to_contain_text("The share of wrong predictions rose")


def test_a_click_opens_the_story_and_escape_closes_it(open_page: Open) -> None:
    visit = open_page()
    entry = visit.changes().filter(has_text="f1").filter(has_text="iPFI")
    entry.click()
    story = visit.page.locator("#story")
    told = change("f1", 1301, "ipfi", rose=False)
    for text in (
        "iPFI of f1 fell",
        told.detail,
        "0.310 ± 0.006",
        "0.020 ± 0.018",
        "1 → 4 of 9",
        "near record 1,021, 280 records earlier (at most 280)",
        "0.210 → 0.480",
        "records 741 to 1,301",
        "3 other changes",
        told.id,
    ):
        expect(story).to_contain_text(text)
    expect(visit.page.locator("#story-chart canvas")).to_be_visible()
    expect(visit.page.locator("#story-title")).to_be_focused()
    assert f"change={told.id}" in visit.page.url
    visit.page.keyboard.press("Escape")
    expect(story).to_be_hidden()
    expect(entry).to_be_focused()


def test_a_mark_on_the_time_axis_opens_the_story(open_page: Open) -> None:
    visit = open_page()
    lane = visit.page.locator("#lane-chart")
    box = lane.bounding_box()
    assert box
    # the loss's mark, in the lowest of four rows, is the only one there
    story = visit.page.locator("#story")
    for x in range(60, int(box["width"]) - 40, 4):
        visit.page.mouse.click(box["x"] + x, box["y"] + box["height"] - 11)
        if story.is_visible():
            break
    expect(visit.page.locator("#story-title")).to_have_text("The loss rose")


def test_the_keyboard_alone_opens_a_story_and_goes_on_to_the_next(open_page: Open) -> None:
    visit = open_page()
    seqs = visit.changes().locator(".seq").all_inner_texts()
    numbers = [int(seq.replace(",", "")) for seq in seqs]
    visit.changes().nth(numbers.index(min(numbers))).focus()
    visit.page.keyboard.press("Enter")
    title = visit.page.locator("#story-title")
    expect(title).to_be_focused()
    first = title.inner_text()
    visit.page.keyboard.press("Shift+Tab")  # over the title, and no other button can be used
    later = visit.page.get_by_role("button", name="Later change")
    expect(later).to_be_focused()
    later.evaluate("button => { button.dataset.old = '' }")
    visit.page.emulate_media(color_scheme="dark")
    expect(visit.page.locator("[data-old]")).to_have_count(0)  # the story was drawn again
    expect(later).to_be_focused()
    visit.page.keyboard.press("Enter")
    expect(title).not_to_have_text(first)


def test_an_address_names_what_is_shown(running: Dashboard, open_page: Open) -> None:
    told = change("f2", 1302, "isage")
    visit = open_page(f"#method=isage&feature=f3&change={told.id}")
    expect(visit.page.locator("#story-title")).to_have_text("iSAGE of f2 rose")
    assert visit.page.get_by_role("radio", name="iSAGE").is_checked()
    assert visit.chart("importance").startswith("iSAGE")


def test_the_curve_of_a_chosen_feature_is_shown(open_page: Open) -> None:
    visit = open_page()
    visit.page.locator("#feature-list button", has_text="f1").click()
    expect(visit.page.locator("#effect-title")).to_have_text("Effect of f1")
    legend = visit.page.locator("#effect-legend")
    expect(legend).to_contain_text(re.compile(r"\d+ earlier curves"))
    expect(legend).to_contain_text("5 ICE curves")
    visit.page.locator("#effect [data-table]").click()
    expect(visit.page.locator("#effect-table tbody tr")).to_have_count(5)


def test_the_curve_of_each_class_and_the_surface_of_a_pair_are_shown(
    running: Dashboard, open_page: Open
) -> None:
    of_f8 = explanation(8, next(NEXT), 1_000, random.Random(1), method="ipdp")
    curve, slope = [0.2, 0.2, 0.3, 0.4, 0.4], [0.6, 0.5, 0.4, 0.3, 0.2]
    pair = replace(of_f8, feature="f1|f2", second_grid=["u", "v"], effect=[slope[:2]] * 5, ice=None)
    classes = replace(of_f8, classes=["a", "b", "c"], effect=[curve, slope, curve], ice=None)
    running.publish(pair, classes)
    visit = open_page("#method=ipdp&feature=f8")
    effect, chooser = visit.page.locator("#effect-chart"), visit.page.locator("#class")
    expect(effect).to_have_attribute("aria-label", re.compile("from 0.200 to 0.400 over 5"))
    chooser.select_option(label="b")
    expect(effect).to_have_attribute("aria-label", re.compile("from 0.200 to 0.600 over 5"))
    visit.page.locator("#feature-list button", has_text="f1|f2").click()
    expect(effect).to_have_attribute("aria-label", re.compile("f1.f2 .* from 0.500 to 0.600"))
    expect(chooser).to_be_hidden()
    visit.page.locator("#effect [data-table]").click()
    expect(visit.page.locator("#effect-table thead th")).to_have_text(["", "u", "v"])


def test_the_newest_curve_is_drawn_however_soon_it_comes_after_another(
    running: Dashboard, open_page: Open
) -> None:
    visit = open_page("#method=ipdp&feature=f8")
    for seq in (next(NEXT), next(NEXT)):
        running.publish(explanation(8, seq, 1_000, random.Random(1), method="ipdp"))
        expect(visit.page.locator("#effect-unit")).to_contain_text(f"record {seq:,}")


def test_a_curve_that_comes_late_is_not_drawn_for_another_choice(
    browser: Browser, tmp_path: Path
) -> None:
    other = "fluxplain.features-1"
    with dashboard(tmp_path, features=2, alpha=[0.001, 0.01]) as served:
        served.publish(*records(200, features=2), *records(100, features=2, alpha=0.01))
        served.publish(*records(150, features=2, stream=other))
        visit = Visit(browser, f"{served.address}/")
        visit.live()
        unit = visit.page.locator("#effect-unit")
        expect(unit).to_contain_text("record 190")
        held: list[Route] = []
        # Playwright notes something on a handler, which a built-in method does not take
        visit.page.route("**/api/curves?*alpha=0.01*", lambda route: held.append(route))  # noqa: PLW0108
        visit.page.locator("#alpha").select_option("0.01")
        wait_until(lambda: held, 20.0, attend=lambda: visit.page.wait_for_timeout(20))
        visit.page.locator("#stream").select_option(other)
        expect(unit).to_contain_text("record 140")
        with visit.page.expect_response("**/api/curves?*alpha=0.01*"):
            held[0].continue_()
        _drawn(visit)
        expect(unit).to_contain_text("record 140")
        visit.close()


def test_a_closer_look_asks_for_more_points(open_page: Open) -> None:
    visit = open_page()
    with visit.page.expect_request(lambda request: "from=" in request.url):
        visit.page.get_by_role("radio", name="Last 500").check()
    visit.page.get_by_role("radio", name="All").check()
    visit.page.locator("#importance-chart").hover()
    visit.page.keyboard.down("Control")
    with visit.page.expect_request(lambda request: "from=" in request.url and "to=" in request.url):
        visit.page.mouse.wheel(0, -300)
    visit.page.keyboard.up("Control")
    zoomed = visit.page.get_by_role("radio", name="Zoomed")
    expect(zoomed).to_be_checked()
    visit.page.get_by_role("radio", name="All").check()
    expect(zoomed).to_have_count(0)


def test_a_drag_over_the_chart_selects_the_records(open_page: Open) -> None:
    visit = open_page()
    expect(visit.page.locator("#importance-unit")).to_contain_text("drag to zoom")
    newest = visit.page.evaluate(NUMBERS)["newest_seq"]
    box = visit.page.locator("#importance-chart").bounding_box()
    assert box is not None
    middle, height = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    visit.page.mouse.move(middle - 100, height)
    visit.page.mouse.down()
    visit.page.mouse.move(middle, height, steps=5)
    visit.page.mouse.move(middle + 100, height, steps=5)
    visit.page.mouse.up()
    expect(visit.page.get_by_role("radio", name="Zoomed")).to_be_checked()
    expect(visit.page).to_have_url(re.compile(r"range=zoom-\d+-\d+"))
    chosen = re.search(r"zoom-(\d+)-(\d+)", visit.page.url)
    assert chosen is not None
    first, last = map(int, chosen.groups())
    share = 200 / box["width"]
    assert share < (last - first) / newest < 1.5 * share
    assert 0.2 * newest < first < last < 0.8 * newest


def test_a_drag_with_shift_moves_what_is_zoomed(open_page: Open) -> None:
    visit = open_page("#range=zoom-800-1200")
    box = visit.page.locator("#importance-chart").bounding_box()
    assert box is not None
    middle, height = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    visit.page.keyboard.down("Shift")
    visit.page.mouse.move(middle, height)
    visit.page.mouse.down()
    visit.page.mouse.move(middle + 100, height, steps=5)
    visit.page.mouse.up()
    visit.page.keyboard.up("Shift")
    expect(visit.page).not_to_have_url(re.compile("range=zoom-800-1200"))
    chosen = re.search(r"zoom-(\d+)-(\d+)", visit.page.url)
    assert chosen is not None
    first, last = map(int, chosen.groups())
    assert first < 800
    assert last - first == pytest.approx(400, abs=2)


def test_an_empty_chart_says_why_it_is_empty(browser: Browser, tmp_path: Path) -> None:
    with dashboard(tmp_path, features=2) as served:
        visit = Visit(browser, f"{served.address}/", viewport=WIDE)
        no_curve = "No curve yet: curves begin after the warm-up."
        expect(visit.page.locator("#effect-chart")).to_have_attribute("aria-label", no_curve)
        expect(visit.page.locator("#importance-chart")).to_have_attribute(
            "aria-label",
            re.compile("No record yet. Send observations to the topic fluxplain.features;"),
        )
        served.publish(*records(300, features=2))
        visit.live()
        expect(visit.page.locator("#effect-chart")).to_have_attribute(
            "aria-label", re.compile("Effect of f")
        )
        visit.close()


@pytest.mark.parametrize("name", ["importance", "performance"])
def test_each_chart_has_a_table(open_page: Open, name: str) -> None:
    visit = open_page()
    button = visit.page.locator(f"#{name} [data-table]")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert visit.page.locator(f"#{name}-table tbody tr").count() >= 10
    expect(visit.page.locator(f"#{name}-chart")).to_be_hidden()


def test_what_stands_in_the_topics_is_text(running: Dashboard, open_page: Open) -> None:
    visit = open_page()
    markup = "<img src=x onerror=alert(1)>"
    running.publish(letter(next(NEXT), markup))
    running.publish(
        Change.notice(kind="gap", stream="fluxplain.features-0", seq=next(NEXT), detail=markup)
    )
    expect(visit.page.locator("#operations")).to_contain_text(markup)
    assert visit.page.locator("#operations img, #change-list img").count() == 0


def test_what_is_left_out_is_counted(running: Dashboard, open_page: Open) -> None:
    visit = open_page()
    foreign = explanation(0, next(NEXT), 1_000, random.Random(1))
    running.publish(*(replace(foreign, feature="x" * 1000 + str(i)) for i in range(3)))
    expect(visit.page.locator("#operations")).to_contain_text("3 records left out: their names")


def test_light_and_dark_follow_the_system_and_the_switch(open_page: Open) -> None:
    visit = open_page(color_scheme="dark")

    def page_is_dark() -> bool:
        color = visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        return max(map(int, re.findall(r"\d+", color))) < 60

    assert page_is_dark()
    visit.page.get_by_role("button", name="Use the light theme").click()
    assert not page_is_dark()
    visit.page.reload()
    visit.live()
    assert not page_is_dark()


@pytest.mark.parametrize(("theme", "viewport"), [("dark", WIDE), ("light", PHONE)])
def test_there_is_no_barrier_that_axe_finds(
    open_page: Open, theme: str, viewport: dict[str, int]
) -> None:
    visit = open_page(color_scheme=theme, viewport=viewport)
    for table in ("importance", "effect", "performance"):
        visit.page.locator(f"#{table} [data-table]").click()
    assert visit.barriers() == []
    visit.changes().first.click()
    expect(visit.page.locator("#story-title")).to_be_visible()
    assert visit.barriers() == []


def test_a_phone_need_not_scroll_sideways(open_page: Open) -> None:
    visit = open_page(viewport=PHONE)
    visit.changes().last.click()
    expect(visit.page.locator("#story-title")).to_be_in_viewport()
    assert visit.page.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("viewport", [WIDE, PHONE])
def test_the_longest_names_fit_the_page(
    browser: Browser, tmp_path: Path, viewport: dict[str, int]
) -> None:
    long = "x" * 249
    of_long = explanation(1, 90, 1_000, random.Random(1), method="ipdp")
    with dashboard(tmp_path, features=2) as served:
        served.publish(*records(100, features=2), letter(1, long), change(long, 95, "ipdp"))
        served.publish(replace(of_long, feature=long))
        visit = Visit(browser, f"{served.address}/#method=ipdp&feature={long}", viewport=viewport)
        visit.live()
        width = "() => document.documentElement.scrollWidth"
        expect(visit.page.locator("#effect-title")).to_have_text(f"Effect of {long}")
        assert visit.page.evaluate(width) == viewport["width"]
        visit.changes().first.click()
        expect(visit.page.locator("#story-title")).to_have_text(f"iPDP of {long} rose")
        assert visit.page.evaluate(width) == viewport["width"]
        visit.close()


@pytest.mark.parametrize(("theme", "viewport"), [("dark", WIDE), ("light", PHONE)])
def test_all_streams_stand_side_by_side_and_one_is_chosen(
    browser: Browser, tmp_path: Path, theme: str, viewport: dict[str, int]
) -> None:
    streams = [f"fluxplain.features-{i}" for i in (0, 2, 10)]
    with dashboard(tmp_path, features=2) as served:
        served.publish(*records(60, features=2, stream=streams[0]))
        visit = Visit(browser, f"{served.address}/", color_scheme=theme, viewport=viewport)
        visit.live()
        overview, rows = visit.page.locator("#streams"), visit.page.locator("#streams-rows tr")
        expect(overview).to_be_hidden()
        long = "x" * 249
        for i, stream in enumerate(streams[1:], 1):
            of_long = explanation(1, 90, 0, random.Random(1), stream=stream)
            served.publish(
                *records(60 + i, features=2, stream=stream), replace(of_long, feature=long)
            )
        expect(rows.locator("th")).to_have_text(["features-0", "features-2", "features-10"])
        expect(rows.nth(0)).to_have_class("is-chosen")
        served.publish(change("f1", 62, "isage", stream=streams[2]))
        expect(rows.locator("th")).to_have_text(["features-10", "features-0", "features-2"])
        expect(rows.nth(0)).to_contain_text("f1 iSAGE")
        expect(rows.nth(0)).to_contain_text("record 62")
        assert visit.barriers() == []
        assert (
            visit.page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]
        )
        rows.nth(0).locator("td").first.click()
        expect(visit.page.locator("#stream")).to_have_value(streams[2])
        expect(rows.nth(0)).to_have_class("is-chosen")
        # and by the keyboard alone
        visit.page.get_by_role("button", name="features-2", exact=True).focus()
        visit.page.keyboard.press("Enter")
        expect(visit.page.locator("#stream")).to_have_value(streams[1])
        pressed = visit.page.get_by_role("button", name="features-2", exact=True)
        expect(pressed).to_have_attribute("aria-pressed", "true")
        expect(pressed).to_be_focused()
        numbers = range(100, 170)
        served.publish(*(prediction(0, stream=f"fluxplain.features-{i}") for i in numbers))
        expect(visit.page.locator("#streams-unit")).to_contain_text("only the first 64 are shown")
        expect(rows).to_have_count(64)
        visit.close()


def test_a_lost_server_is_reported_and_what_was_missed_is_there_later(
    browser: Browser, tmp_path: Path
) -> None:
    with dashboard(tmp_path, features=2) as served:
        served.publish(*records(200, features=2))
        visit = Visit(browser, f"{served.address}/")
        visit.live()
        served.stop()
        expect(visit.page.locator("#banner")).to_contain_text("does not answer; trying again")
        served.publish(*records(100, features=2, first=200))
        served.start(port=served.address.rpartition(":")[2])
        expect(visit.page.locator("#status-text")).to_have_text("Live, record 299")
        expect(visit.page.locator("#banner")).to_be_hidden()
        # the browser tells each time that it was refused
        refused = ("net::ERR_", "Failed to fetch")
        visit.complaints = [c for c in visit.complaints if not any(r in c for r in refused)]
        visit.close()


def test_before_the_first_record_the_page_says_what_it_waits_for(
    browser: Browser, tmp_path: Path
) -> None:
    with dashboard(tmp_path, features=2) as served:
        visit = Visit(browser, f"{served.address}/")
        expect(visit.page.locator("#status-text")).to_have_text("Waiting for the first record")
        expect(visit.page.locator("#feature-empty")).to_contain_text("No record yet")
        served.publish(*records(50, features=2))
        visit.live()
        expect(visit.page.locator("#feature-list button")).to_have_count(2)
        visit.close()


def test_a_hundred_features_can_be_searched_and_the_top_ones_chosen(
    browser: Browser, tmp_path: Path
) -> None:
    with dashboard(tmp_path, features=100) as served:
        served.publish(*records(100, features=100, half=0))
        visit = Visit(browser, f"{served.address}/")
        visit.live()
        rows = visit.page.locator("#feature-list li:visible button")
        expect(rows).to_have_count(100)
        assert "importance of 5 features" in visit.chart("importance")
        visit.page.locator("#top").select_option("20")
        expect(visit.page.locator("#importance-chart")).to_have_attribute(
            "aria-label", re.compile("importance of 20 features")
        )
        visit.page.get_by_role("searchbox").fill("F77")
        expect(rows).to_have_count(1)
        visit.page.keyboard.press("Enter")
        expect(visit.page.locator("#effect-title")).to_have_text("Effect of f77")
        assert "importance of 21 features" in visit.chart("importance")
        visit.close()


def test_the_page_shows_the_running_demo(browser: Browser, tmp_path: Path) -> None:
    with demo(tmp_path, "--records", "4000") as running:
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


def _drawn(visit: Visit) -> None:
    """Wait until the page has drawn what it has."""
    visit.page.evaluate(
        "() => new Promise((done) => setTimeout(() => requestAnimationFrame(done)))"
    )


def test_no_script_or_style_stands_in_the_page() -> None:
    text = (PAGE / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son\w+=|https?://", text)

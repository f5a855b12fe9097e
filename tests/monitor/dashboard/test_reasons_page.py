"""The page's reasons for single outputs, in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.kit.records import reasons
from tests.monitor.dashboard.browser import PHONE, WIDE, Dashboard, Visit, dashboard
from tests.monitor.dashboard.conftest import Open
from tests.monitor.dashboard.stream import STREAM, records

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module", autouse=True)
def _published(running: Dashboard) -> None:
    running.publish(
        reasons(1_500, stream=STREAM),
        reasons(1_600, stream=STREAM, label=None, output=0.05),
        *(
            replace(reasons(1_700, stream=STREAM, output=output, prediction="b"), label=label)
            for label, output in (("a", 0.2), ("b", 0.7), ("c", 0.1))
        ),
    )


def test_the_newest_reasons_are_listed_and_new_ones_appear(
    running: Dashboard, open_page: Open
) -> None:
    visit = open_page()
    rows = visit.page.locator("#reasons-rows tr")
    expect(rows.locator("th")).to_have_text(["1,700", "1,600", "1,500"])
    expect(rows.nth(0).locator("td")).to_have_text(
        ["tx-1700", "b", "P(b) = 0.700", "amount = 950.5", "+0.550"]
    )
    expect(rows.nth(1)).to_contain_text("amount = 950.5−0.100")
    running.publish(reasons(1_450, stream=STREAM))
    expect(rows).to_have_count(4)


def test_the_keyboard_opens_the_reasons_for_an_output_and_escape_closes_them(
    open_page: Open,
) -> None:
    visit = open_page()
    link = visit.page.get_by_role("link", name="1,500", exact=True)
    link.focus()
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("#reasons-page-title")).to_have_text(
        "Why record 1,500 got its output"
    )
    expect(visit.page.locator("#reasons-page-title")).to_be_focused()
    assert "reasons=1500" in visit.page.url
    page = visit.page.locator("#reasons-page")
    for text in ("tx-1500", "Model version7", "Probability of true: 0.900", "average", "0.250"):
        expect(page).to_contain_text(text)
    expect(page).to_contain_text("estimated from permutations")
    cells = page.locator("tbody tr")
    expect(cells.nth(1)).to_have_text("amount950.5+0.750 ± 0.030 ▲")
    expect(cells.nth(2)).to_have_text("hour3−0.125 ± 0.010 ▼")
    expect(cells.nth(3)).to_have_text("all others+0.025 ▲")
    expect(cells.nth(4)).to_have_text("output0.900 ")
    visit.page.keyboard.press("Escape")
    expect(page).to_be_hidden()
    expect(link).to_be_focused()


def test_an_address_opens_reasons_with_a_block_for_each_label(open_page: Open) -> None:
    visit = open_page(f"#stream={STREAM}&reasons=1700")
    headings = visit.page.locator("#reasons-page h3")
    expect(headings).to_have_count(3)
    for i, label in enumerate("abc"):
        expect(headings.nth(i)).to_contain_text(f"Probability of {label}")


def test_a_missing_value_is_said_to_be_replaced(running: Dashboard, open_page: Open) -> None:
    running.publish(replace(reasons(1_475, stream=STREAM), missing=["amount", "tenor"]))
    visit = open_page("#reasons=1475")
    cells = visit.page.locator("#reasons-page tbody tr .value")
    expect(cells.nth(1)).to_have_text("missing, replaced by 950.5")
    note = visit.page.locator("#reasons-page .note").first
    expect(note).to_contain_text("Missing in groups, and replaced: tenor.")
    expect(cells.nth(2)).to_have_text("3")
    visit.page.keyboard.press("Escape")
    row = visit.page.locator("#reasons-rows tr").filter(has_text="tx-1475")
    expect(row).to_contain_text("amount: missing, replaced by 950.5")


def test_bars_begin_at_the_average_and_end_at_the_output(open_page: Open) -> None:
    visit = open_page("#reasons=1500")
    bars = visit.page.locator("#reasons-page").locator(".raised, .lowered")
    expect(bars).to_have_count(3)
    ends = bars.evaluate_all("all => all.map((e) => [e.getAttribute('x1'), e.getAttribute('x2')])")
    marks = visit.page.locator("#reasons-page .mark")
    base, output = marks.evaluate_all("all => all.map((e) => e.getAttribute('x1'))")
    assert ends[0][0] == base
    assert [float(x) for _, x in ends[:2]] == pytest.approx([float(x) for x, _ in ends[1:]])
    assert float(ends[-1][1]) == pytest.approx(float(output))


def test_reasons_that_are_not_kept_are_said_to_be_missing(open_page: Open) -> None:
    visit = open_page("#reasons=12")
    page = visit.page.locator("#reasons-page")
    expect(page).to_contain_text("No reasons of this record are kept here")
    expect(page).to_contain_text(f"fluxplain why --seq 12 --stream {STREAM}")
    # the browser logs the answer 404
    visit.complaints = [each for each in visit.complaints if "404" not in each]


@pytest.mark.parametrize(("theme", "viewport"), [("dark", WIDE), ("light", PHONE)])
def test_the_reasons_have_no_barrier_and_fit_the_screen(
    running: Dashboard, open_page: Open, theme: str, viewport: dict[str, int]
) -> None:
    long = "x" * 249
    running.publish(
        replace(reasons(1_300, stream=STREAM), id=long, names=[long, "b"], values=[long, long])
    )
    visit = open_page("#reasons=1300", color_scheme=theme, viewport=viewport)
    expect(visit.page.locator("#reasons-page")).to_contain_text(long)
    width = "() => document.documentElement.scrollWidth"
    for _ in range(2):
        assert visit.barriers() == []
        assert visit.page.evaluate(width) == viewport["width"]
        visit.page.keyboard.press("Escape")
        expect(visit.page.locator("#reasons-rows")).to_be_visible()


@pytest.mark.parametrize(
    ("enabled", "text"), [("true", "No reasons yet"), ("false", "Reasons are not enabled")]
)
def test_without_reasons_the_page_says_why(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: str, text: str
) -> None:
    monkeypatch.setenv("FLUXPLAIN_REASONS__ENABLED", enabled)
    with dashboard(tmp_path, features=2) as served:
        served.publish(*records(50, features=2))
        visit = Visit(browser, f"{served.address}/")
        visit.live()
        expect(visit.page.locator("#reasons-empty")).to_contain_text(text)
        visit.close()

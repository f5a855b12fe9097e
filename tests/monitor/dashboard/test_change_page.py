"""The page of one change in a real browser: why, where, and which records."""

from dataclasses import replace
from itertools import count

import pytest
from playwright.sync_api import expect

from fluxplain.schemas import Change
from fluxplain.schemas.change import Cause, Condition, Evidence, Period, Region
from tests.kit.records import reasons
from tests.monitor.dashboard.browser import PHONE, WIDE, Dashboard
from tests.monitor.dashboard.conftest import Open
from tests.monitor.dashboard.stream import STREAM, change

pytestmark = pytest.mark.browser

expect.set_options(timeout=20_000)

CAUSE = Cause("model", 0.05, 0.02, 0.25, 0.03, 0.01, 0.0)

REGION = Region(
    [
        Condition("salary", ">", 75_000),
        Condition("age", "<=", 39.5),
        Condition("ts", ">", 1_700_000_802.9),
    ],
    coverage=0.22,
    share=0.8,
)

EVIDENCE = [
    Evidence(1_500, increment=0.75),
    Evidence(1_501, feature="salary", value=2_000_000, low=20_000, high=150_000),
    Evidence(1_502, increment=-0.25, feature="town", value="Ulm"),
]


NEXT = count(1_800, 100)
"""Seqs of changes of one feature, in order."""


def followed(feature: str, seq: int) -> Change:
    """Return a change's second record, without the parts that tests fill in."""
    noticed = change(feature, seq, "isage", rose=feature != "f1")
    return replace(noticed, status="confirmed", status_seq=seq + 100)


def test_a_change_says_why_where_and_in_which_records(running: Dashboard, open_page: Open) -> None:
    told = replace(followed("f5", 1_600), cause=CAUSE, region=REGION, evidence=EVIDENCE)
    told = replace(told, returns_to=Period(200, 1_100))
    running.publish(reasons(1_500, stream=STREAM), told)
    visit = open_page(f"#change={told.id}")
    story = visit.page.locator("#story")
    expect(story.locator("section h3")).to_have_text(
        ["What", "Why", "Where", "Like before", "Which records"]
    )
    for text in (
        "Mostly because the model changed (82 %).",
        "Data0.050 ± 0.020",
        "Model0.250 ± 0.030",
        "Together0.010 ± 0",
        "salary > 75,000 and age ≤ 39.5 and ts > 1,700,000,802.9: "
        "22 % of the observations, 80 % of the change",
        "same shares of all importance as between records 200 and 1,100.",
        "record 1,500: increment +0.750",
        "record 1,501; salary = 2,000,000, outside of 20,000 to 150,000 before",
        "record 1,502: increment −0.250; town = Ulm, not seen before",
    ):
        expect(story).to_contain_text(text)
    expect(story.locator("#story-evidence a")).to_have_text(["1,500"])
    story.get_by_role("link", name="1,500").press("Enter")
    expect(visit.page.locator("#reasons-page-title")).to_be_focused()
    expect(story).to_be_visible()
    visit.page.keyboard.press("Escape")
    expect(story.get_by_role("link", name="1,500")).to_be_focused()


def test_an_observation_becomes_a_link_when_its_reasons_come(
    running: Dashboard, open_page: Open
) -> None:
    told = replace(followed("f6", 1_700), evidence=[Evidence(1_690, increment=0.5)])
    running.publish(told)
    visit = open_page(f"#change={told.id}")
    seqs = visit.page.locator("#story-evidence")
    expect(seqs).to_have_text("record 1,690: increment +0.500")
    expect(seqs.locator("a")).to_have_count(0)
    running.publish(reasons(1_690, stream=STREAM))
    expect(seqs.locator("a")).to_have_count(1)


def test_unknown_parts_are_left_out(running: Dashboard, open_page: Open) -> None:
    told = followed("f1", 1_650)
    running.publish(told)
    visit = open_page(f"#change={told.id}")
    expect(visit.page.locator("#story section h3")).to_have_text(["What"])


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause("data", 0.3, 0.01, 0.1, 0.01, -0.1, 0.01), "because the data changed (83 %)."),
        (Cause("data", 0.4, 0.01, -0.1, 0.01, 0.0, 0.0), "because the data changed."),
        (
            Cause("both", -0.2, 0.01, -0.2, 0.01, 0.0, 0.0),
            "both the data (50 %) and the model (50 %) changed.",
        ),
        (Cause("labels", 0.1, 0.2, 0.0, 0.0, 0.0, 0.0), "the labels fit the outputs differently"),
        (Cause("unclear", 0.0, None, 0.0, 0.1, 0.0, 0.0), "It is not clear whether"),
    ],
)
def test_the_cause_is_said_in_words(
    running: Dashboard, open_page: Open, cause: Cause, text: str
) -> None:
    told = replace(followed("f7", next(NEXT)), cause=cause)
    running.publish(told)
    visit = open_page(f"#change={told.id}")
    expect(visit.page.locator("#story")).to_contain_text(text)


@pytest.mark.parametrize(("theme", "viewport"), [("dark", WIDE), ("light", PHONE)])
def test_the_page_of_a_change_has_no_barrier_and_fits_the_screen(
    running: Dashboard, open_page: Open, theme: str, viewport: dict[str, int]
) -> None:
    long = "x" * 249
    region = Region([Condition(long, "==", long)], 0.1, 0.9)
    evidence = [Evidence(1_500, long, increment=0.5, feature=long, value=long)]
    told = replace(followed("f8", next(NEXT)), cause=CAUSE, region=region, evidence=evidence)
    running.publish(told)
    visit = open_page(f"#change={told.id}", color_scheme=theme, viewport=viewport)
    expect(visit.page.locator("#story-evidence")).to_contain_text(long)
    assert visit.barriers() == []
    assert visit.page.evaluate("() => document.documentElement.scrollWidth") == viewport["width"]

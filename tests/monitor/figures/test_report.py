"""The report: one file that needs nothing else, and that everybody can read."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fluxplain.monitor.figures import report_page
from fluxplain.results.change_context import ChangeContext
from fluxplain.results.selection import NothingToPlotError, SelectedResults
from fluxplain.results.store import MAX_SEQ
from fluxplain.schemas import Change, Explanation
from fluxplain.schemas.change import Curve
from tests.kit.records import METHODS, STREAM, change, explanation, prediction
from tests.kit.support import SLOW_PROPERTY
from tests.monitor.figures.samples import GRID, changes_of, drift_of, explained, stream_of

VOID = {"meta", "br", "hr", "link", "img", "input", "use", "path"}


class Page(HTMLParser):
    """Checks that elements are nested, and collects them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def results() -> SelectedResults:
    return SelectedResults.of(stream_of(6), contexts=map(ChangeContext, changes_of(6)))


@cache
def html() -> str:
    return report_page(results())


@cache
def page() -> Page:
    return Page(html())


@pytest.mark.slow
def test_needs_no_network_and_no_script() -> None:
    for tag, attributes in page().elements:
        assert tag not in {"script", "link", "iframe", "img"}
        for name, value in attributes.items():
            if name in {"href", "src", "xlink:href"}:
                assert (value or "").startswith("#"), (tag, value)
    assert "@import" not in html()
    assert set(re.findall(r"url\((.)", html())) <= {"#"}
    addresses = set(re.findall(r"https?://[^\"'\s<)]+", html()))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@pytest.mark.slow
def test_ids_are_unique_and_all_that_is_referred_to_is_there() -> None:
    ids = Counter(value for _, a in page().elements for key, value in a.items() if key == "id")
    assert {name: n for name, n in ids.items() if n > 1} == {}
    referred = set(re.findall(r"url\(#([^)]+)\)", html()))
    referred |= {str(a[k])[1:] for _, a in page().elements for k in a if k.endswith("href")}
    referred |= {i for a in page().named("svg") for i in str(a["aria-labelledby"]).split()}
    assert referred <= set(ids)


def test_has_all_figures_each_with_a_name_and_its_numbers_as_a_table() -> None:
    figures = page().named("svg")
    assert len(figures) == 2 + 3
    assert all(figure["role"] == "img" and figure["aria-labelledby"] for figure in figures)
    captions = html().count("<caption>")
    assert captions == len(page().named("table")) >= 1 + 6 + 3 * 1 + 2 * 2 + 1
    text = " ".join(page().text)
    for part in (
        "Importance now ± standard error",
        "iPDP of f1",
        "Means of iSAGE ± standard error",
        "iPDP before, at seq 1,499",
        "Changes in order",
    ):
        assert part in text


def test_a_summary_says_in_words_what_there_is() -> None:
    text = " ".join(page().text)
    assert "Explanations of 6 features, observations 19 to 2,999 of features-0." in text
    assert "By iPFI, the model now relies most on f1 (0.310 ±0.010)" in text
    assert "Over the last 500 labelled observations, its mean loss is 0.6" in text
    assert "3 changes reported, in 1 incident." in text


def test_changes_with_a_story_lead_to_it() -> None:
    links = [attributes["href"] for attributes in page().named("a")]
    assert len(links) == len(changes_of(6))
    for drift, place in zip(sorted(changes_of(6), key=lambda c: c.seq), links, strict=True):
        [section] = re.findall(rf'<section id="{str(place)[1:]}">.*?</section>', html(), re.DOTALL)
        assert drift.detail in section


def test_follows_the_readers_choice_of_light_or_dark_and_prints() -> None:
    assert "@media screen and (prefers-color-scheme:dark)" in html()
    assert "@media print" in html()
    figures = re.findall(r"<svg.*?</svg>", html(), flags=re.DOTALL)
    for figure in figures:
        assert re.findall(r"(?:fill|stroke): #\w+", figure) == []
    defined = set(re.findall(r"(--c\w+):", html()))
    assert set(re.findall(r"var\((--c\w+)\)", html())) <= defined


@pytest.mark.slow
def test_is_the_same_each_time() -> None:
    assert report_page(results()) == html()


def test_names_are_text_and_never_markup() -> None:
    name = r"<script>alert('x')</script>&\d\1" + "\x1b[0m"
    drift = replace(drift_of(name), detail=f"{name} rose", id='"><b>')
    records = [*explained([name, "f1"]), drift]
    named = SelectedResults.of(records, contexts=[ChangeContext(drift)])
    text = report_page(named, title=name)
    assert Page(text).named("script") == []
    assert Page(text).named("b") == page().named("b")
    assert "\x1b" not in text


def test_what_is_no_drift_is_described_in_words() -> None:
    gap = Change.notice(kind="gap", stream=STREAM, seq=7, detail="explanations are lost")
    text = report_page(SelectedResults.of([*stream_of(6), gap]))
    assert "<li>7: explanations are lost</li>" in text
    assert "3 changes reported" in text


def test_without_changes_and_curves_it_is_shorter() -> None:
    records = [r for r in explained(["f0"], ["ipfi"]) if isinstance(r, Explanation)]
    text = report_page(SelectedResults.of(records))
    assert len(Page(text).named("svg")) == 1
    assert "No changes were reported." in text
    with pytest.raises(NothingToPlotError):
        report_page(SelectedResults.of([change("f0", 7)]))


@pytest.mark.slow
def test_stays_small_with_100_features() -> None:
    text = report_page(SelectedResults.of(stream_of(100, long=True)))
    assert len(text) < 3_000_000


NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1e150, -1e150])


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    grid = draw(st.lists(NUMBERS | st.text(max_size=5) | st.booleans(), max_size=4))
    return Curve(draw(st.integers(0, 10**9)), grid or [*GRID], draw(st.lists(NUMBERS, max_size=4)))


@pytest.mark.slow
@settings(SLOW_PROPERTY, max_examples=5)
@given(st.lists(NUMBERS, min_size=12, max_size=12), curves(), st.integers(0, MAX_SEQ - 10))
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_any_numbers_can_be_drawn(numbers: list[float], curve: Curve, seq: int) -> None:
    drift = replace(
        drift_of("f0"),
        seq=seq + 5,
        after_seq=seq,
        replay_seq=max(0, seq - 5),
        before=numbers[0],
        after=numbers[1],
        before_std_error=abs(numbers[2]),
        loss_before=numbers[3],
        curve_before=curve,
        curve_after=curve,
    )
    records = [
        replace(
            explanation(feature, seq + i, numbers[i], method=method, std_error=abs(numbers[-i])),
            seqs=[seq + i],
            increments=[numbers[i]],
            grid=curve.grid,
            effect=curve.effect,
        )
        for i in range(6)
        for feature in ("f0", "f1")
        for method in METHODS
    ]
    predictions = [prediction(seq + i, loss=numbers[i]) for i in range(6)]
    later = [explanation("f0", seq + 9, 0.1), change("f1", seq)]
    published = [*records, *predictions, drift, *later]
    assert report_page(SelectedResults.of(published, contexts=[ChangeContext(drift)]))

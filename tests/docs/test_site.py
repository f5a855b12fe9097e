"""The built site: nothing in it leads nowhere, and a browser needs no network."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from fluxplain import __version__
from fluxplain.explain import __all__ as offered
from tests.docs.documents import ROOT, WRITTEN_BY_HAND

SITE = ROOT / "build" / "site"

LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}
"""Element → what a browser gets by itself."""

pytestmark = pytest.mark.site


class Page(HTMLParser):
    """Where a page leads, what it loads, and the places in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.places |= {found.get("id", ""), found.get("name", "")}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if LOADED.get(tag) in found:
            self.loaded.append(found[LOADED[tag]])


def pages() -> Iterator[tuple[Path, Page]]:
    assert SITE.is_dir(), "make docs builds the site"
    for path in sorted(SITE.rglob("*.html")):
        yield path, Page(path)


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).scheme or urlsplit(link).netloc)


def test_every_link_leads_to_a_file_and_a_place() -> None:
    all_pages = dict(pages())
    broken = []
    for path, page in all_pages.items():
        for link in (each for each in (*page.links, *page.loaded) if not is_elsewhere(each)):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = all_pages.get(target)
            if not target.is_file() or (there and unquote(parts.fragment) not in there.places):
                broken.append(f"{path.relative_to(SITE)}: {link}")
    assert not broken


def test_a_browser_needs_no_network() -> None:
    loaded = [each for _, page in pages() for each in page.loaded]
    assert loaded
    assert not [each for each in loaded if is_elsewhere(each)]
    styles = "".join(path.read_text("utf-8") for path in SITE.rglob("*.css"))
    assert "url(http" not in styles.replace('"', "").replace("'", "")
    assert "@import" not in styles


def test_every_document_is_a_page_and_the_site_begins_with_the_first_one() -> None:
    others = ("vendor", "TEMPLATE")  # of others, and to be filled in
    documents = [each for each in WRITTEN_BY_HAND if not any(part in each for part in others)]
    pages_of = {Path(each).with_suffix(".html") for each in documents}
    assert all((SITE / each).is_file() for each in pages_of)
    assert "url=deploy/docs/start.html" in (SITE / "index.html").read_text()
    assert f"fluxplain {__version__}" in (SITE / "README.html").read_text()
    assert (SITE / "searchindex.js").is_file()


def test_all_that_the_library_offers_is_in_its_reference() -> None:
    [reference] = SITE.rglob("api.html")
    assert {f"fluxplain.explain.{name}" for name in offered} - {"fluxplain.explain.LOSSES"} <= Page(
        reference
    ).places

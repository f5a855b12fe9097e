"""Links and names of files lead somewhere, within the repository."""

import re

import pytest

from tests.docs.documents import DOCUMENTS, ROOT, WRITTEN_BY_HAND, anchors, links, spans

FOLDERS = {each.name for each in ROOT.iterdir() if each.is_dir()}

MADE = ("build/", "dist/")
"""What is not there before it is made."""


def broken(document: str) -> list[str]:
    return [link for link in links(document) if not is_there(document, link)]


def is_there(document: str, link: str) -> bool:
    if re.match("https?://", link):
        return True
    path, _, anchor = link.partition("#")
    target = (ROOT / document).parent / path if path else ROOT / document
    if not target.exists() or not target.resolve().is_relative_to(ROOT):
        return False
    name = str(target.resolve().relative_to(ROOT))
    return not anchor or (name in DOCUMENTS and anchor in anchors(name))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_leads_to_a_file_and_a_heading(document: str) -> None:
    assert not broken(document)


@pytest.mark.parametrize(
    "link", ["nothing.md", "deploy/README.md#nothing", "#nothing", "LICENSE#mit", "../outside.md"]
)
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    assert not is_there("README.md", link)


@pytest.mark.parametrize("document", WRITTEN_BY_HAND)
def test_every_file_that_is_named_exists(document: str) -> None:
    paths = [each for each in spans(document) if re.fullmatch(r"\.?[\w-]+(/[\w.*-]+)+/?", each)]
    of_ours = [path for path in paths if path.partition("/")[0] in FOLDERS]
    missing = [path for path in of_ours if not path.startswith(MADE) and not any(ROOT.glob(path))]
    assert not missing


def test_the_readme_leads_to_every_page() -> None:
    pages = {each for each in WRITTEN_BY_HAND if each.startswith("deploy/docs/")}
    # the library's reference is written by `make docs`, and only the library's page leads there
    assert pages - set(links("README.md")) == {"deploy/docs/api.md"}
    assert "api.md" in links("deploy/docs/library.md")

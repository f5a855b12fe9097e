"""Sphinx configuration of the documentation site: `make docs`.

The source folder is the repository itself, so that links work both on the site and in the
repository.
"""

from pathlib import Path

from sphinx.application import Sphinx

from fluxplain import __version__

project = "fluxplain"
author = copyright = "fluxplain contributors"
version = release = __version__

NAVIGATION = {
    "Use": [
        "../../README",
        *(
            "is-it-for-me",
            "gallery",
            "explanations",
            "reasons",
            "topics",
            "streams",
            "models",
            "ecosystem",
            "history",
            "registry",
        ),
        *("configuration", "pictures", "library", "limits"),
    ],
    "Operate": ["../README", "cost", "promises", "../../.github/SECURITY"],
    "Reference": ["commands", "api", "../../pipeline/explain/README"],
    "Develop": ["../../CONTRIBUTING", "architecture", "../../CHANGELOG"],
    "Measurements": [
        "case-study",
        "../../tests/measure/alerts/results/README",
        "../../tests/measure/behind/results/README",
        "../../tests/measure/benchmarks/results/README",
        "../../tests/measure/coverage/results/README",
        "../../tests/measure/experiments/results/README",
        "../../tests/models/results/README",
    ],
}
"""Heading of the navigation → pages, relative to this folder. The first page comes before them."""

root_doc = "deploy/docs/start"
include_patterns = [
    "*.md",
    "deploy/README.md",
    "deploy/docs/*.md",
    "pipeline/explain/README.md",
    "tests/**/results/README.md",
    ".github/SECURITY.md",
]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # of records that are shortened by …

autodoc_default_options = {"members": True, "inherited-members": True}
autodoc_typehints = "none"  # the docstrings describe them
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"fluxplain {version}"
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Add what Markdown cannot express: the navigation and the start page."""
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _redirect_to_first_page)


def _add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    if page != root_doc:
        return
    here = Path(__file__).parent
    for caption, pages in NAVIGATION.items():
        paths = [f"/{(here / each).resolve().relative_to(app.srcdir).as_posix()}" for each in pages]
        lines = ["", "```{toctree}", ":hidden:", f":caption: {caption}", *paths, "```", ""]
        source[0] += "\n".join(lines)


def _redirect_to_first_page(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        page = f'<!doctype html>\n<meta http-equiv="refresh" content="0; url={root_doc}.html">\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")

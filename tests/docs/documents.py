"""The documents of the repository, read as Markdown."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from deploy.docs.settings import sections

ROOT = Path(__file__).parents[2]

FOLDERS = (".github", "deploy", "pipeline", "tests")

DOCUMENTS = sorted(
    str(path.relative_to(ROOT))
    for path in (
        *ROOT.glob("*.md"),
        *(md for each in FOLDERS for md in (ROOT / each).rglob("*.md")),
    )
)

WRITTEN_BY_HAND = [each for each in DOCUMENTS if not each.endswith("results/README.md")]


class Snippet(NamedTuple):
    document: str
    line: int
    language: str
    text: str


@cache
def tokens(document: str) -> list[Token]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return MarkdownIt("commonmark").enable("table").parse(text)


def inline(document: str) -> Iterator[Token]:
    """Yield all that is within paragraphs, headings and cells."""
    for token in tokens(document):
        yield from token.children or ()


def spans(document: str) -> list[str]:
    """Return what is set as code within sentences."""
    return [token.content for token in inline(document) if token.type == "code_inline"]


def links(document: str) -> list[str]:
    """Return where links lead, and where pictures are."""
    found = (token.attrGet("href") or token.attrGet("src") for token in inline(document))
    return [str(each) for each in found if each]


def anchors(document: str) -> list[str]:
    """Return the names of the headings, as Git hosts and the site make them."""
    found: list[str] = []
    for opening, content in pairwise(tokens(document)):
        if opening.type == "heading_open":
            text = "".join(token.content for token in content.children or ())
            name = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            n = sum(re.fullmatch(rf"{re.escape(name)}(-\d+)?", each) is not None for each in found)
            found.append(f"{name}-{n}" if n else name)
    return found


def snippets(*languages: str) -> list[Snippet]:
    """Return the blocks of code in these languages, of all documents."""
    return [
        Snippet(document, token.map[0] + 1 if token.map else 0, token.info, token.content)
        for document in WRITTEN_BY_HAND
        for token in tokens(document)
        if token.type == "fence" and token.info in languages
    ]


SEPARATORS = "|&;<>()"


def commands(text: str) -> Iterator[list[str]]:
    """Yield program and arguments of each simple command, without its variables.

    Examples
    --------
    >>> list(commands("SEED=1 make chaos  # or another\\nfluxplain tail \\\\\\n  changes | head"))
    [['make', 'chaos'], ['fluxplain', 'tail', 'changes'], ['head']]
    """
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=SEPARATORS)
        lexer.whitespace_split = True
        for separates, words in groupby(lexer, lambda word: set(word) <= set(SEPARATORS)):
            if not separates:
                command = list(words)
                while command and re.match(r"\w+=", command[0]):
                    del command[0]
                if command:
                    yield [Path(command[0]).name, *command[1:]]


TABLES = dict(sections())
"""Path → the model of its table."""

KEYS = {
    f"{path}.{name}".removeprefix("."): field
    for path, model in TABLES.items()
    for name, field in model.model_fields.items()
}
"""Key → its field; of tables too."""


def leaves(table: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield key and value of each setting."""
    for name, value in table.items():
        key = f"{path}{name}"
        if key in TABLES:
            yield from leaves(value, f"{key}.")
        else:
            yield key, value

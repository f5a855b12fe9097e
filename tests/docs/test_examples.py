"""What documents show is what comes out."""

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest

from fluxplain.schemas import OUTPUTS, RECORDS, Record
from tests.docs.documents import ROOT, Snippet, snippets, tokens

SOURCE, LIMIT = "river:Agrawal?classification_function=1", "3000"

SETTINGS = ROOT / "deploy" / "examples" / "agrawal.toml"

MORE = "…"
"""What is left out at the end of a list, or of what is printed."""

RECORDS_SHOWN = snippets("json")


def fluxplain(*arguments: str | Path) -> str:
    """Return what a command prints on a terminal of 80 columns."""
    return subprocess.run(
        [sys.executable, "-m", "fluxplain", *arguments, "--config", SETTINGS],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        timeout=240,
    ).stdout


def parsed(snippet: Snippet) -> dict[str, Any]:
    """Return a record; where a list is shortened, it ends with a mark."""
    record: dict[str, Any] = orjson.loads(snippet.text.replace(f",{MORE}]", f',"{MORE}"]'))
    return record


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_marks(each) for name, each in value.items()}
    if isinstance(value, list):
        return [without_marks(each) for each in value if each != MORE]
    return value


def shows(shown: Any, actual: Any) -> bool:
    """Return whether something is as shown, as far as that goes."""
    if isinstance(shown, dict):
        return isinstance(actual, dict) and all(
            name in actual and shows(each, actual[name]) for name, each in shown.items()
        )
    if isinstance(shown, list) and shown[-1:] == [MORE]:
        return isinstance(actual, list) and shows(shown[:-1], actual[: len(shown) - 1])
    if isinstance(shown, list):
        return len(shown) == len(actual) and all(map(shows, shown, actual))
    if isinstance(shown, float):  # another processor may round otherwise
        return bool(actual == pytest.approx(shown, rel=1e-9))
    return bool(shown == actual)


def kind_of(record: dict[str, Any]) -> type[Record]:
    [kind] = [each for each in RECORDS if record.keys() == {field.name for field in fields(each)}]
    return kind


def test_every_kind_of_record_is_shown_and_is_one() -> None:
    kinds = []
    for snippet in RECORDS_SHOWN:
        record = without_marks(parsed(snippet))
        kinds.append(kind_of(record))
        kinds[-1].decode(orjson.dumps(record))
    assert set(kinds) == set(RECORDS)


def outputs(document: str) -> Iterator[tuple[str, str]]:
    """Yield what is before a printed text, and the text, of a document."""
    before = ""
    for token in tokens(document):
        if token.type == "fence" and token.info == "text":
            yield before, token.content
        if token.type in {"fence", "inline"}:
            before = token.content


@pytest.fixture(scope="module")
def namespace() -> dict[str, Any]:
    """What the library's page defines, after it was run and has printed what it shows."""
    names: dict[str, Any] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for each in snippets("python"):
            if each.document == "deploy/docs/library.md":
                exec(each.text, names)
    [(_, shown)] = outputs("deploy/docs/library.md")
    assert printed.getvalue() == shown
    return names


@pytest.mark.slow
def test_the_results_that_are_shown_are_those_of_the_example(
    tmp_path: Path, namespace: dict[str, Any]
) -> None:
    folder = tmp_path / "results"
    fluxplain("local", SOURCE, "--limit", LIMIT, "--out", folder)
    published = {
        topic: [orjson.loads(line) for line in (folder / f"{topic}.jsonl").open("rb")]
        for topic in OUTPUTS
    }
    for snippet in RECORDS_SHOWN:
        record = parsed(snippet)
        topic = kind_of(record).TOPIC
        if published.get(topic):  # the example has no bad records
            assert any(shows(record, each) for each in published[topic]), topic

    [(_, story)] = [each for each in outputs("README.md") if "explain-change a2bd" in each[0]]
    told = re.sub(r" +$", "", fluxplain("explain-change", "a2bd", "--local", folder), flags=re.M)
    for part in story.partition("To see")[0].split(f"{MORE}\n"):
        assert part.strip() in told

    frame = pd.read_json(folder / "explanations.jsonl", lines=True)
    records = [
        kind.decode(orjson.dumps(each)) for t, kind in OUTPUTS.items() for each in published[t]
    ]
    for code in snippets("python"):
        if code.document == "deploy/docs/pictures.md":
            exec(code.text, {**namespace, "frame": frame, "records": records})

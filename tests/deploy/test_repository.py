"""What surrounds the code: hooks before a commit, forms of a Git host, and the Python versions."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]

FORMS = [
    path
    for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    if path.name != "config.yml"
]


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_hooks_run_what_make_check_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [recipe] = re.findall(r"^check:.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    checks = [line.split("/", 1)[1] for line in recipe.splitlines()]
    [repository] = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"  # nothing else is installed, or has versions of its own
    hooks = " ".join(hook["entry"] for hook in repository["hooks"])
    # a hook gets the files that were changed, and mends them
    commands = [check.removesuffix(" .").removesuffix(" --check") for check in checks]
    assert commands == ["ruff format", "ruff check", "mypy"]
    assert all(f".venv/bin/{command}" in hooks for command in commands)


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_a_form_asks_for_each_thing_once(form: Path) -> None:
    content = read(form)
    assert {"name", "description", "body"} <= content.keys()
    fields = [each for each in content["body"] if each["type"] != "markdown"]
    ids, labels = (
        {each["id"] for each in fields},
        {each["attributes"]["label"] for each in fields},
    )
    assert len(ids) == len(labels) == len(fields)
    assert any(each.get("validations", {}).get("required") for each in fields)


def test_the_oldest_python_is_the_same_everywhere() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, tool = settings["project"], settings["tool"]
    named = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert named == sorted(named, key=lambda version: int(version.partition(".")[2]))
    assert project["requires-python"] == f">={named[0]}"
    assert tool["mypy"]["python_version"] == named[0]
    assert tool["ruff"]["target-version"] == f"py{named[0].replace('.', '')}"

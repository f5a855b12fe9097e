"""What surrounds the code: hooks, forms of a Git host, Python's versions, and the image's lock."""

import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.documented import README

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


TESTED, IMAGE = ROOT / "requirements.lock", ROOT / "deploy" / "requirements.lock"

PIN = re.compile(r"^(\S+==[^\\\n]+?)((?: \\\n    --hash=\S+)+)$", re.MULTILINE)


def pins(path: Path) -> Iterator[tuple[Requirement, frozenset[str]]]:
    for pin, hashes in PIN.findall(path.read_text()):
        yield Requirement(pin), frozenset(re.findall(r"sha256:\w+", hashes))


def needed(name: str, *wanted: str) -> set[str]:
    """Return what a distribution needs here with some extras, itself among it."""
    found: set[tuple[str, frozenset[str]]] = set()
    ahead = [(name, frozenset(wanted))]
    while ahead:
        each = ahead.pop()
        if each in found:
            continue
        found.add(each)
        distribution, extras = each
        for text in importlib.metadata.requires(distribution) or ():
            requirement = Requirement(text)
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
            ):
                further = canonicalize_name(requirement.name), frozenset(requirement.extras)
                ahead.append(further)
    return {distribution for distribution, _ in found}


def test_the_image_has_the_versions_and_hashes_of_the_tests() -> None:
    tested = {pin.name: (pin.specifier, hashes) for pin, hashes in pins(TESTED)}
    image = {pin.name: (pin.specifier, hashes) for pin, hashes in pins(IMAGE)}
    assert 50 < len(image) < len(tested)
    assert image.items() <= tested.items()


def test_what_the_documentation_adds_to_the_image_is_what_is_tested() -> None:
    text = README.read_text(encoding="utf-8")
    [packages] = re.findall(
        r"^RUN pip --python /opt/fluxplain/bin/python .* (\S+)$", text, re.MULTILINE
    )
    tested = {str(pin.name): str(pin.specifier) for pin, _ in pins(TESTED)}
    added = Requirement(packages)
    assert str(added.specifier) == tested[added.name]
    assert added.name not in {pin.name for pin, _ in pins(IMAGE)}


def test_the_image_has_what_is_needed_and_nothing_else() -> None:
    here = {
        canonicalize_name(pin.name)
        for pin, _ in pins(IMAGE)
        if pin.marker is None or pin.marker.evaluate()
    }
    assert here == needed("fluxplain", "registry") - {"fluxplain"}

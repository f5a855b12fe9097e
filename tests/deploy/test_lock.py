"""The image's lock: what the pipeline needs, in the versions that the tests run with."""

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.documented import README

ROOT = Path(__file__).parents[2]

TESTED, IMAGE = ROOT / "requirements.lock", ROOT / "deploy" / "requirements.lock"

PIN = re.compile(r"^(\S+==[^\\\n]+?)((?: \\\n    --hash=\S+)+)$", re.MULTILINE)


def pins(path: Path) -> Iterator[tuple[Requirement, frozenset[str]]]:
    """Yield each requirement, with its hashes."""
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


def test_versions_and_hashes_are_those_of_the_tests() -> None:
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


def test_it_has_what_is_needed_and_nothing_else() -> None:
    here = {
        canonicalize_name(pin.name)
        for pin, _ in pins(IMAGE)
        if pin.marker is None or pin.marker.evaluate()
    }
    assert here == needed("fluxplain", "registry") - {"fluxplain"}

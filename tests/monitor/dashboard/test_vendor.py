"""What others made is what they published, and its licence lies beside it."""

import hashlib
from pathlib import Path

import pytest

from fluxplain.monitor.dashboard.server import PAGE

TESTS = Path(__file__).parent / "vendor"

FILES = {
    PAGE / "vendor/echarts.min.js": (
        "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0"
    ),
    PAGE / "vendor/inter-latin-wght-normal.woff2": (
        "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62"
    ),
    TESTS / "axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
}
"""File → SHA-256; the README beside it says where it is from."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_as_its_makers_published_it(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FILES[path]
    licence = path.parent / f"{path.name.partition('-')[0].partition('.')[0]}.LICENSE"
    assert licence.stat().st_size > 1_000

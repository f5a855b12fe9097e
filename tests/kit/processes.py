"""A test must not leave processes running."""

from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    for child in left:
        child.kill()
    assert not left, f"left running: {left}"

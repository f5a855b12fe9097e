"""The processes that a test starts: found by their command, and none left behind."""

from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest


def children_with(pid: int, argument: str) -> set[int]:
    """Return the live descendants of a process with this argument in their command line."""
    found = set()
    for child in psutil.Process(pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # it has just ended
            if argument in child.cmdline():
                found.add(child.pid)
    return found


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    for child in left:
        with suppress(psutil.NoSuchProcess):
            child.kill()
    assert not left, f"left running: {left}"

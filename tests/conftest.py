"""What tests of different folders share."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.kernels import forget_stale_kernels
from tests.kit.preloaded import Preloaded, bare_path

collect_ignore = ["kit/bare"]  # packages that are empty on purpose


ROOT = Path(__file__).parents[1]

SLOW = ("behaviour", "measure")
"""Folders whose tests are slow unless they are marked as quick."""


def pytest_configure(config: pytest.Config) -> None:
    """Compile the inner loops once, before each of several processes would."""
    if hasattr(config, "workerinput"):
        return
    forget_stale_kernels(ROOT / "pipeline", ROOT / "build/kernels")
    has_several = bool(config.getoption("numprocesses", None))
    if has_several and not list((ROOT / "pipeline/explain/__pycache__").glob("kernels.*.nbi")):
        subprocess.run([sys.executable, "-m", "tests.kit.compile"], cwd=ROOT, check=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders, and those that run on both brokers."""
    for item in items:
        in_slow = any(ROOT / "tests" / each in item.path.parents for each in SLOW)
        if in_slow and item.get_closest_marker("quick") is None:
            item.add_marker("slow")
        in_behaviour = ROOT / "tests/behaviour" in item.path.parents
        if in_behaviour and not any(map(item.get_closest_marker, ("embedded", "kafka"))):
            item.add_marker("both")


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """What workers are forked from."""
    with Preloaded({**os.environ, "PYTHONPATH": bare_path()}) as process:
        yield process

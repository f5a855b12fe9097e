"""What tests of different folders share."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.kit.direct_calls import check_direct_calls
from tests.kit.kernels import forget_stale_kernels
from tests.kit.preloaded import Preloaded, bare_path

check_direct_calls()

collect_ignore = ["kit/bare"]  # packages that are empty on purpose


ROOT = Path(__file__).parents[1]

SLOW = ("behaviour", "measure")
"""Folders whose tests are slow unless they are marked as quick."""


def pytest_configure(config: pytest.Config) -> None:
    """Compile the inner loops once, before each of several processes would."""
    gc.disable()  # until all tests are collected: nothing is garbage before
    if hasattr(config, "workerinput"):
        return
    forget_stale_kernels(ROOT / "pipeline", ROOT / "build/kernels")
    has_several = bool(config.getoption("numprocesses", None))
    if has_several and not list((ROOT / "pipeline/explain/__pycache__").glob("kernels.*.nbi")):
        subprocess.run([sys.executable, "-m", "tests.kit.compile"], cwd=ROOT, check=True)


def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not what the collected tests need."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow folders, cases left out, and tests that run on both brokers."""
    _leave_cases_out(items)
    for item in items:
        folder = _folder_of(item.path)
        if folder in SLOW and item.get_closest_marker("quick") is None:
            item.add_marker("slow")
        if folder == "behaviour" and not any(map(item.get_closest_marker, ("embedded", "kafka"))):
            item.add_marker("both")


@cache
def _folder_of(path: Path) -> str | None:
    """Return the folder below `tests` in which a file is."""
    own = path.relative_to(ROOT).parts
    return own[1] if own[0] == "tests" else None


def _leave_cases_out(items: list[pytest.Item]) -> None:
    """Mark all but so many cases as slow, of tests that are marked as sampled."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for of_test in cases.values():
        marker = of_test[0].get_closest_marker("sampled")
        [n] = marker.args if marker else [0]
        kept = {len(of_test) * i // n for i in range(n)}
        for place, item in enumerate(of_test):
            if place not in kept:
                item.add_marker("slow")


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """What workers are forked from."""
    with Preloaded({"PYTHONHASHSEED": "0", **os.environ, "PYTHONPATH": bare_path()}) as process:
        yield process

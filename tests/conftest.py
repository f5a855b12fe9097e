"""What tests of different folders share."""

import os
from collections.abc import Iterator

import pytest

from tests.kit.preloaded import Preloaded, bare_path

collect_ignore = ["kit/bare"]  # packages that are empty on purpose


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """What workers and commands are forked from."""
    # Rich looks how wide a terminal is when it is loaded
    with Preloaded({**os.environ, "PYTHONPATH": bare_path(), "COLUMNS": "200"}) as process:
        yield process

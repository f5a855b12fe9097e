"""Sets of texts have the same order in each process, since results must not depend on it."""

import os
import subprocess
import sys
from pathlib import Path

from fluxplain.cli.supervisor import Supervisor

PRINT = "from fluxplain.__main__ import _hash_as_everywhere as f; f(); print(hash('a'))"


def printed(**environment: str) -> str:
    given = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return subprocess.run(
        [sys.executable, "-c", PRINT],
        env={**given, **environment},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout


def test_commands_hash_as_everywhere_unless_a_seed_is_given() -> None:
    assert printed() == printed(PYTHONHASHSEED="0")
    assert printed(PYTHONHASHSEED="7") != printed()


def test_workers_hash_as_everywhere() -> None:
    assert Supervisor(Path("any.toml"))._environment["PYTHONHASHSEED"] == os.environ.get(
        "PYTHONHASHSEED", "0"
    )

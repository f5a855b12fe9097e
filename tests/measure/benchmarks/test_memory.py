"""What a model holds is measured in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.settings import write_config
from tests.measure.benchmarks.memory import MODELS, settings


@pytest.mark.parametrize("model", MODELS)
def test_a_process_of_its_own_says_how_much_it_has_grown(tmp_path: Path, model: str) -> None:
    path = write_config(tmp_path / "bare.toml", settings(MODELS[model]))
    command = [sys.executable, "-m", "tests.measure.benchmarks.bare", str(path), "50", "100"]
    early, late = subprocess.run(command, capture_output=True, check=True).stdout.split()
    assert int(late) >= int(early) >= 0

"""Steps of the benchmarks that need no broker."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

from tests.kit.settings import write_config
from tests.kit.waiting import FailedError
from tests.measure.benchmarks.latency import last_of_each, summary
from tests.measure.benchmarks.memory import MODELS, settings


def messages(*seqs: int) -> Sequence[tuple[float, bytes]]:
    return [(float(i), orjson.dumps({"seq": seq})) for i, seq in enumerate(seqs)]


def test_an_observation_is_explained_when_its_last_explanation_is_there() -> None:
    assert last_of_each(messages(7, 8, 7, 8), 2) == {7: 2.0, 8: 3.0}


@pytest.mark.parametrize("seqs", [(7, 7, 8), (7, 8, 8, 8, 7)])
def test_explanations_that_are_missing_or_too_many_are_an_error(seqs: tuple[int, ...]) -> None:
    with pytest.raises(FailedError, match="seq 8 has"):
        last_of_each(messages(*seqs), 2)


def test_latencies_become_milliseconds() -> None:
    assert summary([i / 1000.0 for i in range(101)]) == {
        "median": pytest.approx(50.0),
        "99th percentile": pytest.approx(100.0, abs=1.0),
    }


@pytest.mark.parametrize("model", MODELS)
def test_a_process_of_its_own_says_how_much_it_has_grown(tmp_path: Path, model: str) -> None:
    path = write_config(tmp_path / "bare.toml", settings(MODELS[model]))
    command = [sys.executable, "-m", "tests.measure.benchmarks.bare", str(path), "50", "100"]
    early, late = subprocess.run(command, capture_output=True, check=True).stdout.split()
    assert int(late) >= int(early) >= 0

"""Experiments are resumed, start again when their code changes, and outlive a failing task."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from tests.measure.experiments.__main__ import run_and_report
from tests.measure.experiments.code import code_behind
from tests.measure.experiments.experiment import Experiment, Report, Results, Task
from tests.measure.experiments.results import ResultsFile
from tests.measure.experiments.small_tasks import sleep, square


def squares_of(noted: Path, first: int = 1, name: str = "squares") -> Experiment:
    """Return an experiment that sums squares, of which the paper knows none."""

    def tasks(runs: int) -> list[Task]:
        return [
            Task(f"run {r}", square, {"base": first + r, "seed": r, "noted": str(noted)})
            for r in range(runs)
        ]

    def report(results: Results) -> Report:
        total = str(sum(results.values()))
        return Report(f"| {total} |", "Equal.", _draw)

    return Experiment(name, "sums of squares", "Nobody, Table 1", 3, tasks, report)


def _draw(figure: Figure) -> None:
    figure.subplots().plot([1, 2])


@pytest.fixture
def noted(tmp_path: Path) -> Path:
    return tmp_path / "noted"


@pytest.fixture
def squares(noted: Path) -> Experiment:
    return squares_of(noted)


def _run(experiment: Experiment, out: Path, runs: int | None = None) -> list[str]:
    return run_and_report([experiment], [experiment], runs=runs, jobs=2, out=out)


def _computed(noted: Path) -> list[int]:
    """Return the runs computed so far, and forget them."""
    runs = sorted(map(int, noted.read_text().split())) if noted.exists() else []
    noted.write_text("")
    return runs


def test_only_what_is_missing_is_computed(
    squares: Experiment, noted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(squares, tmp_path, runs=2) == []
    assert "squares: Equal.\n| 5 |" in capsys.readouterr().out
    assert _computed(noted) == [0, 1]
    assert _run(squares, tmp_path) == []
    assert "squares: Equal.\n| 14 |" in capsys.readouterr().out
    assert _computed(noted) == [2]
    page = (tmp_path / "README.md").read_text()
    assert "| 14 |" in page
    assert "runs 3, seeds 0 to 2" in page
    assert (tmp_path / "squares.png").stat().st_size


def test_a_line_that_was_cut_off_is_computed_again(
    squares: Experiment, noted: Path, tmp_path: Path
) -> None:
    _run(squares, tmp_path)
    path = tmp_path / "squares.jsonl"
    path.write_text(path.read_text()[:-5])
    _computed(noted)
    assert _run(squares, tmp_path) == []
    assert len(_computed(noted)) == 1
    assert ResultsFile(tmp_path, squares).complete_runs() == 3


def test_other_parameters_begin_anew(
    squares: Experiment, noted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(squares, tmp_path)
    _computed(noted)
    other = squares_of(noted, first=2)
    assert len(ResultsFile(tmp_path, other).missing(3)) == 3
    assert _run(other, tmp_path) == []
    assert _computed(noted) == [0, 1, 2]
    assert "squares: Equal.\n| 29 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("function", "other"), [("versions", {"river": "0.1"}), ("code_behind", {"another"})]
)
def test_other_versions_and_other_code_begin_anew(
    squares: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, other: Any
) -> None:
    _run(squares, tmp_path)
    monkeypatch.setattr(f"tests.measure.experiments.results.{function}", lambda *_: other)
    assert len(ResultsFile(tmp_path, squares).missing(3)) == 3


def test_fewer_runs_leave_the_page_as_it_is(squares: Experiment, tmp_path: Path) -> None:
    _run(squares, tmp_path)
    _run(squares, tmp_path, runs=1)
    assert "runs 3, seeds 0 to 2" in (tmp_path / "README.md").read_text()


def test_what_the_page_says_of_others_stays(
    squares: Experiment, noted: Path, tmp_path: Path
) -> None:
    other, none = squares_of(noted, 5, "other"), squares_of(noted, name="none")
    for each in (squares, other):
        run_and_report([squares, other, none], [each], runs=1, jobs=1, out=tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert page.index("| 1 |") < page.index("| 25 |") < page.index("Not yet")
    assert page.count("##") == 3
    assert page.count("Equal.") == 2


def test_a_failing_task_is_named_and_the_rest_goes_on(
    squares: Experiment, noted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unlucky = squares_of(noted, first=11)
    failures = _run(unlucky, tmp_path)
    assert failures == ["squares, run 2: ValueError: 13 is not squared"]
    assert _computed(noted) == [0, 1, 2]
    # the runs that are complete are reported
    assert f"squares: Equal.\n| {11**2 + 12**2} |" in capsys.readouterr().out
    assert "runs 2 of 3" in (tmp_path / "README.md").read_text()


SLOW = """
import tests.measure.experiments.__main__ as command
from tests.measure.experiments.test_runner import slow_at
import typer

if __name__ == "__main__":
    command.EXPERIMENTS = (slow_at({noted!r}),)
    typer.run(command.experiments)
"""


def slow_at(noted: str) -> Experiment:
    """Return an experiment of which one task ends at once, the other not while anybody waits."""

    def tasks(runs: int) -> list[Task]:
        return [
            Task(f"run {r}", sleep, {"seconds": 600.0 * r, "noted": f"{noted}{r}"})
            for r in range(runs)
        ]

    return replace(squares_of(Path(noted), name="slow"), tasks=tasks)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    noted = str(tmp_path / "noted")
    script.write_text(SLOW.format(noted=noted))
    command = [sys.executable, str(script), "--runs", "2", "--out", str(tmp_path)]
    with subprocess.Popen(
        command,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        slow = slow_at(noted)
        deadline = time.monotonic() + 200
        while not (Path(f"{noted}1").exists() and ResultsFile(tmp_path, slow).complete_runs()):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in output
    assert "Traceback" not in output
    assert ResultsFile(tmp_path, slow).of(1).keys() == {"run 0"}


def _mentions(text: str, module: str, name: str) -> bool:
    return any(text in code for code in code_behind(f"tests.measure.experiments.{module}", name))


def test_a_result_depends_on_constants_and_functions_of_other_modules() -> None:
    assert _mentions("LAYERS =", "isage_sensors", "run")
    assert _mentions("def break_sensor", "isage_sensors", "run")
    assert _mentions("NOISE =", "isage_sensors", "run")
    # by a module's name, as in streams.hyperplane
    assert _mentions("def hyperplane", "ipdp_hyperplane", "explain")


def test_a_result_depends_on_the_packages_that_explain() -> None:
    assert _mentions("class IncrementalSAGE", "small_tasks", "square")
    # and on others only when they are used
    assert _mentions("class DetectorSettings", "ipdp_elec2", "explain")
    assert not _mentions("class DetectorSettings", "isage_sensors", "run")
    # of these, what is used, and not what stands beside it
    assert _mentions("class DriftSettings", "ipdp_hyperplane", "explain")
    assert _mentions("ADWIN_DEFAULTS =", "ipdp_hyperplane", "explain")
    assert not _mentions("class KafkaSettings", "ipdp_hyperplane", "explain")


def test_a_result_does_not_depend_on_what_is_said_of_it() -> None:
    assert not _mentions("def _sentence", "isage_sensors", "run")
    assert not _mentions("Report(", "isage_sensors", "run")
    assert not _mentions("Change what a sensor reads", "isage_sensors", "run")


def test_kept_results_of_other_code_are_reported_without_a_run(
    squares: Experiment, noted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(squares, tmp_path)
    before = (tmp_path / "squares.jsonl").read_text()
    _computed(noted)
    monkeypatch.setattr("tests.measure.experiments.results.code_behind", lambda *_: {"another"})
    run_and_report([squares], [squares], runs=None, jobs=1, out=tmp_path, kept=True)
    assert _computed(noted) == []
    assert (tmp_path / "squares.jsonl").read_text() == before
    page = (tmp_path / "README.md").read_text()
    assert "| 14 |" in page
    assert page.count("of an earlier version of the code") == 1

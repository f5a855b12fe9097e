"""The command writes what it has measured, part by part, and one table of all of it."""

import json
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.measure.benchmarks import __main__ as command
from tests.measure.benchmarks.report import read
from tests.measure.benchmarks.timing import Figure, Measure, Run

FIRST = Figure("a | b: faster than c", "2 µs", "6 µs", 3.0, (2.5, 3.5), "at least 2")
SECOND = Figure("rate", "100", "50", 2.0)


def first(run: Run) -> Iterator[Figure]:
    """Measure first.

    This way.
    """
    yield FIRST


def second(run: Run) -> Iterator[Figure]:
    """Measure second."""
    yield SECOND


def interrupted(run: Run) -> Iterator[Figure]:
    """Measure for ever."""
    yield SECOND
    signal.raise_signal(signal.SIGINT)


def run(
    parts: Mapping[str, Measure], names: list[str], out: Path, monkeypatch: pytest.MonkeyPatch
) -> object:
    """Run the command with these parts, and return its exit status."""
    monkeypatch.setattr(tempfile, "tempdir", str(out.parent))
    monkeypatch.setattr(command, "PARTS", parts)
    with pytest.raises(SystemExit) as ended:
        command.bench(names, out)
    return ended.value.code


def test_each_part_is_written_and_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    assert run({"one": first, "two": second}, [], out, monkeypatch) == 0
    part = read(out / "one.json")
    assert (part.name, part.about) == ("one", "Measure first.\n\nThis way.")
    assert part.figures == [FIRST]
    assert {"cpu", "cores", "memory", "python", "river", "kafka"} <= part.machine.keys()
    said = capsys.readouterr()
    assert "a | b: faster than c: 2 µs, 6 µs, 3 (2.50 to 3.50); bar: at least 2" in said.out
    assert "rate: 100, 50, 2" in said.out
    assert "two …" in said.err


def test_the_table_has_all_parts_that_were_ever_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    parts = {"one": first, "two": second}
    run(parts, ["two"], out, monkeypatch)
    run(parts, ["one"], out, monkeypatch)
    lines = (out / "README.md").read_text().splitlines()
    assert lines.index("## one") < lines.index("## two")
    row = "| a \\| b: faster than c | 2 µs | 6 µs | 3 (2.50 to 3.50) | at least 2 |"
    assert row in lines
    assert "| rate | 100 | 50 | 2 |  |" in lines
    assert sum(line.startswith("Measured on: cpu ") for line in lines) == 1


def test_parts_of_another_machine_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "results"
    parts = {"one": first, "two": second}
    run(parts, [], out, monkeypatch)
    path = out / "one.json"
    elsewhere = json.loads(path.read_text()) | {"machine": {"cpu": "another"}}
    path.write_text(json.dumps(elsewhere))
    run(parts, ["two"], out, monkeypatch)
    table = (out / "README.md").read_text()
    assert table.count("Measured on: ") == 2
    assert table.index("cpu another") < table.index("## one") < table.index("## two")


def test_an_interruption_keeps_the_parts_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results"
    parts = {"one": first, "two": interrupted}
    assert run(parts, [], out, monkeypatch) == 128 + signal.SIGINT
    assert (out / "one.json").is_file()
    assert not (out / "two.json").exists()

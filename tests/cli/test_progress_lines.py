"""Progress of long work where there is no terminal."""

import io

import pytest
from rich.console import Console

from fluxplain.cli import progress_lines
from fluxplain.cli.progress_lines import ProgressLines


def lines(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> list[str]:
    """Return what ten steps print, with a line for each but the first."""
    monkeypatch.setattr(progress_lines, "LINE_S", 0.0)
    output = io.StringIO()
    console = Console(file=output, force_terminal=is_terminal, width=60)
    with ProgressLines(console=console, auto_refresh=False) as progress:
        for _ in progress.track(range(1_010, 1_020), description="[data].csv"):
            pass
        task = progress.add_task("endless", total=None)
        progress.update(task, completed=1_500)
    return [line for line in output.getvalue().splitlines() if ": " in line]


def test_without_a_terminal_there_is_a_line_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    *steps, last = lines(monkeypatch, is_terminal=False)
    assert steps == [f"[data].csv: {n} of 10" for n in range(2, 11)]
    assert last == "endless: 1,500"


def test_in_a_terminal_there_is_only_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lines(monkeypatch, is_terminal=True) == []

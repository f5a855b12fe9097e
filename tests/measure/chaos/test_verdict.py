"""The last line of a long command is its verdict, and its exit status says the same."""

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kit.command import Clock, Work, execute
from tests.kit.waiting import FailedError


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def outcome(work: Work, capsys: pytest.CaptureFixture[str]) -> tuple[object, list[str]]:
    """Return the exit status and the lines printed."""
    with pytest.raises(SystemExit) as ended:
        execute("test", work, passed="all is well", settings="seed 3")
    return ended.value.code, capsys.readouterr().out.splitlines()


def test_what_holds_passes_and_leaves_nothing(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = outcome(lambda _folder, _clock: [], capsys)
    assert (status, said) == (0, ["seed 3", "PASS: all is well (seed 3)"])
    assert not list(temporary.iterdir())


def test_problems_fail_and_the_folder_is_kept(
    temporary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, said = outcome(lambda _folder, _clock: ["1 missing", "2 different"], capsys)
    assert (status, said[-1]) == (1, "FAIL: 1 missing; 2 different (seed 3)")
    assert len(list(temporary.iterdir())) == 1


@pytest.mark.parametrize("error", [FailedError("late"), ZeroDivisionError("late")])
def test_what_cannot_go_on_fails(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def work(_folder: Path, _clock: Clock) -> Sequence[str]:
        raise error

    status, said = outcome(work, capsys)
    assert status == 1
    assert said[-1].startswith("FAIL: ")
    assert "late" in said[-1]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_no_verdict_even_if_the_cleaning_up_fails(
    number: signal.Signals, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(_folder: Path, _clock: Clock) -> Sequence[str]:
        try:
            signal.raise_signal(number)
        finally:
            raise FailedError("cannot clean up")

    ended, said = outcome(work, capsys)
    assert (ended, said[-1]) == (status, "INTERRUPTED (seed 3)")

"""What the long commands share: a folder, a clock, a clean end on Ctrl-C, and a verdict."""

import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from deploy.kafka import KafkaError
from fluxplain.cli.interruption import until_interrupted
from fluxplain.errors import UserError
from tests.kit.waiting import FailedError

LOG = "workers.log"
"""What the workers log, in the folder."""

LOG_LINES = 25
"""How much of it is shown if something is wrong."""

PROGRESS_S = 10.0


def say(line: str) -> None:
    print(line, flush=True)


class Clock:
    """Prints lines with the time since the start, and progress now and then."""

    def __init__(self, tell: Callable[[str], None] = say) -> None:
        self._tell = tell
        self._began_at = self._told_at = time.monotonic()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._began_at

    def say(self, line: str) -> None:
        self._tell(f"{self.elapsed_s():6.1f} s  {line}")

    def progress(self, line: Callable[[], str]) -> None:
        """Print a line, unless the last one about progress was printed only just now."""
        if time.monotonic() - self._told_at >= PROGRESS_S:
            self._told_at = time.monotonic()
            self.say(line())


Work = Callable[[Path, Clock], Sequence[str]]
"""Does it all in a folder, and returns what is wrong; nothing if all is well."""


def execute(name: str, work: Work, *, passed: str, settings: str = "") -> NoReturn:
    """Do the work and end the process; the last line is the verdict: `passed`, or what is wrong.

    The folder is kept unless all is well. `settings` are what one needs to repeat the run.
    """
    if settings:
        say(settings)
    suffix = f" ({settings})" if settings else ""
    folder = Path(tempfile.mkdtemp(prefix=f"fluxplain-{name}-"))
    problems: Sequence[str] = ()
    with until_interrupted() as interruption:
        problems = _problems(work, folder)
    if interruption.by:
        say(f"kept: {folder}")
        say(f"INTERRUPTED{suffix}")
        sys.exit(interruption.status)
    if problems:
        for line in (*_end_of_log(folder / LOG), f"kept: {folder}"):
            say(line)
        say(f"FAIL: {'; '.join(problems)}{suffix}")
        sys.exit(1)
    shutil.rmtree(folder)
    say(f"PASS: {passed}{suffix}")
    sys.exit(0)


def _problems(work: Work, folder: Path) -> Sequence[str]:
    try:
        return work(folder, Clock())
    except (FailedError, KafkaError, UserError) as error:
        return [str(error)]
    except Exception as error:
        traceback.print_exc()
        return [f"{type(error).__name__}: {error}"]


def _end_of_log(log_path: Path) -> list[str]:
    """Return the last lines of the workers' log, and why workers ended themselves."""
    if not log_path.exists():
        return []
    lines = log_path.read_text(errors="replace").splitlines()
    fatal = [line for line in lines if " CRITICAL " in line]
    return [
        "the workers' log ends:",
        *lines[-LOG_LINES:],
        *(["workers ended themselves:", *fatal[:LOG_LINES]] if fatal else []),
    ]

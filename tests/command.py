"""What the long commands share: a folder, a clock, a clean end on Ctrl-C, and a verdict."""

import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from deploy.kafka.errors import KafkaError
from pipeline.config import ConfigError
from pipeline.kafka.client import BrokerError
from pipeline.supervisor import WorkerRefusedError
from tests.chaos.report import Clock, end_of_log

LOG = "workers.log"
"""What the workers log, in the folder."""


class FailedError(Exception):
    """The run cannot go on; the message says why."""


Work = Callable[[Path, Clock], Sequence[str]]
"""Does it all in a folder, and returns what is wrong; nothing if all is well."""


def execute(name: str, work: Work, *, passed: str) -> NoReturn:
    """Do the work and end the process; the last line is the verdict.

    Parameters
    ----------
    name
        Of the command, for its folder, which is kept unless all is well.
    work
        What to do.
    passed
        What holds if nothing is wrong.
    """
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix=f"fluxplain-{name}-"))
    try:
        problems = _problems(work, folder)
    except KeyboardInterrupt:
        say(f"kept: {folder}")
        say("INTERRUPTED")
        sys.exit(130)
    if problems:
        for line in (*end_of_log(folder / LOG), f"kept: {folder}"):
            say(line)
        say(f"FAIL: {'; '.join(problems)}")
        sys.exit(1)
    shutil.rmtree(folder)
    say(f"PASS: {passed}")
    sys.exit(0)


def say(line: str) -> None:
    """Print a line, at once."""
    print(line, flush=True)


def _problems(work: Work, folder: Path) -> Sequence[str]:
    try:
        return work(folder, Clock(say))
    except (FailedError, WorkerRefusedError, KafkaError, BrokerError, ConfigError) as error:
        return [str(error)]
    except Exception as error:
        traceback.print_exc()
        return [f"{type(error).__name__}: {error}"]


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    # once is enough: a second one must not interrupt the cleaning up
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt

"""Runs the roles as child processes of one machine, and starts again what died."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from pipeline.config import Role

ROLES: tuple[Role, ...] = ("model", "explainer", "drift")

STOP_TIMEOUT_S = 20.0
"""How long a worker may take to stop in good order before it is killed."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""Pause before a worker is started again; doubled each time it dies young."""

YOUNG_S = 30.0
"""A worker that dies younger than this counts as failing to start."""

_PARENT = "_FLUXPLAIN_SUPERVISOR"


class WorkerRefusedError(RuntimeError):
    """A worker ended because of something that somebody must mend first."""


class Supervisor:
    """The worker processes, one a role.

    Parameters
    ----------
    config_path
        The configuration file that the workers read.
    environment
        Variables to add to this process's for the workers.
    stderr
        Where the workers write their logs; None for this process's.
    tell
        Called with a sentence when a worker dies or is started again.

    Attributes
    ----------
    deaths
        How many workers died and were to be started again.
    exit_statuses
        Role → exit status, after :meth:`stop`.
    """

    def __init__(
        self,
        config_path: Path,
        *,
        environment: Mapping[str, str] | None = None,
        stderr: IO[bytes] | None = None,
        tell: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._config_path = config_path
        self._environment = {**os.environ, **(environment or {}), _PARENT: str(os.getpid())}
        self._stderr = stderr
        self._tell = tell
        self._children: dict[Role, _Child] = {}
        self.deaths = 0
        self.exit_statuses: dict[Role, int] = {}

    def start(self) -> None:
        """Start every role."""
        for role in ROLES:
            self._children[role] = _Child(self._spawn(role))

    def check(self) -> None:
        """Start again what died, after a pause that grows; to be called about once a second.

        Raises
        ------
        WorkerRefusedError
            If a worker says that it would fail again.
        """
        now = time.monotonic()
        for role, child in self._children.items():
            status = child.process.poll()
            if status is None:
                continue
            if status in _REFUSED:
                raise WorkerRefusedError(
                    f"the {role} worker cannot run (exit status {status}); its log says why"
                )
            if child.restart_at is None:
                child.died(now)
                self.deaths += 1
                self._tell(
                    f"the {role} worker died ({_describe(status)}); starting it again "
                    f"in {child.pause_s:.1f} s"
                )
            elif now >= child.restart_at:
                child.restarted(self._spawn(role))

    def pids(self) -> dict[Role, int]:
        """Return role → process id of its worker."""
        return {role: child.process.pid for role, child in self._children.items()}

    def kill(self, role: Role, with_signal: signal.Signals) -> None:
        """Send a signal to a role's worker."""
        self._children[role].process.send_signal(with_signal)

    def stop(self) -> None:
        """Stop every worker: checkpoint, commit, leave; kill what does not stop in time."""
        processes = [child.process for child in self._children.values()]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for process in processes:
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.exit_statuses = {
            role: child.process.returncode for role, child in self._children.items()
        }
        self._children.clear()

    def _spawn(self, role: Role) -> "subprocess.Popen[bytes]":
        command: Sequence[str] = [
            *(sys.executable, "-m", "pipeline.cli", "worker"),
            *("--role", role, "--config", str(self._config_path)),
        ]
        # a session of their own: Ctrl-C is for the supervisor, which then stops them in order
        return subprocess.Popen(  # noqa: S603  our own command line
            command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stderr=self._stderr,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class _Child:
    """One worker process, and when to start it again."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.pause_s = FIRST_PAUSE_S
        self.restart_at: float | None = None
        self._started_at = time.monotonic()

    def died(self, now: float) -> None:
        young = now - self._started_at < YOUNG_S
        self.pause_s = min(self.pause_s * 2, LONGEST_PAUSE_S) if young else FIRST_PAUSE_S
        self.restart_at = now + self.pause_s

    def restarted(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.restart_at = None
        self._started_at = time.monotonic()


def end_with_supervisor() -> None:
    """Stop this worker when the supervisor that started it is gone, however it went."""
    parent = os.environ.get(_PARENT)
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        # the embedded broker went with it, and nobody else would end what waits for that
        time.sleep(STOP_TIMEOUT_S)
        os._exit(1)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()


_REFUSED = {2, 78}
"""Exit statuses after which a worker is not started again: a user's mistake, a refusal."""


def _describe(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"

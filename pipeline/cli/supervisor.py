"""Runs roles as child processes on one machine, and restarts those that die."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Self

from fluxplain.cli.interruption import signals_held
from fluxplain.config.replica import Replica, Role
from fluxplain.errors import UserError
from fluxplain.kafka.exits import EXIT_NOT_YET, EXIT_REFUSED

ROLES: tuple[Role, ...] = ("model", "explainer", "drift")

STOP_TIMEOUT_S = 20.0
"""Seconds for a worker to shut down cleanly before it is killed."""

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
"""Shortest and longest pause before a restart; the pause doubles each time a worker dies young."""

LONGEST_WAIT_S = 5.0
"""Longest pause for a worker that waits for something which may be ready any moment."""

YOUNG_S = 30.0
"""Age in seconds below which a dying worker counts as failing to start."""

_PARENT = "_FLUXPLAIN_SUPERVISOR"

EXIT_MISTAKE = 2
"""Exit status for a user's mistake. It forbids a restart only of a process that never ran: later
the settings may be half edited, or a port taken, while other workers run."""


class WorkerRefusedError(UserError):
    """A worker ended because of a problem that the user must fix first."""


class Supervisor:
    """Runs worker processes, any number of each role, named like ``model-1``.

    `environment` holds variables for all workers; `environment_of` returns those of one by its
    name. Workers log to `stderr`, by default this process's. `report` receives a sentence when one
    dies. `deaths` lists (name, exit status) of workers that died; `exit_statuses` holds the status
    of workers that were removed or stopped.
    """

    def __init__(
        self,
        config_path: Path,
        replicas: Sequence[Replica] = tuple(map(Replica, ROLES)),
        *,
        environment: Mapping[str, str] | None = None,
        environment_of: Callable[[str], Mapping[str, str]] = lambda _name: {},
        stderr: IO[bytes] | None = None,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._config_path = config_path
        self._replicas = replicas
        own = {_PARENT: str(os.getpid())}
        # sets of texts have the same order in all workers: some models go through such
        self._environment = {"PYTHONHASHSEED": "0", **os.environ, **(environment or {}), **own}
        self._environment_of = environment_of
        self._stderr = stderr
        self._report = report
        self._children: dict[str, _Child] = {}
        self.deaths: list[tuple[str, int]] = []
        self.exit_statuses: dict[str, int] = {}

    def start(self, workers: int = 1) -> None:
        """Start this many workers of every replica: each role, or each shard of the model role."""
        for _ in range(workers):
            for replica in self._replicas:
                self.add(replica)

    def add(self, replica: Replica | Role) -> str:
        """Start one more worker of a role or a shard; return its name."""
        replica = replica if isinstance(replica, Replica) else Replica(replica)
        name = next(n for i in count(1) if (n := f"{replica}-{i}") not in self._children)
        command = worker_command(replica, self._config_path)
        self._start(name, replica.role, command, self._environment_of(name))
        return name

    def add_service(self, name: str, command: Sequence[str]) -> None:
        """Start a process that is no worker, such as the one that sends alerts.

        It is restarted like a worker, but if it refuses to run, the workers run without it.
        """
        self._start(name, None, command, {})

    def remove(self, name: str) -> int:
        """Stop a worker cleanly and return its exit status."""
        self._end([name])
        return self.exit_statuses[name]

    def check(self) -> None:
        """Restart processes that died, after a growing pause; call this about once a second.

        Raises WorkerRefusedError if a worker's exit status says that a person must act first.
        """
        now = time.monotonic()
        for name, child in self._children.items():
            status = child.process.poll()
            if status is None or child.given_up:
                continue
            who = name if child.role is None else f"the worker {name}"
            if status == EXIT_REFUSED or (status == EXIT_MISTAKE and not child.has_run):
                problem = f"{who} cannot run (exit status {status}); see its log for the reason"
                if child.role is not None:
                    raise WorkerRefusedError(problem)
                child.given_up = True
                self._report(f"{problem}. The workers run without it")
            elif child.restart_at is None:
                child.died(now, status)
                self.deaths.append((name, status))
                ended = describe_status(status)
                self._report(f"{who} died ({ended}); restarting it in {child.pause_s:.1f} s")
            elif now >= child.restart_at:
                self._restart(who, child)

    def _restart(self, who: str, child: "_Child") -> None:
        try:
            with self._starting():
                child.restarted(self._spawn(child.command, child.environment))
        except OSError as error:  # the machine may have no process, file or memory left for now
            child.died(time.monotonic(), EXIT_NOT_YET)
            self._report(
                f"{who} cannot be started ({error.strerror}); trying again in {child.pause_s:.1f} s"
            )

    def running(self, role: Role | None = None) -> dict[str, int]:
        """Return name → process id of the running processes, of one role or of all."""
        return {
            name: child.process.pid
            for name, child in self._children.items()
            if role in {None, child.role} and child.process.poll() is None
        }

    def kill(self, name: str, with_signal: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a worker; after SIGKILL it is restarted as after a crash."""
        self._children[name].process.send_signal(with_signal)

    def stop(self) -> None:
        """Stop every worker cleanly; kill those that do not stop in time."""
        self._end(list(self._children))

    def _end(self, names: Sequence[str]) -> None:
        with signals_held():
            self._end_all(names)

    def _end_all(self, names: Sequence[str]) -> None:
        for name in names:
            self.kill(name, signal.SIGTERM)
        deadline = time.monotonic() + STOP_TIMEOUT_S
        for name in names:
            process = self._children[name].process
            try:
                process.wait(max(deadline - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                process.kill()
            self.exit_statuses[name] = process.wait()
            del self._children[name]

    def _start(
        self, name: str, role: Role | None, command: Sequence[str], own: Mapping[str, str]
    ) -> None:
        with self._starting():
            self._children[name] = _Child(role, command, own, self._spawn(command, own))

    @staticmethod
    @contextmanager
    def _starting() -> Iterator[None]:
        """Let signals wait until a new process is known: nobody else would stop it."""
        came: list[int] = []
        try:
            with signals_held() as came:
                yield
        finally:
            for number in came[:1]:
                signal.raise_signal(number)

    def _spawn(self, command: Sequence[str], own: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        # in a new session, so that Ctrl-C reaches only the supervisor, which stops them in order
        return subprocess.Popen(  # noqa: S603  our own command line
            command,
            env={**self._environment, **own},
            stdin=subprocess.DEVNULL,
            stdout=self._stderr,
            stderr=self._stderr,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


@dataclass(slots=True)
class _Child:
    """A child process and its restart time; without a role it is no worker.

    ``has_run`` is true once it ended in another way than by a refusal or a wait.
    """

    role: Role | None
    command: Sequence[str]
    environment: Mapping[str, str]
    process: "subprocess.Popen[bytes]"
    given_up: bool = False
    has_run: bool = False
    pause_s: float = field(default_factory=lambda: FIRST_PAUSE_S)
    restart_at: float | None = None
    started_at: float = field(default_factory=time.monotonic)

    def died(self, now: float, status: int) -> None:
        self.has_run |= status not in {EXIT_MISTAKE, EXIT_NOT_YET}
        longest_s = LONGEST_WAIT_S if status == EXIT_NOT_YET else LONGEST_PAUSE_S
        young = now - self.started_at < YOUNG_S
        self.pause_s = min(self.pause_s * 2, longest_s) if young else FIRST_PAUSE_S
        self.restart_at = now + self.pause_s

    def restarted(self, process: "subprocess.Popen[bytes]") -> None:
        self.process, self.restart_at, self.started_at = process, None, time.monotonic()


def worker_command(replica: Replica, config_path: Path) -> Sequence[str]:
    """Return the command line of a worker."""
    shard = ("--shard", str(replica.shard)) if replica.shards > 1 else ()
    return command_of("worker", "--role", replica.role, *shard, config_path=config_path)


def command_of(*words: str, config_path: Path) -> Sequence[str]:
    """Return the command line of one of fluxplain's commands."""
    return (sys.executable, "-m", "fluxplain.cli", *words, "--config", str(config_path))


def describe_status(status: int) -> str:
    """Describe how a process ended.

    Examples
    --------
    >>> describe_status(-9), describe_status(70)
    ('signal 9', 'exit status 70')
    """
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def end_with_supervisor() -> None:
    """Stop this process when the supervisor that started it ends, even by a crash."""
    parent = os.environ.get(_PARENT)
    if parent is None:
        return

    def watch() -> None:
        while os.getppid() == int(parent):
            time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGTERM)
        # the process may hang: the embedded broker that it waits for may have ended too
        time.sleep(STOP_TIMEOUT_S)
        os._exit(1)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()

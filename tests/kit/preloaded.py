"""Workers that need not load what all of them load.

Most of the processor time of a short pipeline is that of importing libraries in each of its
workers. Here one process imports them once, and forks each worker. From then on it is a process as
any other: it runs its command line, has its own memory, and can be killed. So do commands that a
test runs beside its workers. How workers and commands start anew is what the tests of
`fluxplain up`, of the demo, of the commands, of the packages and of chaos do.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import IO, Self

LOADED = (
    *("fluxplain.cli.commands", "fluxplain.agents", "fluxplain.explain.kernels"),
    *(f"fluxplain.stages.{role}_stage" for role in ("join", "model", "explainer", "drift")),
    *("fluxplain.evaluate.hoeffding", "fluxplain.evaluate.linear", "fluxplain.models.scores"),
    *("river.forest", "river.tree", "river.naive_bayes", "river.linear_model", "river.drift"),
    *("faust.app.router", "faust.assignor.leader_assignor", "faust.events", "faust.fixups.django"),
    *("faust.stores", "faust.tables.manager", "faust.topics", "faust.web.cache.backends.memory"),
)

SAME = ("PYTHONPATH", "PYTHONHASHSEED", "NUMBA_DISABLE_JIT", "NUMBA_CACHE_DIR")
"""Variables that are read while a process starts: who needs others of them is not forked."""

AHEAD = "TEST_PATH_AHEAD"
"""Variable with folders that a forked process searches first, as for other versions of a package.
"""

STATUS = struct.Struct("i")

Command = Callable[..., "subprocess.CompletedProcess[str]"]
"""Runs a command of fluxplain: settings, words, and variables of the environment."""


def bare_path() -> str:
    """Return where modules are found in a plain installation; River loads more than it needs."""
    bare = str(Path(__file__).with_name("bare"))
    before = os.environ.get("PYTHONPATH")
    return os.pathsep.join([bare, *([before] if before else [])])


class Forked:
    """A worker, with what of :class:`subprocess.Popen` is used."""

    def __init__(self, command: Sequence[str], pid: int, status: socket.socket) -> None:
        self.args = command
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            data = self._status.recv(STATUS.size)
            if not data:
                raise RuntimeError("the process that forks workers is gone")
            (self.returncode,) = STATUS.unpack(data)
            self._status.close()
        return self.returncode


class Preloaded:
    """The process that forks; to be opened before the first worker and closed behind the last."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.preloaded", str(theirs.fileno())],
                env=environment,
                pass_fds=[theirs.fileno()],
            )

    def can_fork(self, command: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Return whether a command would be the same if it started anew."""
        same = all(environment.get(name) == self._environment.get(name) for name in SAME)
        return same and list(command[:2]) == [sys.executable, "-m"]

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: IO[bytes] | None,
        *,
        out: IO[bytes] | None = None,
        folder: Path | None = None,
    ) -> Forked:
        """Start a worker, or another command, in a folder; all that it prints is in the log.

        With `out`, this gets what it prints to its standard output.
        """
        status, theirs = socket.socketpair()
        error = 2 if log is None else log.fileno()
        files = [theirs.fileno(), error if out is None else out.fileno(), error]
        with theirs:
            request = json.dumps([command, dict(environment), str(folder or Path.cwd())]).encode()
            # in one piece: the descriptors come with its first byte
            socket.send_fds(self._socket, [STATUS.pack(len(request))], files)
            self._socket.sendall(request)
        (pid,) = STATUS.unpack(status.recv(STATUS.size, socket.MSG_WAITALL))
        return Forked(command, pid, status)

    def run(
        self, config: Path, *words: str, **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of fluxplain to its end, in the folder of its settings."""
        command = [sys.executable, "-m", "fluxplain.cli", *words, "--config", str(config)]
        own = {**os.environ, "COLUMNS": "1000", **environment}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
            started = self.start(command, own, error, out=out, folder=config.parent)
            try:
                status = started.wait(300)
            finally:
                started.kill()
            return subprocess.CompletedProcess(command, status, _text(out), _text(error))

    @contextmanager
    def running(self, config: Path, *words: str, **environment: str) -> Iterator[IO[str]]:
        """Run a command of fluxplain, and yield what it prints; it must still run at the end."""
        command = [sys.executable, "-m", "fluxplain.cli", *words, "--config", str(config)]
        read, write = os.pipe()
        with open(read) as printed:
            with open(write, "wb") as out:
                process = self.start(command, {**os.environ, **environment}, None, out=out)
            try:
                yield printed
                assert process.poll() is None
            finally:
                process.terminate()
                process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()
        self._process.wait()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def main(fd: int) -> None:
    """Fork a worker for each request, and report how each ended, until the requests end."""
    requests = socket.socket(fileno=fd)
    for name in LOADED:
        import_module(name)
    import_module("tests.kit.compile").main()
    gc.collect()
    gc.freeze()  # else each worker's collections would copy all of this process
    running: set[int] = set()
    while True:
        size, files, _, _ = socket.recv_fds(requests, STATUS.size, 3)
        if not size:
            break
        request = json.loads(requests.recv(STATUS.unpack(size)[0], socket.MSG_WAITALL))
        status, *printed = files
        pid = os.fork()
        if not pid:
            requests.detach()
            _be(printed, *request)
            return
        running.add(pid)
        for file in printed:
            os.close(file)
        os.write(status, STATUS.pack(pid))
        Thread(target=_report_end, args=(pid, status, running), daemon=True).start()
    for pid in list(running):
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGTERM)


def _report_end(pid: int, status: int, running: set[int]) -> None:
    _, how = os.waitpid(pid, 0)
    running.discard(pid)
    with suppress(BrokenPipeError):  # nobody waits for it
        os.write(status, STATUS.pack(os.waitstatus_to_exitcode(how)))
    os.close(status)


def _be(
    printed: Sequence[int], command: Sequence[str], environment: Mapping[str, str], folder: str
) -> None:
    """Become the worker; its end is that of this process."""
    os.setsid()
    for descriptor, of in enumerate((os.open(os.devnull, os.O_RDONLY), *printed)):
        os.dup2(of, descriptor)
    os.closerange(3, 1024)  # also what belongs to the other workers
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get(AHEAD, "").split(os.pathsep))
    if "_FLUXPLAIN_SUPERVISOR" in environment:
        os.environ["_FLUXPLAIN_SUPERVISOR"] = str(os.getppid())  # it is gone when that is
    module = command[2]
    sys.argv = [module, *command[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))

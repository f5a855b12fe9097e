"""A snapshot of a state, pickled while the worker continues.

Pickling a large model blocks the process for tenths of a second. A fork, which takes milliseconds,
does it instead: it pickles into shared memory and ends, without touching threads or connections.
"""

import gc
import os
import signal
import sys
import time
import warnings
from typing import NoReturn

from fluxplain.kafka.checkpoints.checkpoint import Checkpoint, State

CAN_FORK = sys.platform == "linux"
"""Whether forking is safe: on other systems, libraries do not survive a fork."""

SLOW_S = 0.02
"""States that pickle faster are pickled in-process: a fork would take as long."""

TIMEOUT_S = 120.0
"""Seconds that the fork may take."""

POLL_S = 0.005


class SnapshotError(RuntimeError):
    """The forked process failed."""


class Snapshot:
    """A checkpoint at the moment of creation, which blocked the worker for ``seconds``.

    With ``aside`` a forked process pickles it.
    """

    def __init__(self, checkpoint: Checkpoint, *, aside: bool) -> None:
        begin = time.perf_counter()
        self.next_offset, self.epoch = checkpoint.next_offset, checkpoint.epoch
        self._state: State = b""
        self._child = self._memory = -1
        if aside and CAN_FORK:
            self._fork(checkpoint)
        else:
            self._state = checkpoint.pickled()
        self.seconds = time.perf_counter() - begin

    def pickled(self) -> State:
        """Wait for the pickled state and return it; may raise ``SnapshotError``."""
        if self._child >= 0:
            self._wait()
            with os.fdopen(self._memory, "rb") as memory:
                memory.seek(0)
                self._state = memory.read()
        return self._state

    @property
    def size_bytes(self) -> int:
        """Length of the pickled state, once it is complete."""
        return len(self._state)

    def discard(self) -> None:
        """Kill the forked process, if it still runs."""
        if self._child >= 0:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)
            self._child = -1
            os.close(self._memory)

    def _fork(self, checkpoint: Checkpoint) -> None:
        self._memory = os.memfd_create("checkpoint")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: see above
            self._child = os.fork()
        if not self._child:
            _pickle_and_end(checkpoint, self._memory)

    def _wait(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not (ended := os.waitpid(self._child, os.WNOHANG))[0]:
            if time.monotonic() > deadline:
                self.discard()
                raise SnapshotError(f"the forked process took more than {TIMEOUT_S:.0f} s")
            time.sleep(POLL_S)
        self._child = -1
        if status := os.waitstatus_to_exitcode(ended[1]):
            os.close(self._memory)
            raise SnapshotError(f"the forked process ended with status {status}")


def _pickle_and_end(checkpoint: Checkpoint, memory: int) -> NoReturn:
    status = 1
    try:
        gc.disable()  # finalizers belong to the parent process
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        left = memoryview(checkpoint.pickled())
        while left:
            left = left[os.write(memory, left) :]
        status = 0
    finally:
        os._exit(status)

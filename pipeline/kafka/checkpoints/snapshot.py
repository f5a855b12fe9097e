"""The state as it is at one moment, pickled while the worker goes on.

Pickling a large model takes tenths of a second, in which nothing else in the process runs. A copy
of the process, which the operating system makes in milliseconds, does it instead. The copy pickles,
writes to a pipe and ends: it touches neither threads nor connections, which are not its own.
"""

import gc
import os
import select
import signal
import struct
import sys
import time
import warnings
from typing import NoReturn

from pipeline.kafka.checkpoints.base import Checkpoint, State

CAN_FORK = sys.platform == "linux"
"""Other systems do not keep what libraries rely on across a fork."""

SLOW_S = 0.02
"""What is pickled sooner is pickled at once: a copy of the process takes about as long."""

TIMEOUT_S = 120.0
"""How long the copy may take."""

LENGTH = struct.Struct("=q")
"""What the copy sends first: how many bytes follow."""


class SnapshotError(RuntimeError):
    """The copy of the process did not do its work."""


class Snapshot:
    """A stage as it was when this was made.

    Parameters
    ----------
    checkpoint
        The stage; it may change from then on.
    aside
        Whether a copy of the process pickles it.

    Attributes
    ----------
    next_offset, epoch
        Of the checkpoint.
    seconds
        How long the worker was held up.
    """

    def __init__(self, checkpoint: Checkpoint, *, aside: bool) -> None:
        begin = time.perf_counter()
        self.next_offset, self.epoch = checkpoint.next_offset, checkpoint.epoch
        self._state: State = b""
        self._child = self._pipe = -1
        if aside and CAN_FORK:
            self._fork(checkpoint)
        else:
            self._state = checkpoint.pickled()
        self.seconds = time.perf_counter() - begin

    def pickled(self) -> State:
        """Return the state as bytes, when they are there.

        Raises
        ------
        SnapshotError
            If the copy of the process failed, or took too long.
        """
        if self._child >= 0:
            self._state = self._received()
        return self._state

    @property
    def size_bytes(self) -> int:
        """Length of the pickled stage, once that is there."""
        return len(self._state)

    def discard(self) -> None:
        """End the copy of the process, if it still runs."""
        if self._child >= 0:
            os.kill(self._child, signal.SIGKILL)
            self._bury()

    def _fork(self, checkpoint: Checkpoint) -> None:
        self._pipe, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: see above
            self._child = os.fork()
        if not self._child:
            os.close(self._pipe)  # else it would wait for ever for a worker that was killed
            _pickle_and_end(checkpoint, writing)
        os.close(writing)

    def _received(self) -> bytearray:
        deadline = time.monotonic() + TIMEOUT_S
        state = bytearray(LENGTH.size)
        self._fill(state, deadline)
        [size] = LENGTH.unpack(state)
        state = bytearray(size)  # parts that were put together would need the memory twice
        self._fill(state, deadline)
        self._end_well()
        return state

    def _fill(self, buffer: bytearray, deadline: float) -> None:
        """Read as much as the buffer holds."""
        left = memoryview(buffer)
        while left:
            if not select.select([self._pipe], [], [], max(deadline - time.monotonic(), 0.0))[0]:
                self.discard()
                raise SnapshotError(f"the copy of the process took more than {TIMEOUT_S:.0f} s")
            if not (n := os.readv(self._pipe, [left])):
                self._end_well()
                raise SnapshotError("the copy of the process ended early")
            left = left[n:]

    def _end_well(self) -> None:
        if status := self._bury():
            raise SnapshotError(f"the copy of the process ended with status {status}")

    def _bury(self) -> int:
        os.close(self._pipe)
        child, self._child = self._child, -1
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _pickle_and_end(checkpoint: Checkpoint, pipe: int) -> NoReturn:
    status = 1
    try:
        gc.disable()  # nothing may be finalized here: it belongs to the process that goes on
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        state = checkpoint.pickled()
        for part in (LENGTH.pack(len(state)), state):
            left = memoryview(part)
            while left:
                left = left[os.write(pipe, left) :]
        status = 0
    finally:
        os._exit(status)

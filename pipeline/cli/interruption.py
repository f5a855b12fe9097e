"""Ends a command on Ctrl-C and SIGTERM: at once while it loads, otherwise after cleaning up."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """End the process at once on Ctrl-C: libraries being imported might catch an exception."""
    handler = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@dataclass(slots=True)
class Interruption:
    """The signal that interrupted a command, SIGINT or SIGTERM, if any."""

    by: signal.Signals | None = None

    @property
    def status(self) -> int:
        """A shell's exit status for the signal; 0 without one."""
        return 128 + self.by if self.by else 0


@contextmanager
def until_interrupted() -> Iterator[Interruption]:
    """Run a block until it ends, or until Ctrl-C or SIGTERM raises KeyboardInterrupt in it.

    Examples
    --------
    >>> with until_interrupted() as interruption:
    ...     try:
    ...         signal.raise_signal(signal.SIGTERM)
    ...     finally:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("cleaned up")
    cleaned up
    >>> interruption.status
    143
    """
    interruption = Interruption()

    def interrupt(number: int, _frame: object) -> NoReturn:
        # a second signal must not interrupt the cleanup
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        interruption.by = signal.Signals(number)
        raise KeyboardInterrupt

    # SIGINT too: shells start background processes with SIGINT ignored
    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

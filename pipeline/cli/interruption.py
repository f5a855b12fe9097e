"""Ends a command on Ctrl-C and the like: at once while it loads, otherwise after cleaning up."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command after it has cleaned up. SIGHUP: the terminal was closed."""


@contextmanager
def importing() -> Iterator[None]:
    """Import libraries: Ctrl-C ends the process at once, and the garbage collector pauses.

    Libraries might catch an exception. Imported objects stay, so collecting them again and again
    would free nothing, and take a tenth of the time.
    """
    handler = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, handler)


@dataclass(slots=True)
class Interruption:
    """The signal that interrupted a command, if any."""

    by: signal.Signals | None = None

    @property
    def status(self) -> int:
        """A shell's exit status for the signal; 0 without one."""
        return 128 + self.by if self.by else 0


@contextmanager
def until_interrupted() -> Iterator[Interruption]:
    """Run a block until it ends, or until one of these signals raises KeyboardInterrupt in it.

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

    # also an ignored SIGINT, with which shells start background processes; not SIGHUP after nohup
    handled = [
        each
        for each in INTERRUPTING
        if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN
    ]
    before = {each: signal.signal(each, interrupt) for each in handled}
    try:
        yield interruption
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            # a block that nobody has ended may be collected while a later one runs
            if signal.getsignal(each) in {interrupt, signal.SIG_IGN}:
                signal.signal(each, handler)


@contextmanager
def signals_held() -> Iterator[list[int]]:
    """Run a block that no signal interrupts; collect those that came meanwhile.

    Examples
    --------
    >>> with signals_held() as came:
    ...     signal.raise_signal(signal.SIGINT)
    ...     print("not interrupted")
    not interrupted
    >>> came == [signal.SIGINT]
    True
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # signals reach that one only
        yield came
        return

    def hold(number: int, _frame: object) -> None:
        came.append(number)

    before = {each: signal.signal(each, hold) for each in INTERRUPTING}
    try:
        yield came
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

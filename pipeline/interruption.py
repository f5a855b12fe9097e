"""Lets a command clean up on Ctrl-C and SIGTERM."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn


@dataclass(slots=True)
class Interruption:
    """What ended a command early, if anything did.

    Attributes
    ----------
    by
        SIGINT (Ctrl-C) or SIGTERM; None if it was not interrupted.
    """

    by: signal.Signals | None = None

    @property
    def status(self) -> int:
        """A shell's exit status for it; 0 if there was none."""
        return 128 + self.by if self.by else 0


@contextmanager
def until_interrupted() -> Iterator[Interruption]:
    """Run what is inside to its end, or until Ctrl-C or SIGTERM; then it cleans up.

    Inside, an interruption is a KeyboardInterrupt; outside, it is over.

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
        # once is enough: a second one must not interrupt the cleaning up
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        interruption.by = signal.Signals(number)
        raise KeyboardInterrupt

    # SIGINT too: a shell starts what runs in the background with SIGINT ignored
    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    except KeyboardInterrupt:
        pass
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

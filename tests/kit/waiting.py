"""How everything here waits: for an answer, with a deadline, and with something to do meanwhile."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class FailedError(AssertionError):
    """The run cannot go on; the message says why."""


def wait_until(
    answer: Callable[[], T | None],
    timeout_s: float = 90.0,
    *,
    what: Callable[[], str] = lambda: "what was waited for",
    attend: Callable[[], object] = lambda: time.sleep(0.05),
) -> T:
    """Return the first answer that is true; `attend` between questions, and fail after a time."""
    deadline = time.monotonic() + timeout_s
    while not (found := answer()):
        if time.monotonic() > deadline:
            raise FailedError(f"not in {timeout_s:.0f} s: {what()}")
        attend()
    return found

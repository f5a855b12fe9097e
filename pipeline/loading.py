"""Ctrl-C while libraries are being imported."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_ctrl_c() -> Iterator[None]:
    """End the process at once on Ctrl-C: libraries would catch an exception, and go on."""
    handler = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)

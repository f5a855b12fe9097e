"""Announces compiling that takes long."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

from numba.core.event import Listener, install_listener

log = logging.getLogger("fluxplain.forest")

NOTICE_S = 3.0
"""Seconds of compiling after which it is announced."""


@contextmanager
def announced_compiling() -> Iterator[None]:
    """Announce compiling within, if it takes long; loading what Numba has kept is no compiling."""
    notice = Timer(
        NOTICE_S, log.warning, ["compiling the trees' loops: about half a minute, once a machine"]
    )
    notice.daemon = True
    try:
        with install_listener("numba:compile", _FirstCompiling(notice)):
            yield
    finally:
        notice.cancel()


class _FirstCompiling(Listener):
    """Starts a timer when Numba first compiles."""

    def __init__(self, timer: Timer) -> None:
        self._timer = timer

    def on_start(self, _event: object) -> None:
        if self._timer.ident is None:
            self._timer.start()

    def on_end(self, _event: object) -> None:
        pass

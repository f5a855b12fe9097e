"""A thread that asks the broker again and again, so that a missing answer does not block others."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class AskingThread(ABC):
    """Runs ``_watch`` in a thread of its own from entering to leaving; that sets ``_ended``.

    Parameters
    ----------
    name
        Name of the thread.
    patience_s
        Seconds that leaving waits for it: it may be waiting for a broker.
    """

    def __init__(self, name: str, patience_s: float) -> None:
        self._ended = threading.Event()
        self._patience_s = patience_s
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()
        self.join(self._patience_s)

    def end(self) -> None:
        """Ask no more, without waiting."""
        self._ended.set()

    def join(self, patience_s: float) -> None:
        """Wait so many seconds for the thread to end."""
        self._thread.join(patience_s)

    @abstractmethod
    def _watch(self) -> None:
        """Ask until ``_ended`` is set."""

"""Monitors the lag of each role in the background."""

import threading
from collections.abc import Mapping
from contextlib import ExitStack, closing
from types import TracebackType
from typing import Self

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError
from fluxplain.kafka.topics.progress import GroupOffsets

EVERY_S = 2.0
"""Seconds between two requests to the broker."""


class LagMonitor:
    """Asks the broker in its own thread, so that a missing answer does not block a display.

    ``latest`` maps a role or shard to its unread messages. It is None before the first answer and
    during an outage; then ``trouble`` has the reason.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lag", daemon=True)
        self.latest: Mapping[str, int] | None = None
        self.trouble: str | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join(EVERY_S)  # it may be waiting for a broker

    def _watch(self) -> None:
        while not self._ended.is_set():
            try:
                self._ask_until_refused()
            except BrokerError as error:
                self.latest, self.trouble = None, str(error)
                self._ended.wait(EVERY_S)

    def _ask_until_refused(self) -> None:
        with ExitStack() as stack:
            groups = {
                str(replica): [
                    stack.enter_context(closing(GroupOffsets(self._config, replica, topic)))
                    for topic in self._config.inputs(replica.role)
                ]
                for replica in self._config.replicas()
            }
            while not self._ended.is_set():
                self.latest = {
                    name: sum(each.lag() for each in read) for name, read in groups.items()
                }
                self.trouble = None
                self._ended.wait(EVERY_S)

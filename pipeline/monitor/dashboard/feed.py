"""Fills the state from the topics, in a thread of its own."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Message

from pipeline.config import Config
from pipeline.kafka.lag import LagMonitor
from pipeline.kafka.reader import TopicReader
from pipeline.monitor.dashboard.state import UNREADABLE, State
from pipeline.outputs import OUTPUTS
from schemas import BadRecordError, Record

NEWEST = 200_000
"""Messages of each partition that are read at the start: about 10 s each on one core."""

BATCH = 250
"""Messages that are added at once: the page waits for them."""


class Feed:
    """Reads the outputs as any consumer without a group, and asks how far each role is.

    Parameters
    ----------
    config
        The settings, for a broker that answers and has the topics.
    state
        What to fill.
    failed
        Called, from a thread, when the broker refuses: nothing more will come.
    """

    def __init__(self, config: Config, state: State, failed: Callable[[], None]) -> None:
        self._config = config
        self._state = state
        self._failed = failed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin with what is in the topics."""
        self._thread.start()

    def stop(self) -> None:
        """Leave the broker."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self.error = error
            self._failed()

    def _read(self) -> None:
        operations = self._state.operations
        config = self._config
        topics = {str(part): ", ".join(config.inputs(part.role)) for part in config.parts()}
        with (
            LagMonitor(self._config) as lag,
            TopicReader(self._config, list(OUTPUTS), from_beginning=True, newest=NEWEST) as reader,
        ):
            operations.to_read = reader.backlog
            while not self._stop.is_set():
                operations.read = operations.to_read - reader.backlog
                operations.is_loaded = not reader.backlog
                self._take(reader, reader.poll(0.2, limit=BATCH))
                operations.trouble = reader.trouble or lag.trouble
                operations.roles = [
                    {"part": part, "topic": topics[part], "lag": waiting}
                    for part, waiting in (lag.latest or {}).items()
                ]

    def _take(self, reader: TopicReader, messages: list[Message]) -> None:
        records = [
            (_decoded(reader, message), message.partition() or 0, max(message.timestamp()[1], 0))
            for message in messages
        ]
        now = time.monotonic() if self._state.operations.is_loaded else None
        with self._state.lock:
            for record, partition, at in records:
                if record is None:
                    # what somebody else wrote is no reason to stop showing what is ours
                    self._state.left_out[UNREADABLE] += 1
                else:
                    self._state.add(record, partition, now, at=at)


def _decoded(reader: TopicReader, message: Message) -> Record | None:
    with suppress(BadRecordError):
        return OUTPUTS[reader.name(message)].decode(message.value())
    return None

"""Fills the state from the topics, in threads of their own."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress

from confluent_kafka import Message

from pipeline.config import Config
from pipeline.kafka.client import BrokerError
from pipeline.kafka.progress import CHAIN, GroupOffsets
from pipeline.kafka.reader import TopicReader
from pipeline.monitor.dashboard.state import State
from pipeline.outputs import OUTPUTS
from pipeline.parts import Part
from schemas import BadRecordError, Record

log = logging.getLogger("fluxplain.dashboard")

NEWEST = 200_000
"""Messages of each partition that are read at the start: about 10 s each on one core."""

BATCH = 250
"""Messages that are added at once: the page waits for them."""

LAG_EVERY_S = 2.0


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
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name=name, daemon=True)
            for name, work in (("feed", self._read), ("lag", self._ask))
        ]
        self.error: Exception | None = None

    def start(self) -> None:
        """Begin with what is in the topics."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Leave the broker."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5.0)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.error = error
            self._failed()

    def _read(self) -> None:
        operations = self._state.operations
        with TopicReader(self._config, list(OUTPUTS), from_beginning=True, newest=NEWEST) as reader:
            operations.to_read = reader.backlog
            while not self._stop.is_set():
                messages = reader.poll(0.2, limit=BATCH)
                self._take(reader, messages)
                operations.read = min(operations.read + len(messages), operations.to_read)
                if not messages or operations.read >= operations.to_read:
                    operations.is_loaded = True

    def _take(self, reader: TopicReader, messages: list[Message]) -> None:
        records = [(_decoded(reader, message), message.partition() or 0) for message in messages]
        now = time.monotonic() if self._state.operations.is_loaded else None
        with self._state.lock:
            for record, partition in records:
                if record is not None:
                    self._state.add(record, partition, now)

    def _ask(self) -> None:
        operations = self._state.operations
        parts = [(part, topic) for role, topic in CHAIN for part in self._config.parts(role)]
        with ExitStack() as stack:
            groups = [
                (part, topic, stack.enter_context(closing(GroupOffsets(self._config, part, topic))))
                for part, topic in parts
            ]
            while not self._stop.is_set():
                try:
                    operations.roles = [_standing(*group) for group in groups]
                    operations.trouble = None
                except BrokerError as error:
                    operations.trouble = str(error)
                self._stop.wait(LAG_EVERY_S)


def _decoded(reader: TopicReader, message: Message) -> Record | None:
    # what somebody else wrote into our topics is no reason to stop showing them
    with suppress(BadRecordError):
        return OUTPUTS[reader.name(message)].decode(message.value())
    return None


def _standing(part: Part, topic: str, offsets: GroupOffsets) -> dict[str, object]:
    starts, ends, committed = offsets.starts(), offsets.ends(), offsets.committed()
    lag = sum(max(end - max(committed[p], starts[p]), 0) for p, end in ends.items())
    return {"part": str(part), "topic": topic, "lag": lag}

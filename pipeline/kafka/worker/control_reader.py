"""Reads control records ahead of a waiting partition."""

import time
from collections.abc import Callable, Iterator

from confluent_kafka import KafkaException

from fluxplain.config import Config
from fluxplain.kafka.client import BrokerError, TopicPartition
from fluxplain.kafka.driver import Received
from fluxplain.kafka.faust.peek import read_on
from fluxplain.kafka.headers import Unreadable, usable_headers
from fluxplain.kafka.ownership.writers import WRITER, Writer
from fluxplain.kafka.registry.codec import open_decoder
from fluxplain.kafka.timeouts import PEEK_S
from fluxplain.schemas import Control
from fluxplain.stages import Message

MOST_READ = 20_000
"""Largest number of messages read ahead at a time; the next call continues after them."""

READ_S = 0.5
"""Seconds that one call may read ahead."""


class ControlReader:
    """Yields control records whose writer is a worker, as decided by ``knows``."""

    def __init__(self, config: Config, knows: Callable[[Writer], bool]) -> None:
        self._config = config
        self._knows = knows
        self._control = config.topic(Control.TOPIC)
        self._decoder = open_decoder(config)

    def read(self, tp: TopicPartition, offset: int) -> Iterator[tuple[Message | None, int]]:
        """Yield control records from an offset on, each with the offset to continue from.

        The last item is None, with the end of the range that was read.
        """
        found: list[Message] = []
        read, deadline = 0, time.monotonic() + READ_S

        def take(record: Received) -> bool:
            nonlocal read
            read += 1
            message = _message(record)
            if message is not None and message.origin[0] == self._control:
                found.append(message)
            return read < MOST_READ and time.monotonic() < deadline

        try:
            end = read_on(self._config, *tp, offset, PEEK_S, take)
        except KafkaException:
            return  # transient, or the watchdog reports it too
        try:
            for message in found:
                writer = Writer.read(message.headers.get(WRITER, b""))
                if writer is None or not self._knows(writer):
                    continue  # when the stage reads it, it becomes a dead letter
                opened = message if self._decoder is None else self._decoder.opened(message)
                yield opened, message.offset + 1
        except BrokerError:
            return  # the registry does not answer: read it again later
        if end is not None:
            yield None, end


def _message(record: Received) -> Message | None:
    """Return a record of the log as a stage's message; None if it cannot be read."""
    if isinstance(record.headers, Unreadable):
        return None
    place = record.topic, record.partition, record.offset
    headers = usable_headers(record.headers, is_own=True)
    return Message(*place, record.key, record.value, headers=headers)

"""Reads control records ahead of where a partition waits."""

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
"""Messages to read ahead in one look; the next one goes on behind them."""

READ_S = 0.5
"""Seconds that reading ahead may take in one look."""


class ControlReader:
    """Yields control records that workers passed on: ``knows`` says whether a writer is one."""

    def __init__(self, config: Config, knows: Callable[[Writer], bool]) -> None:
        self._config = config
        self._knows = knows
        self._control = config.topic(Control.TOPIC)
        self._decoder = open_decoder(config)

    def read(self, tp: TopicPartition, offset: int) -> Iterator[tuple[Message | None, int]]:
        """Yield control records from an offset on, each with where to read on behind it.

        The last one is None, with the end of what was looked at.
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
            return  # it passes, or the watchdog sees it too
        try:
            for message in found:
                writer = Writer.read(message.headers.get(WRITER, b""))
                if writer is None or not self._knows(writer):
                    continue  # in its own place it is a dead letter
                opened = message if self._decoder is None else self._decoder.opened(message)
                yield opened, message.offset + 1
        except BrokerError:
            return  # the registry is away: read it again
        if end is not None:
            yield None, end


def _message(record: Received) -> Message | None:
    """Return a record of the log as the stages take it; None if it cannot be read."""
    if isinstance(record.headers, Unreadable):
        return None
    place = record.topic, record.partition, record.offset
    headers = usable_headers(record.headers, is_own=True)
    return Message(*place, record.key, record.value, headers=headers)

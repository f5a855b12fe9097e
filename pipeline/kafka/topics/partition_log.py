"""Reads a partition, as the messages of a stage."""

from collections.abc import Iterator
from contextlib import ExitStack

import confluent_kafka

from fluxplain.config import Config
from fluxplain.kafka.headers import headers_of, usable_headers
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.stages import Message


class PartitionLog(ExitStack):
    """The messages that a partition holds now, in order, until closed.

    They begin at the offset ``start``, or with the oldest one, whose offset is ``first``. Raises
    ``BrokerError`` as :class:`TopicReader`.
    """

    def __init__(self, config: Config, topic: str, partition: int, start: int = 0) -> None:
        super().__init__()
        self._is_own = topic == "observations"
        starts = {partition: start or confluent_kafka.OFFSET_BEGINNING}
        reader = TopicReader(config, [topic], from_beginning=True, starts=starts)
        self._reader = self.enter_context(reader)
        self._extent = reader.extent()
        self.first = min((offsets.start for offsets in self._extent.values()), default=0)

    def __iter__(self) -> Iterator[Message]:
        for message in self._reader.until(self._extent):
            kind, milliseconds = message.timestamp()
            yield Message(
                str(message.topic()),
                int(message.partition() or 0),
                int(message.offset() or 0),
                message.key(),
                message.value(),
                None if kind == confluent_kafka.TIMESTAMP_NOT_AVAILABLE else milliseconds,
                usable_headers(headers_of(message).items(), is_own=self._is_own),
            )

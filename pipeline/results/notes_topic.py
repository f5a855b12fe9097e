"""Reads and writes the topic ``notes``."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from confluent_kafka import Message

from fluxplain.config import Config
from fluxplain.kafka.producer import RecordProducer
from fluxplain.kafka.timeouts import COMMAND_DEADLINE_S
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.notes import Notes
from fluxplain.schemas import BadRecordError, Note

PARTITION = 0
"""The only partition used: there must be one order."""


class NotesReader:
    """The notes in the topic; it first reads all that are there.

    Raises ``BrokerError`` if the topic does not exist or cannot be read.
    """

    def __init__(self, config: Config) -> None:
        self.notes = Notes()
        self._reader = TopicReader(config, [Note.TOPIC], from_beginning=True)
        self._add(self._reader.until(self._reader.extent()))

    def update(self) -> None:
        """Add the notes that have arrived."""
        self._add(self._reader.poll(0.0))

    def _add(self, messages: Iterable[Message]) -> None:
        for message in messages:
            with suppress(BadRecordError):  # skip foreign messages
                self.notes.add(Note.decode(message.value()))

    def close(self) -> None:
        """Leave the broker."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def read_notes(config: Config) -> Notes:
    """Return what the topic holds now; raise ``BrokerError`` as :class:`NotesReader` does."""
    with NotesReader(config) as reader:
        return reader.notes


def write_notes(config: Config, notes: Iterable[Note]) -> None:
    """Write notes, and wait until the broker has them; raise ``DeliveryError`` if it refuses."""
    producer = RecordProducer(config, deadline_s=COMMAND_DEADLINE_S)
    for note in notes:
        key = note.message_key().encode()
        producer.send(config.topic(Note.TOPIC), note.encode(), key, PARTITION)
    producer.flush()

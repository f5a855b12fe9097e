"""Finds the messages that were sent again before, by a header that they carry in their topic.

The header is part of the message, so it survives whatever happens to the command that sent it.
"""

from collections import defaultdict
from collections.abc import Mapping

from confluent_kafka import Message as KafkaMessage

from fluxplain.config import Config
from fluxplain.kafka.headers import headers_of, usable_headers
from fluxplain.kafka.requeue.acceptance import Acceptance
from fluxplain.kafka.requeue.raw_log import read_now
from fluxplain.schemas import BadRecordError, DeadLetter, stream_name
from fluxplain.schemas.observation import Id
from fluxplain.stages import Message
from fluxplain.stages.intake.sample import Sample

REQUEUED_FROM = "fluxplain-requeued-from"
"""Header of a message that was sent again: where the original is, as ``topic-partition@offset``.
Workers ignore it."""

Place = tuple[str, int, int]
"""Topic (full name), partition, and offset of a message."""


def place_of(letter: DeadLetter) -> Place:
    """Return where the producer of a dead letter's message wrote it."""
    return letter.topic, letter.partition, letter.offset


def requeued_from(place: Place) -> Mapping[str, bytes]:
    """Return the header of the copy of a message.

    Examples
    --------
    >>> requeued_from(("features", 0, 7))
    {'fluxplain-requeued-from': b'features-0@7'}
    """
    topic, partition, offset = place
    return {REQUEUED_FROM: f"{stream_name(topic, partition)}@{offset}".encode()}


class SentAgain:
    """The messages that were sent again, and the ids of the observations among them.

    Only partitions are read that hold messages of interest, each from the first such message on.
    """

    def __init__(self, config: Config, acceptance: Acceptance) -> None:
        self._config = config
        self._acceptance = acceptance
        self._first: dict[tuple[str, int], int] = {}
        self._next: dict[str, dict[int, int]] = defaultdict(dict)
        self.offsets: dict[Place, int] = {}
        self.ids: set[tuple[int, Id]] = set()

    def watch(self, place: Place) -> None:
        """Let the next :meth:`read` look for copies of a message, which follow it."""
        topic, partition, offset = place
        self._watch(topic, partition, offset + 1)

    def watch_ids(self, topic: str, partition: int) -> None:
        """Let the next :meth:`read` look for the ids of all observations of a partition."""
        self._watch(topic, partition, 0)

    def _watch(self, topic: str, partition: int, start: int) -> None:
        if start < self._first.get((topic, partition), start + 1):
            self._first[topic, partition] = self._next[topic][partition] = start

    def read(self) -> None:
        """Read to the current end of the log; may raise ``BrokerError``."""
        for topic, starts in self._next.items():
            name = topic.removeprefix(self._config.topics.prefix)
            for message in read_now(self._config, name, starts):
                starts[int(message.partition() or 0)] = int(message.offset() or 0) + 1
                self._take(message)

    def _take(self, message: KafkaMessage) -> None:
        headers = headers_of(message)
        place, _, digits = headers.get(REQUEUED_FROM, b"").decode(errors="replace").rpartition("@")
        topic, partition, offset = str(message.topic()), message.partition() or 0, message.offset()
        if place != stream_name(topic, partition) or not digits.isascii() or not digits.isdecimal():
            return
        self.offsets[topic, partition, int(digits[:19])] = int(offset or 0)
        usable = usable_headers(headers.items(), is_own=False)
        raw = Message(
            topic, partition, int(offset or 0), message.key(), message.value(), None, usable
        )
        try:
            record = self._acceptance.accepted(raw)
        except BadRecordError:
            return  # it has become a dead letter of its own
        if isinstance(record, Sample) and record.id is not None:
            self.ids.add((partition, record.id))

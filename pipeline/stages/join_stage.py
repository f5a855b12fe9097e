"""Before the first stage: passes features and labels on into one topic.

Labels may arrive at any time, so results depend on when each was read. Their order in that topic is
final: every reader and every restart sees the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fluxplain.schemas import BadRecordError, Record
from fluxplain.schemas.record import MAX_RECORD_BYTES
from fluxplain.stages.limits import check_at_most, check_key
from fluxplain.stages.stage import Message

MAX_HEADERS = 1_000
"""Most headers of a message that is passed on."""

HEADER_BYTES = 10
"""Bytes of a header in a record besides its name and value, for their lengths."""


@dataclass(frozen=True, slots=True)
class PassedOn(Record):
    """A message of ``features`` or ``labels``, in the topic that holds both.

    ``value`` is unchanged; ``headers`` also name the origin and its timestamp.
    """

    TOPIC: ClassVar[str] = "observations"

    value: bytes
    headers: Mapping[str, bytes]

    def message_headers(self) -> Mapping[str, bytes]:
        """Return the headers."""
        return self.headers

    def encode(self) -> bytes:
        """Return the unchanged value."""
        return self.value


class JoinStage:
    """Passes the messages of one partition on unchanged, each with its predecessor's offset.

    After a crash messages are passed on twice, with the same predecessors. So the model stage knows
    which ones it has taken, and whether any was lost.
    """

    def __init__(self) -> None:
        self._previous: int | None = None

    def decode(self, message: Message) -> Message:
        """Return the message, or raise ``BadRecordError`` if it cannot be passed on."""
        if message.flaw is not None:
            raise BadRecordError(message.flaw)
        check_key(message)
        check_at_most("the message", len(message.headers), "headers", MAX_HEADERS)
        if message.value is None:
            raise BadRecordError("the message has no value (a tombstone)")
        headers = message.headers.items()
        size = sum(len(name.encode()) + len(value) + HEADER_BYTES for name, value in headers)
        check_at_most("the message", len(message.value) + size, "bytes", MAX_RECORD_BYTES)
        return message

    def step(self, message: Message) -> Sequence[Record]:
        """Return the message with its origin."""
        record = PassedOn(message.value or b"", message.passed_on(self._previous))
        self._previous = message.offset
        return [record]

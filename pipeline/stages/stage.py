"""The interface of a stage, and the message that it takes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from fluxplain.schemas import BadRecordError, DeadLetter, Record, parse_stream, stream_name
from fluxplain.schemas.record import load_object

ORIGIN = "fluxplain-origin"
"""Header of a message that was passed on: topic, partition and offset of the original."""

PREVIOUS = "fluxplain-origin-previous"
"""Header of a message that was passed on: offset of the one passed on before it from the same topic
and partition; absent for the first. Nothing between the two was lost."""

ORIGIN_TIME = "fluxplain-origin-timestamp"
"""Header of a message that was passed on: the original's timestamp. Its own is the time of passing
on, since brokers delete old messages by it."""

ORIGIN_HEADERS = (ORIGIN, PREVIOUS, ORIGIN_TIME)
"""Headers that only the join role may write."""

LATEST_MS = 253_402_300_799_999
"""Latest timestamp in milliseconds, the end of the year 9999; later ones are in a smaller unit."""

MOST_DIGITS = 19
"""Digits of an offset, at most: Kafka's have 63 bits."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it was read, from Kafka or from a file.

    ``timestamp`` is Kafka's, in milliseconds since 1970; a file has none. ``decoded`` is the value
    if the worker decoded it from another format than JSON, ``flaw`` the reason if it could not.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    decoded: Mapping[str, Any] | None = None
    flaw: str | None = None

    def fields(self) -> dict[str, Any]:
        """Return the object in the value; raise ``BadRecordError`` if there is none."""
        if self.flaw is not None:
            raise BadRecordError(self.flaw)
        return load_object(self.value) if self.decoded is None else dict(self.decoded)

    @property
    def origin(self) -> tuple[str, int, int]:
        """Topic, partition and offset where its producer wrote it."""
        stream, _, digits = self._header(ORIGIN).rpartition("@")
        offset = _number(digits)
        if offset is not None:
            with suppress(BadRecordError):
                return *parse_stream(stream), offset
        return self.topic, self.partition, self.offset

    @property
    def previous(self) -> int | None:
        """Offset of the message passed on before it from its origin; None for the first.

        A header that is not below its own offset is ignored.
        """
        number = _number(self._header(PREVIOUS))
        return number if number is not None and number < self.origin[2] else None

    @property
    def time(self) -> int | None:
        """When its producer wrote it, in milliseconds since 1970; None if unknown.

        A time after the year 9999 counts as unknown.
        """
        number = _number(self._header(ORIGIN_TIME))
        time = self.timestamp if number is None else number
        return time if time is not None and time <= LATEST_MS else None

    def _header(self, name: str) -> str:
        return self.headers.get(name, b"").decode(errors="replace")

    def passed_on(self, previous: int | None) -> Mapping[str, bytes]:
        """Return the headers of a message that passes this one on; see :data:`PREVIOUS`."""
        place = f"{stream_name(self.topic, self.partition)}@{self.offset}"
        own = {name: value for name, value in self.headers.items() if name not in ORIGIN_HEADERS}
        headers = {**own, ORIGIN: place.encode()}
        if previous is not None:
            headers[PREVIOUS] = str(previous).encode()
        if self.timestamp is not None:
            headers[ORIGIN_TIME] = str(self.timestamp).encode()
        return headers

    def dead_letter(self, reason: str) -> DeadLetter:
        """Return the dead letter of this message."""
        topic, partition, offset = self.origin
        return DeadLetter.wrapping(
            stream=stream_name(self.topic, self.partition),
            seq=self.offset,
            topic=topic,
            partition=partition,
            offset=offset,
            key=self.key,
            value=self.value,
            reason=reason,
        )


class Stage(Protocol):
    """Turns the messages of one partition into records.

    A stage reads no clock and no global random state, and can be pickled between any two steps:
    the same messages give the same records, bit for bit.
    """

    def decode(self, message: Message) -> Any:
        """Return the validated record in a message; raise ``BadRecordError`` if unusable."""
        ...

    def step(self, record: Any) -> Sequence[Record]:
        """Take one record and return the records to publish.

        Raises ``BadRecordError`` if the record cannot be used after all.
        """
        ...


def state_without(stage: object, *injected: str) -> dict[str, Any]:
    """Return a stage's picklable state, without injected collaborators."""
    return {name: value for name, value in vars(stage).items() if name not in injected}


def _number(digits: str) -> int | None:
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS
    return int(digits) if is_number else None


def process(stage: Stage, message: Message) -> Sequence[Record]:
    """Return what a stage publishes for a message; a bad message gives a dead letter."""
    try:
        return stage.step(stage.decode(message))
    except BadRecordError as error:
        return [message.dead_letter(str(error))]

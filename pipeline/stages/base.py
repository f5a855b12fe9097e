"""What a stage is, and how one message goes through it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from schemas import BadRecordError, DeadLetter, Record


@dataclass(frozen=True, slots=True)
class Message:
    """One message as it was read, from Kafka or from a file.

    Attributes
    ----------
    topic, partition, offset
        Where it stands.
    key, value, headers
        What its producer wrote.
    timestamp
        Kafka's, in milliseconds since 1970; None of a file.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    headers: Mapping[str, bytes] = field(default_factory=dict)

    def dead_letter(self, reason: str) -> DeadLetter:
        """Return the record that says why this message could not be used."""
        return DeadLetter.of(
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
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
        """Return the validated record in a message.

        Raises
        ------
        BadRecordError
            If the message cannot be used.
        """
        ...

    def step(self, record: Any) -> Sequence[Record]:
        """Take one record and return what is to be published.

        Raises
        ------
        BadRecordError
            If the record cannot be used after all.
        """
        ...


def process(stage: Stage, message: Message) -> Sequence[Record]:
    """Return what the stage publishes for a message: a bad one gives a dead letter."""
    try:
        return stage.step(stage.decode(message))
    except BadRecordError as error:
        return [message.dead_letter(str(error))]

"""Before the first stage: features and labels in one order.

Labels may come at any time, so what the model has learned when depends on when each was read. The
order in which they are passed on, into one topic, is the order for everybody and for good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.stages.base import Message
from pipeline.stages.limits import MAX_RECORD_BYTES, check_key
from schemas import BadRecordError, Record


@dataclass(frozen=True, slots=True)
class PassedOn(Record):
    """A message of ``features`` or ``labels``, in the topic that holds both.

    Attributes
    ----------
    value
        As it was.
    headers
        As they were, and where and when the message is from.
    """

    TOPIC: ClassVar[str] = "observations"

    value: bytes
    headers: Mapping[str, bytes]

    def message_headers(self) -> Mapping[str, bytes]:
        """Return the headers."""
        return self.headers

    def encode(self) -> bytes:
        """Return the value as it was."""
        return self.value


class JoinStage:
    """Passes messages on as they are.

    Those of a crash are passed on twice; the model stage knows how far it was in each topic.
    """

    def decode(self, message: Message) -> PassedOn:
        """Return the message to be passed on.

        Raises
        ------
        BadRecordError
            If it has no value, or is too large to be passed on.
        """
        check_key(message)
        if message.value is None:
            raise BadRecordError("the message has no value (a tombstone)")
        size = len(message.value) + sum(len(k) + len(v) for k, v in message.headers.items())
        if size > MAX_RECORD_BYTES:
            raise BadRecordError(
                f"the message has {size:,} bytes, but must have at most {MAX_RECORD_BYTES:,}"
            )
        return PassedOn(message.value, message.passed_on())

    def step(self, record: PassedOn) -> Sequence[Record]:
        """Return it."""
        return [record]

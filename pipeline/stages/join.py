"""Before the first stage: features and labels in one order.

Labels may come at any time, so what the model has learned when depends on when each was read. The
order in which they are passed on, into one topic, is the order for everybody and for good.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fluxplain.schemas import BadRecordError, Record
from fluxplain.schemas.record import MAX_RECORD_BYTES
from fluxplain.stages.base import Message
from fluxplain.stages.limits import check_headers, check_key, headers_bytes


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
    """Passes the messages of one partition on as they are, each with its predecessor's offset.

    After a crash messages are passed on twice, and with the same predecessors. So the model stage
    knows which of them it has taken, and whether any was lost.
    """

    def __init__(self) -> None:
        self._previous: int | None = None

    def decode(self, message: Message) -> Message:
        """Return the message to be passed on.

        Raises
        ------
        BadRecordError
            If it could not be read, has no value, or is too large to be passed on.
        """
        if message.flaw is not None:
            raise BadRecordError(message.flaw)
        check_key(message)
        check_headers(message)
        if message.value is None:
            raise BadRecordError("the message has no value (a tombstone)")
        size = len(message.value) + headers_bytes(message)
        if size > MAX_RECORD_BYTES:
            raise BadRecordError(
                f"the message has {size:,} bytes, but must have at most {MAX_RECORD_BYTES:,}"
            )
        return message

    def step(self, message: Message) -> Sequence[Record]:
        """Return it, with where it is from."""
        record = PassedOn(message.value or b"", message.passed_on(self._previous))
        self._previous = message.offset
        return [record]

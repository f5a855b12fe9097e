"""Received messages as stages take them; headers may be forged or unreadable."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Self

import confluent_kafka

from fluxplain.kafka.driver import Received
from fluxplain.stages import Message
from fluxplain.stages.limits import HEADER_MEMORY_BYTES

NOT_OURS = "it was not written by a worker of this pipeline"
"""Reason of the dead letter for a message in a topic that only workers write."""

OWN = "fluxplain-"
"""Prefix of the pipeline's own headers."""


class Unreadable(tuple[()]):
    """Empty headers of a record that cannot be read, with the reason."""

    reason: str

    def __new__(cls, reason: str) -> Self:
        """Return empty headers with a reason."""
        made = super().__new__(cls)
        made.reason = reason
        return made


def incoming_message(message: Received, *, is_own: bool) -> Message:
    """Return a received message as a stage's message.

    Unless only workers write its topic (``is_own``), headers with fluxplain's names are forged, and
    dropped.
    """
    flaw = message.headers.reason if isinstance(message.headers, Unreadable) else None
    # in seconds (Faust); None or -1 without one
    time_s = message.timestamp or -1.0
    return Message(
        message.topic,
        message.partition,
        message.offset,
        message.key,
        message.value,
        round(time_s * 1000) if time_s >= 0.0 else None,
        usable_headers(message.headers or (), is_own=is_own),
        flaw=flaw,
    )


def foreign(message: Message) -> Message:
    """Return a message that no worker wrote, in a topic that only workers write, with its flaw."""
    # its origin headers are not trusted either
    return replace(message, flaw=NOT_OURS, headers={})


def usable_headers(
    headers: Iterable[tuple[str, bytes | None]], *, is_own: bool
) -> dict[str, bytes]:
    """Return the headers that a stage may see; of equal names, the last one.

    Examples
    --------
    >>> forged = [("traceparent", b"00"), ("fluxplain-origin", b"t-0@7"), ("a\\0b", b"")]
    >>> usable_headers(forged, is_own=False)
    {'traceparent': b'00'}
    """
    return {
        name: value
        for name, value in headers
        # librdkafka would cut a name at a zero byte
        if value is not None and "\0" not in name and (is_own or not name.startswith(OWN))
    }


def headers_of(message: confluent_kafka.Message) -> dict[str, bytes]:
    """Return the headers of a message that librdkafka read; none if a name is not UTF-8."""
    try:
        headers = message.headers()
    except (UnicodeDecodeError, SystemError):  # the client may wrap the first in the second
        message.set_headers([])  # otherwise the next call would return a broken list
        return {}
    return {name: value for name, value in headers or () if value is not None}


def size_of(message: Any) -> int:
    """Return the approximate memory of an undecoded message, in bytes."""
    size = len(message.key or b"") + len(message.value or b"")
    if message.headers:
        size += sum(HEADER_MEMORY_BYTES + len(content or b"") for _, content in message.headers)
    return size

"""Passes an observation's trace context (distributed tracing) on to the records about it.

References
----------
W3C, "Trace Context"; OpenTelemetry, "Semantic conventions for messaging spans".
"""

import re
from collections.abc import Mapping

from fluxplain.schemas import DeadLetter, Record, stream_name
from fluxplain.stages.stage import Message

_PARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

MAX_STATE = 512
"""Bytes of ``tracestate`` that every participant must pass on; a longer one is dropped."""

NONE: Mapping[str, bytes] = {}


def trace_of(record: Record, message: Message) -> Mapping[str, bytes]:
    """Return the headers that put a published record into the trace of the message that caused it.

    A dead letter of another message, which waited until then, belongs to no trace.
    """
    parent = message.headers.get("traceparent")
    if parent is None or not _PARENT.fullmatch(parent):
        return NONE
    if isinstance(record, DeadLetter) and not _is_of(record, message):
        return NONE
    state = message.headers.get("tracestate", b"")
    more = {"tracestate": state} if 0 < len(state) <= MAX_STATE else NONE
    return {"traceparent": parent, **more}


def _is_of(letter: DeadLetter, message: Message) -> bool:
    place = stream_name(message.topic, message.partition), message.offset
    return (letter.stream, letter.seq) == place

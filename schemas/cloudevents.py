"""Headers that make a message a CloudEvent, in the Kafka binding's binary mode.

References
----------
CloudEvents 1.0.2, "Context Attributes"; Kafka Protocol Binding for CloudEvents 1.0.2, Section 3.2.
"""

import re
from contextlib import suppress
from datetime import datetime

from fluxplain.schemas.record import Timestamp

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def event_headers(
    *, id_: str, source: str, type_: str, subject: str | None, ts: Timestamp | None
) -> dict[str, bytes]:
    """Return the headers of an event whose value is JSON.

    Parameters
    ----------
    id_, source, type_
        The event's identity, its source as a URI reference, and its type.
    subject
        The event's subject. Left out if it has characters that CloudEvents forbid.
    ts
        Time of the event. Left out unless it is in RFC 3339 format: CloudEvents allow no other,
        and published records never hold the wall clock.

    Examples
    --------
    >>> headers = event_headers(
    ...     id_="7", source="features-0", type_="change", subject="age", ts="2026-03-01T12:00:00Z"
    ... )
    >>> headers["ce_time"], headers["content-type"]
    (b'2026-03-01T12:00:00Z', b'application/json')
    """
    attributes = {
        "ce_specversion": "1.0",
        "ce_id": id_,
        "ce_source": source,
        "ce_type": type_,
        "content-type": "application/json",
    }
    if subject and subject.isprintable():
        attributes["ce_subject"] = subject
    if _is_time(ts):
        attributes["ce_time"] = str(ts)
    return {name: value.encode() for name, value in attributes.items()}


def _is_time(ts: Timestamp | None) -> bool:
    if not isinstance(ts, str) or not _TIME.fullmatch(ts):
        return False
    with suppress(ValueError):
        datetime.fromisoformat(ts)
        return True
    return False

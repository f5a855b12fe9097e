"""Body, headers and signature of an alert."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from urllib.parse import urlencode

import orjson

from fluxplain import __version__
from fluxplain.results.feature_names import REAL_NAMES, FeatureNames
from fluxplain.results.severity import severity
from fluxplain.schemas import Change
from fluxplain.schemas.wording import printable

VERSION = 1
"""Version of the body's format. Changed or removed fields raise it; added ones do not."""

SIGNATURE = "X-Fluxplain-Signature"

TIMESTAMP = "X-Fluxplain-Timestamp"

MAX_TEXT = 1_000
"""Longest line for chats, in characters; a record's detail may exceed their limits."""


def body(
    change: Change,
    *,
    page: str | None = None,
    is_test: bool = False,
    names: FeatureNames = REAL_NAMES,
) -> bytes:
    """Return the JSON of an alert.

    It is an object of ``version``, ``test`` (whether this is a test), ``text`` (one line for
    people, where features have the ``names`` to show), ``severity``, ``link`` (to the change on the
    dashboard at ``page``; null without one) and ``change``, the record of the topic.

    Examples
    --------
    >>> gap = Change.notice(kind="gap", stream="features-0", seq=7, detail="some < all were lost")
    >>> alert = orjson.loads(body(gap))
    >>> alert["text"]
    'fluxplain (high), features-0 at 7: gap: some < all were lost (change 9a237a2995c4)'
    >>> Change.validated(alert["change"]) == gap
    True
    """
    link = link_to(page, change)
    return orjson.dumps(
        {
            "version": VERSION,
            "test": is_test,
            "text": _harmless(text(names.change(change), is_test=is_test, for_chat=False))
            + (f" {link}" if link else ""),
            "severity": severity(change),
            "link": link,
            "change": change,
        }
    )


def text(change: Change, *, is_test: bool = False, for_chat: bool = True) -> str:
    """Return an alert's line; for chats like Slack it has no markup and calls nobody."""
    what = f"{change.kind}: {change.detail}" if change.is_notice else change.detail
    ids = f"change {change.id}" + (f", incident {change.incident}" if change.incident else "")
    line = f"fluxplain ({severity(change)}), {change.stream} at {change.seq:,}: {what} ({ids})"
    line = printable((f"TEST: {line}" if is_test else line)[:MAX_TEXT])
    return _escaped(line) if for_chat else line


def headers(
    event_id: str, content: bytes, secret: bytes | None, timestamp_s: int
) -> Mapping[str, str]:
    """Return the headers of an alert, signed if there is a secret.

    The ``Idempotency-Key`` lets receivers drop repeated alerts. The timestamp is in seconds since
    1970.
    """
    common = {
        "Content-Type": "application/json",
        "User-Agent": f"fluxplain/{__version__}",
        "Idempotency-Key": event_id,
        TIMESTAMP: str(timestamp_s),
    }
    return common if secret is None else common | {SIGNATURE: sign(secret, timestamp_s, content)}


def sign(secret: bytes, timestamp_s: int, content: bytes) -> str:
    """Return the signature: the HMAC-SHA256 of timestamp, a full stop and body.

    Examples
    --------
    >>> sign(b"0123456789abcdef", 1700000000, b"{}")
    'sha256=e4f8e2ecae2295b2ddb2f0b5584c8275e226c0ebe9b3b819e70156bb67122e3e'
    """
    signed = str(timestamp_s).encode() + b"." + content
    return "sha256=" + hmac.new(secret, signed, hashlib.sha256).hexdigest()


def sample(stream: str, feature: str) -> Change:
    """Return a made-up change with a random id."""
    return Change(
        id=secrets.token_hex(6),
        stream=stream,
        kind="drift",
        seq=2627,
        previous_seq=None,
        ts=None,
        feature=feature,
        method="ipfi",
        signal="increment",
        before=0.04,
        before_std_error=0.01,
        after=0.12,
        after_std_error=0.02,
        direction="rose",
        detail=f"iPFI of {feature} seems to have risen from 0.04 to 0.12",
        status="noticed",
        status_seq=2627,
    )


def link_to(page: str | None, change: Change) -> str | None:
    """Return the address of a change on the dashboard at ``page``; None without a page."""
    if page is None:
        return None
    return f"{page.rstrip('/')}/#{urlencode({'stream': change.stream, 'change': change.id})}"


def _escaped(line: str) -> str:
    """Return text without chat mentions and markup."""
    plain = _uncalled(line).replace("&", "&amp;")
    return plain.replace("<", "&lt;").replace(">", "&gt;")


def _harmless(line: str) -> str:
    """Return text without chat mentions, for receivers that may show it in a chat or not."""
    return re.sub("<(?=[!@#])", "<\u200b", _uncalled(line))


def _uncalled(line: str) -> str:
    # keep the @ of an incident, which a number follows
    return re.sub("@(?=[A-Za-z])", "@\u200b", line)

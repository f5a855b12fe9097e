"""Records of the topic ``dead-letters``: unusable messages and the reason."""

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import orjson

from fluxplain.schemas.record import FIRST_INCARNATION, Incarnation, Record

MAX_BYTES = 256 * 1024
"""Longest value kept whole, in bytes. The copy, encoded and wrapped, must stay below the broker's
message limit, often 1 MB. JSON escapes take up to 6 bytes for 1, so bytes that would need more than
base64's 4 for 3 are sent as base64."""

MAX_KEY_BYTES = 64 * 1024
"""Longest key kept whole and passed on, in bytes: it adds to the size of the value."""

MAX_REASON = 1_000
"""Longest reason, in characters; it may quote the record."""

ESCAPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
"""Control characters but for line ends and tabs: JSON takes up to six bytes for each."""

CANNOT_EXPLAIN = "cannot explain "
"""Begins the reason about one feature of an observation that has its prediction."""

NO_REASONS = "no reasons: "
"""Begins the reason about the reasons for an observation's output, which has its prediction too."""

NO_LABEL = "no label with id "
"""Begins the reason about an observation that has its prediction, and waited for its label."""

NO_OBSERVATION = "no observation with id "
"""Begins the reason about a label for which no observation waited."""

OTHER_LABEL = "the observation with id "
"""Begins the reason about a label that contradicts an earlier one."""

MODEL_FAILED = "the model failed: "
"""Begins the reason about a message on which the model raised an error."""

Encoding = Literal["utf-8", "base64"]


@dataclass(frozen=True, slots=True)
class DeadLetter(Record):
    """A message that could not be used, with its original bytes.

    Identity: (incarnation, topic, partition, offset, key).

    Attributes
    ----------
    stream, seq
        The message's position in the stream, as in the other records.
    topic, partition, offset
        Where its producer wrote it: the same position, unless topics are joined (``label.topic``,
        ``control.topic``). For an observation that cannot be explained: the observation's position;
        the key is then the feature, and the value its evaluation.
    reason
        Why the message could not be used.
    key, value
        The original bytes; None if there were none. A key longer than 64 KiB is cut.
    encoding
        Encoding of key and value: ``"utf-8"`` as text, or ``"base64"``.
    truncated
        Whether the value was longer than 256 KiB and is cut.
    sha256
        Digest of the whole value, in hexadecimal.
    incarnation
        Incarnation of the state that could not use the message.
    """

    TOPIC: ClassVar[str] = "dead-letters"

    stream: str
    seq: int
    topic: str
    partition: int
    offset: int
    reason: str
    key: str | None
    value: str | None
    encoding: Encoding
    truncated: bool
    sha256: str | None
    incarnation: Incarnation = FIRST_INCARNATION

    @classmethod
    def wrapping(
        cls,
        *,
        stream: str,
        seq: int,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None,
        value: bytes | None,
        reason: str,
    ) -> "DeadLetter":
        """Return the dead letter of a message."""
        kept = None if value is None else value[:MAX_BYTES]
        short_key = None if key is None else key[:MAX_KEY_BYTES]
        encoding: Encoding = "utf-8" if _is_plain(kept) and _is_plain(short_key) else "base64"
        return cls(
            stream=stream,
            seq=seq,
            topic=topic,
            partition=partition,
            offset=offset,
            reason=reason if len(reason) <= MAX_REASON else reason[:MAX_REASON] + "…",
            key=_text(short_key, encoding),
            value=_text(kept, encoding),
            encoding=encoding,
            truncated=value is not None and len(value) > MAX_BYTES,
            sha256=None if value is None else hashlib.sha256(value).hexdigest(),
        )

    def message_key(self) -> str | None:
        """Return None, for the input message's key; the shortened key if that one is too long."""
        if self.key is None:
            return None
        size = len(self.key.encode()) if self.encoding == "utf-8" else len(self.key) * 3 // 4
        return self.key if size >= MAX_KEY_BYTES else None

    @property
    def id(self) -> str:
        """The identity as 12 hexadecimal digits: a repeated dead letter has the same."""
        identity = [self.incarnation, self.topic, self.partition, self.offset, self.key]
        return hashlib.sha256(orjson.dumps(identity)).hexdigest()[:12]

    def original_key(self) -> bytes | None:
        """Return the original bytes of the key, of which it has the first 64 KiB."""
        return self._bytes(self.key)

    def original(self) -> bytes | None:
        """Return the original bytes of the value, of which it has the first 256 KiB.

        Raises ``ValueError`` if they are not in the encoding that the letter names.

        Examples
        --------
        >>> letter = DeadLetter.wrapping(
        ...     stream="features-0",
        ...     seq=7,
        ...     topic="features",
        ...     partition=0,
        ...     offset=7,
        ...     key=None,
        ...     value=b"\\xff",
        ...     reason="not JSON",
        ... )
        >>> letter.value, letter.original()
        ('/w==', b'\\xff')
        """
        return self._bytes(self.value)

    def _bytes(self, text: str | None) -> bytes | None:
        if text is None:
            return None
        return text.encode() if self.encoding == "utf-8" else base64.b64decode(text)


def _is_plain(data: bytes | None) -> bool:
    """Return whether the bytes are text that JSON hardly has to escape."""
    if data is None:
        return True
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return not ESCAPED.search(text)


def _text(data: bytes | None, encoding: Encoding) -> str | None:
    if data is None:
        return None
    return data.decode() if encoding == "utf-8" else base64.b64encode(data).decode()

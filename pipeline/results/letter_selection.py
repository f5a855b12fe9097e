"""Selects dead letters, each once."""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from fluxplain.config import Config
from fluxplain.errors import UserError
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.results.duplicates import MAX_LETTERS
from fluxplain.results.letter_groups import group_id, pattern_of
from fluxplain.results.published import decoded
from fluxplain.schemas import DeadLetter, stream_name

MIN_DIGITS = 4
"""Fewest digits of an id: with fewer, a typing error would name another dead letter."""

_ID = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},12}}")

_PLACE = re.compile(r"([A-Za-z0-9._-]{1,249})/(\d{1,9})/(\d{1,18})")


class LetterNameError(UserError, ValueError):
    """A text names no dead letter. The message shows how to name one."""


@dataclass(frozen=True, slots=True)
class LetterName:
    """One dead letter by the beginning of its id, or those of one message by its place.

    ``topic`` is the full name.
    """

    id: str = ""
    topic: str = ""
    partition: int = 0
    offset: int = 0

    @classmethod
    def parse(cls, text: str, prefix: str) -> "LetterName":
        """Return what a text names: an id, or ``topic/partition/offset``.

        The topic may lack the prefix. Raises ``LetterNameError``.

        Examples
        --------
        >>> LetterName.parse("labels/0/7", "fluxplain.")
        LetterName(id='', topic='fluxplain.labels', partition=0, offset=7)
        """
        if found := _PLACE.fullmatch(text):
            topic, partition, offset = found.groups()
            return cls("", with_prefix(topic, prefix), int(partition), int(offset))
        if _ID.fullmatch(text):
            return cls(text)
        raise LetterNameError(
            f"{text!r} names no dead letter: give an id, or at least {MIN_DIGITS} of its 12 "
            "hexadecimal digits; or a message as topic/partition/offset, such as features/0/7"
        )

    def matches(self, letter: DeadLetter) -> bool:
        """Return whether a dead letter is meant."""
        if self.id:
            return letter.id.startswith(self.id)
        place = letter.topic, letter.partition, letter.offset
        return place == (self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True)
class LetterSelection:
    """Which dead letters to take; None, or no names, for any.

    ``reason`` is a part of the reason, whatever its case, and ``group`` the id of a group. The
    stream is that of the dead letter, or the partition where its producer wrote the message. The
    topic has its full name, and offsets are the producer's.
    """

    names: tuple[LetterName, ...] = ()
    reason: str | None = None
    group: str | None = None
    topic: str | None = None
    stream: str | None = None
    first_offset: int | None = None
    last_offset: int | None = None

    def takes(self, letter: DeadLetter) -> bool:
        """Return whether a dead letter is selected."""
        if self.names and not any(name.matches(letter) for name in self.names):
            return False
        return self._takes_place(letter) and self._takes_reason(letter.reason)

    def _takes_place(self, letter: DeadLetter) -> bool:
        if self.topic not in {None, letter.topic}:
            return False
        if self.stream not in {None, letter.stream, stream_name(letter.topic, letter.partition)}:
            return False
        first, last = self.first_offset, self.last_offset
        is_after = first is None or first <= letter.offset
        return is_after and (last is None or letter.offset <= last)

    def _takes_reason(self, reason: str) -> bool:
        if self.reason is not None and self.reason.lower() not in reason.lower():
            return False
        return self.group is None or group_id(pattern_of(reason)) == self.group


def with_prefix(topic: str, prefix: str) -> str:
    """Return a topic's full name, which may already be it.

    Examples
    --------
    >>> with_prefix("labels", "fluxplain."), with_prefix("fluxplain.labels", "fluxplain.")
    ('fluxplain.labels', 'fluxplain.labels')
    """
    return topic if topic.startswith(prefix) else prefix + topic


class Dated(NamedTuple):
    """A dead letter, and when it was published, in milliseconds since 1970."""

    letter: DeadLetter
    published_ms: int


def selected(config: Config, selection: LetterSelection) -> Iterator[Dated]:
    """Yield the selected dead letters in the topic, without those that crashes repeated.

    The last 100,000 are remembered. Raises ``BrokerError`` if the broker does not answer.
    """
    seen: OrderedDict[str, None] = OrderedDict()
    with TopicReader(config, [DeadLetter.TOPIC], from_beginning=True) as reader:
        for message in reader.until(reader.extent()):
            letter = decoded(reader, message)
            if not isinstance(letter, DeadLetter) or not selection.takes(letter):
                continue
            if letter.id in seen:
                continue
            seen[letter.id] = None
            if len(seen) > MAX_LETTERS:
                seen.popitem(last=False)
            yield Dated(letter, message.timestamp()[1])

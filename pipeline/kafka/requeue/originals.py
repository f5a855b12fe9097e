"""Finds the whole messages of dead letters: in their topics, else in the letters themselves."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fluxplain.config import Config
from fluxplain.kafka.client import TopicPartition
from fluxplain.kafka.headers import headers_of
from fluxplain.kafka.requeue.raw_log import log_ranges, read_ranges
from fluxplain.kafka.requeue.sent_again import Place, place_of
from fluxplain.schemas import BadRecordError, DeadLetter
from fluxplain.schemas.dead_letter import MAX_KEY_BYTES

DELETED = "the original was deleted"

NO_VALUE = "there is no value to send: it had none, or could not be read"

MADE_ANEW = "another message is at its offset, or none: its topic was deleted and created again"


@dataclass(frozen=True, slots=True)
class Original:
    """Key, value and headers of a message, as its producer wrote them."""

    key: bytes | None
    value: bytes
    headers: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """Its size in bytes."""
        headers = sum(len(name) + len(value) for name, value in self.headers.items())
        return len(self.key or b"") + len(self.value) + headers


@dataclass(frozen=True, slots=True)
class Originals:
    """Messages that are still in their topics, and the first offset of each partition."""

    found: Mapping[Place, Original]
    starts: Mapping[TopicPartition, int]

    def of(self, letter: DeadLetter) -> Original:
        """Return the message of a dead letter, from there if it was deleted.

        Raises ``BadRecordError`` if it is nowhere as a whole.
        """
        place = place_of(letter)
        if place in self.found:
            return self.found[place]
        if letter.value is None:
            raise BadRecordError(NO_VALUE)
        if letter.offset >= self.starts[TopicPartition(*place[:2])]:
            raise BadRecordError(MADE_ANEW)
        return _kept(letter)


def find_originals(config: Config, letters: Iterable[DeadLetter]) -> Originals:
    """Look for the messages of dead letters in their topics.

    Raises ``BrokerError`` if the broker does not answer.
    """
    wanted = {place_of(letter): letter for letter in letters}
    ranges: dict[str, dict[int, range]] = defaultdict(dict)
    for topic, partition, offset in wanted:
        known = ranges[topic].get(partition, range(offset, offset + 1))
        first, behind = min(known.start, offset), max(known.stop, offset + 1)
        ranges[topic][partition] = range(first, behind)
    found: dict[Place, Original] = {}
    starts: dict[TopicPartition, int] = {}
    for topic, partitions in ranges.items():
        name = topic.removeprefix(config.topics.prefix)
        for message in read_ranges(config, name, partitions):
            place = topic, int(message.partition() or 0), int(message.offset() or 0)
            letter, value = wanted.get(place), message.value()
            if letter is not None and value is not None and _is_of(letter, message.key(), value):
                found[place] = Original(message.key(), value, headers_of(message))
        # afterwards: what was deleted meanwhile counts as deleted
        logs = log_ranges(config, name, partitions)
        starts |= {tp: log.start for tp, log in logs.items()}
    return Originals(found, starts)


def _kept(letter: DeadLetter) -> Original:
    """Return the message that a dead letter holds, which has lost its headers.

    Raises ``BadRecordError`` unless it is whole.
    """
    try:
        key, value = letter.original_key(), letter.original()
    except ValueError:
        raise BadRecordError(f"{DELETED}, and its copy is not {letter.encoding}") from None
    if letter.truncated or len(key or b"") >= MAX_KEY_BYTES:
        raise BadRecordError(f"{DELETED}, and the dead letter holds only a part of it")
    if value is None or not _is_of(letter, key, value):
        raise BadRecordError(f"{DELETED}, and its copy does not have the digest that it names")
    return Original(key, value, {})


def _is_of(letter: DeadLetter, key: bytes | None, value: bytes) -> bool:
    """Return whether a message is that of a dead letter."""
    try:
        same_key = (key or b"")[:MAX_KEY_BYTES] == (letter.original_key() or b"")
    except ValueError:
        return False
    return same_key and hashlib.sha256(value).hexdigest() == letter.sha256

"""Groups dead letters by similar reasons, in bounded memory."""

import hashlib
import re
from dataclasses import dataclass, field

from fluxplain.schemas import DeadLetter, stream_name

MAX_GROUPS = 1_000
"""Largest number of groups: a model's own errors may all differ. Further ones share a group."""

MAX_PLACES = 10_000
"""Largest number of topic partitions in a group: forged letters may name any."""

OTHERS = "other reasons"
"""Pattern of the group of further reasons."""

ELSEWHERE = "elsewhere"
"""Name of the further topic partitions of a group."""

LONGEST_TITLE = 300
"""Characters of a reason that are a group's title."""

_VARYING = (
    (re.compile(r"\b(an array|an object) [\[{].*", re.DOTALL), r"\1 …"),
    (re.compile(r'"(?:[^"\\]|\\.)*(?:"|…|$)', re.DOTALL), '"…"'),
    (re.compile(r"(?<!\w)'[^']*'"), "'…'"),
    (re.compile(r"\ba boolean (?:true|false)\b"), "a boolean …"),
    (re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"), "#"),
)
"""What differs between reasons of one kind: values, texts and numbers."""


def pattern_of(reason: str) -> str:
    """Return a reason without its values, the key of its group; similar reasons have the same.

    Examples
    --------
    >>> pattern_of('x.f1 must be a finite number, not a string "old"')
    'x.f1 must be a finite number, not a string "…"'
    >>> pattern_of("the message has 1,200 bytes, but must have at most 1,000")
    'the message has # bytes, but must have at most #'
    """
    for varying, instead in _VARYING:
        reason = varying.sub(instead, reason)
    return reason


def group_id(pattern: str) -> str:
    """Return 6 hexadecimal digits that name the group of a pattern, in every run.

    Examples
    --------
    >>> group_id("x.age is missing")
    '44cc1b'
    """
    return hashlib.sha256(pattern.encode(errors="replace")).hexdigest()[:6]


@dataclass(slots=True)
class Extent:
    """Number of messages of a topic partition, and their first and last offset."""

    count: int
    first: int
    last: int


@dataclass(slots=True)
class LetterGroup:
    """The dead letters of one pattern.

    ``example`` is the id of the newest one, ``reason`` its reason, ``places`` maps topic partitions
    to what they have.
    """

    pattern: str
    example: str = ""
    reason: str = ""
    count: int = 0
    places: dict[str, Extent] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The digits that name the group."""
        return group_id(self.pattern)

    @property
    def title(self) -> str:
        """The newest reason, shortened: people read it more easily than the pattern."""
        text = self.reason
        if len(text) > LONGEST_TITLE:
            text = f"{text[:LONGEST_TITLE]}…"
        return f"{OTHERS}, such as: {text}" if self.pattern == OTHERS else text

    def add(self, letter: DeadLetter, reason: str) -> None:
        """Count a dead letter of this reason."""
        self.count += 1
        self.example, self.reason = letter.id, reason
        name, offset = stream_name(letter.topic, letter.partition), letter.offset
        if name not in self.places and len(self.places) >= MAX_PLACES:
            name = ELSEWHERE
        extent = self.places.setdefault(name, Extent(0, offset, offset))
        extent.count += 1
        extent.first, extent.last = min(extent.first, offset), max(extent.last, offset)


class LetterGroups:
    """Dead letters by the pattern of a reason: their own, or another one."""

    def __init__(self) -> None:
        self._groups: dict[str, LetterGroup] = {}
        self.count = 0

    def add(self, letter: DeadLetter, reason: str | None = None) -> None:
        """Count a dead letter under a reason; by default under its own."""
        reason = letter.reason if reason is None else reason
        pattern = pattern_of(reason)
        if pattern not in self._groups and len(self._groups) >= MAX_GROUPS:
            pattern = OTHERS
        if pattern not in self._groups:
            self._groups[pattern] = LetterGroup(pattern)
        self._groups[pattern].add(letter, reason)
        self.count += 1

    def largest_first(self) -> list[LetterGroup]:
        """Return the groups, the largest first."""
        return sorted(self._groups.values(), key=lambda group: -group.count)

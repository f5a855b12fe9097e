"""Finds a change or an incident among all that were published."""

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from fluxplain.errors import UserError
from fluxplain.schemas import Change

MIN_DIGITS = 4
"""Digits of an id that must be given: with fewer, a typing error would find something."""

_ID = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},12}}")


class UnknownChangeError(UserError, LookupError):
    """There is no such change or incident, or there are several. The message names the nearest."""


@dataclass(frozen=True, slots=True)
class Found:
    """A change, if an id was given, and all changes of its incident by seq, maybe none."""

    change: Change | None
    incident: list[Change]


def newest(changes: Iterable[Change], n: int) -> list[Change]:
    """Return the n changes with the largest seq, each once, the newest first."""
    kept: dict[str, Change] = {}
    for change in changes:
        kept[change.id] = change
        if len(kept) > 2 * n:
            kept = {each.id: each for each in _largest(kept.values(), n)}
    return _largest(kept.values(), n)


def find(changes: Iterable[Change], asked: str) -> Found:
    """Return a change or an incident, with curves; of other changes of an incident without."""
    is_incident = "@" in asked
    if not is_incident and not _ID.fullmatch(asked):
        raise UnknownChangeError(
            f"{asked!r} is no change: give at least the first {MIN_DIGITS} of an id's 12 "
            "hexadecimal digits, or an incident as stream@seq"
        )
    known: dict[str, Change] = {}
    for each in changes:
        wanted = each.incident == asked if is_incident else each.id.startswith(asked)
        known[each.id] = each if wanted else replace(each, curve_before=None, curve_after=None)
    if is_incident:
        return Found(None, _incident(known, asked))
    change = _change(known, asked)
    return Found(change, _of_incident(known, change.incident))


def _change(known: dict[str, Change], asked: str) -> Change:
    ids = [each for each in known if each.startswith(asked)]
    if not ids:
        beginnings = {each[: len(asked)]: each for each in known}
        near = [beginnings[b] for b in get_close_matches(asked, beginnings, n=3, cutoff=0.5)]
        raise UnknownChangeError(f"there is no change {asked!r}{_instead(known, near)}")
    if len(ids) > 1:
        raise UnknownChangeError(f"{len(ids)} changes begin with {asked!r}: {', '.join(ids[:5])}")
    return known[ids[0]]


def _incident(known: dict[str, Change], asked: str) -> list[Change]:
    members = _of_incident(known, asked)
    if not members:
        incidents = list(dict.fromkeys(each.incident for each in known.values() if each.incident))
        near = get_close_matches(asked, incidents, n=3, cutoff=0.0)
        other = f"; the nearest are {', '.join(near)}" if near else ""
        raise UnknownChangeError(f"there is no incident {asked!r}{other}")
    return members


def _instead(known: dict[str, Change], near: list[str]) -> str:
    if near:
        return f"; the nearest are {', '.join(near)}"
    last = [each.id for each in _largest(known.values(), 3)]
    return f"; the newest are {', '.join(last)}" if last else ": there are no changes at all"


def _of_incident(known: dict[str, Change], incident: str | None) -> list[Change]:
    members = [each for each in known.values() if incident and each.incident == incident]
    return sorted(members, key=lambda each: each.seq)


def _largest(changes: Iterable[Change], n: int) -> list[Change]:
    return heapq.nlargest(n, changes, key=lambda each: each.seq)

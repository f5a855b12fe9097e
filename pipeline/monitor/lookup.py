"""Finds a change or an incident among all that were published."""

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from schemas import Change

LEAST_DIGITS = 4
"""Of an id: with fewer, a typing error would find something."""


class UnknownChangeError(LookupError):
    """There is no such change or incident, or there are several. The message names the nearest."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was asked for.

    Attributes
    ----------
    change
        The change, if an id was given.
    incident
        All changes of the incident that was given, or that the change belongs to, in order of seq;
        empty if it belongs to none. With an id, they have no curves.
    """

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
    """Return the change or the incident that is asked for.

    Parameters
    ----------
    changes
        All of them; those that are not asked for are kept without their curves.
    asked
        The id of a change, or its beginning of at least 4 digits; or an incident, ``stream@seq``.

    Raises
    ------
    UnknownChangeError
        If there is none, or several begin so.
    """
    is_incident = "@" in asked
    if not is_incident and not _ID.fullmatch(asked):
        raise UnknownChangeError(
            f"{asked!r} is no change: give at least the first {LEAST_DIGITS} of an id's 12 "
            "hexadecimal digits, or an incident as stream@seq"
        )
    known: dict[str, Change] = {}
    for each in changes:
        wanted = each.incident == asked if is_incident else each.id.startswith(asked)
        known[each.id] = each if wanted else _without_curves(each)
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


def _without_curves(change: Change) -> Change:
    return replace(change, curve_before=None, curve_after=None)


_ID = re.compile(rf"[0-9a-f]{{{LEAST_DIGITS},12}}")

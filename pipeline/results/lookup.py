"""Finds a change or an incident among all published changes."""

import heapq
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from fluxplain.errors import UserError
from fluxplain.schemas import Change

MIN_DIGITS = 4
"""Fewest digits of an id: with fewer, a typing error would find another change."""

_ID = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},12}}")


class UnknownChangeError(UserError, ValueError):
    """No change or incident matches, or several do. The message suggests the closest."""


@dataclass(frozen=True, slots=True)
class Found:
    """A change, if an id was given, and all changes of its incident by seq, possibly none."""

    change: Change | None
    incident: list[Change]


def newest(changes: Iterable[Change], n: int) -> list[Change]:
    """Return the n latest changes by seq, each once, the latest first."""
    kept: dict[str, Change] = {}
    for change in changes:
        kept[change.id] = change
        if len(kept) > 2 * n:
            kept = {each.id: each for each in _largest(kept.values(), n)}
    return _largest(kept.values(), n)


def find(changes: Iterable[Change], wanted: str) -> Found:
    """Find a change by its id, or an incident, with curves.

    The other changes of a found change's incident have no curves, to save memory.
    """
    is_incident = "@" in wanted
    if not is_incident and not _ID.fullmatch(wanted):
        raise UnknownChangeError(
            f"{wanted!r} is no id of a change: give at least the first {MIN_DIGITS} of its 12 "
            "hexadecimal digits, or an incident as stream@seq"
        )
    known: dict[str, Change] = {}
    for each in changes:
        is_wanted = each.incident == wanted if is_incident else each.id.startswith(wanted)
        known[each.id] = each if is_wanted else replace(each, curve_before=None, curve_after=None)
    if is_incident:
        return Found(None, _incident(known, wanted))
    change = _change(known, wanted)
    return Found(change, _of_incident(known, change.incident))


def find_drift(changes: Iterable[Change], wanted: str) -> Change:
    """Find a change that can be plotted by its id: no incident, and no notice."""
    found = find(changes, wanted)
    if found.change is None:
        ids = ", ".join(each.id for each in found.incident)
        raise UnknownChangeError(f"{wanted} is an incident: name one of its changes, {ids}")
    kind = found.change.kind
    if kind != "drift":
        raise UnknownChangeError(f"{wanted} is of the kind {kind!r}: only drift can be plotted")
    return found.change


def _change(known: dict[str, Change], wanted: str) -> Change:
    ids = [each for each in known if each.startswith(wanted)]
    if len(ids) > 1:
        raise UnknownChangeError(f"{len(ids)} changes begin with {wanted!r}: {', '.join(ids[:5])}")
    if ids:
        return known[ids[0]]
    beginnings = {each[: len(wanted)]: each for each in known}
    near = [beginnings[b] for b in get_close_matches(wanted, beginnings, n=3, cutoff=0.5)]
    which = "nearest" if near else "latest"
    others = near or [each.id for each in _largest(known.values(), 3)]
    listed = f"; the {which} are {', '.join(others)}" if others else ": there are no changes at all"
    raise UnknownChangeError(f"there is no change {wanted!r}{listed}")


def _incident(known: dict[str, Change], wanted: str) -> list[Change]:
    members = _of_incident(known, wanted)
    if not members:
        incidents = list(dict.fromkeys(each.incident for each in known.values() if each.incident))
        near = get_close_matches(wanted, incidents, n=3, cutoff=0.0)
        other = f"; the nearest are {', '.join(near)}" if near else ""
        raise UnknownChangeError(f"there is no incident {wanted!r}{other}")
    return members


def _of_incident(known: dict[str, Change], incident: str | None) -> list[Change]:
    members = [each for each in known.values() if incident and each.incident == incident]
    return sorted(members, key=lambda each: each.seq)


def _largest(changes: Iterable[Change], n: int) -> list[Change]:
    return heapq.nlargest(n, changes, key=lambda each: each.seq)

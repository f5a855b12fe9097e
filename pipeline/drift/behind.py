"""Adds evidence, cause and region to a change."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fluxplain.drift.cause import cause_of
from fluxplain.drift.evidence import evidence_of
from fluxplain.drift.recent_observations import Columns, Recent
from fluxplain.drift.region import Cut, Found, Side, find_region
from fluxplain.drift.thresholds import shortest_between
from fluxplain.schemas import Change
from fluxplain.schemas.change import Condition, Region
from fluxplain.schemas.record import Value

DECIMALS = 6
"""Decimals of coverage and share."""

Category = Callable[[str, float], Value | None]
"""Feature and code → category; None for the code of a number."""


def with_what_is_behind(change: Change, recent: Recent, before: int, seed: str) -> Change:
    """Return a change with its evidence, and its cause and region if it is the second record.

    The region compares the observations since the change with at most ``before`` before it.
    """
    seq = change.seq if change.status_seq is None else change.status_seq
    sure, first = recent.sure(seq, change.feature, change.method), recent.begin(seq)
    change = replace(change, evidence=evidence_of(change, recent, first, sure) or None)
    if not change.lasts or change.signal != "increment":
        return change
    contrasts = recent.contrasts(change.feature, change.method)
    told = [each for each in contrasts if each.seq >= first]
    increments = recent.columns(change.feature, change.method)
    change = replace(change, cause=cause_of(change, told, increments))
    span = max(first, (change.after_seq or 0) - before), sure + 1
    return replace(change, region=_region(change, recent, span, seed))


def _region(change: Change, recent: Recent, span: tuple[int, int], seed: str) -> Region | None:
    begin = change.after_seq
    if begin is None or begin < span[0]:
        return None
    own = recent.columns(change.feature, change.method)
    of_all = {f: recent.columns(f, change.method) for f in recent.features(change.method)}
    sides = [_side(own.between(*each), of_all) for each in ((span[0], begin), (begin, span[1]))]
    categorical = [feature for feature in of_all if recent.is_categorical(feature)]
    found = find_region(sides[0], sides[1], categorical, random.Random(f"{seed}/{change.id}"))
    return as_region(found, sides, lambda name, code: recent.category(name, change.method, code))


def as_region(found: Found | None, sides: Sequence[Side], category: Category) -> Region | None:
    """Return the published form of a region.

    Its thresholds have as few digits as divide the observations, ``sides``, in the same way.
    """
    if found is None:
        return None
    conditions = [_condition(cut, sides, category) for cut in found.cuts]
    return Region(conditions, round(found.coverage, DECIMALS), round(found.share, DECIMALS))


def _side(own: Columns, of_all: dict[str, Columns]) -> Side:
    """Return the increments, and the values of all features in the same observations."""
    values = {}
    for feature, columns in of_all.items():
        places = np.searchsorted(columns.seqs, own.seqs)
        inside = places < len(columns.seqs)
        inside[inside] = columns.seqs[places[inside]] == own.seqs[inside]
        values[feature] = np.full(len(own.seqs), np.nan)
        values[feature][inside] = columns.values[places[inside]]
    return Side(values, own.increments)


def _condition(cut: Cut, sides: Sequence[Side], category: Category) -> Condition:
    name = category(cut.name, cut.at) if cut.is_equal else None
    if name is not None:
        return Condition(cut.name, "!=" if cut.is_not else "==", name)
    observed = np.concatenate([side.values[cut.name] for side in sides])
    above = float(observed[observed > cut.at].min(initial=np.inf))
    threshold = shortest_between(cut.at, above)
    return Condition(cut.name, ">" if cut.is_not else "<=", threshold)

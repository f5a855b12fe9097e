"""The evidence of a change: the observations that moved the mean most, and those with outliers."""

from dataclasses import replace

import numpy as np

from fluxplain.drift.recent_observations import Recent
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.schemas import Change
from fluxplain.schemas.change import Evidence

MOST_MOVING, MOST_OUTLIERS = 3, 5
"""Largest number of observations that moved the mean most, and of those with outliers."""

EARLIER, NEAR = 2_000, 1_000
"""Observations before a change in which outliers count, since a model takes a while to be misled.
Before the last ``NEAR`` of them only far outliers count."""

FAR = 2.0
"""Distance of a far outlier from the former range, in widths of that range."""


def evidence_of(change: Change, recent: Recent, first: int, sure: int) -> list[Evidence]:
    """Return the evidence of a change from ``first`` on, in order.

    ``sure`` is the seq that all features have reached.
    """
    found = {each.seq: each for each in _moving(change, recent, first)}
    for each in _outliers(change, recent, first, sure):
        increment = found[each.seq].increment if each.seq in found else None
        found[each.seq] = replace(each, increment=increment)
    ids = {seq: recent.id_of(seq, change.method) for seq in found if seq <= sure}
    return [replace(found[seq], id=ids.get(seq)) for seq in sorted(found)]


def _moving(change: Change, recent: Recent, first: int) -> list[Evidence]:
    begin = change.after_seq
    if begin is None or change.signal != "increment":
        return []
    known = recent.columns(change.feature, change.method).between(max(begin, first), change.seq + 1)
    return most_moving(change, known.seqs, known.increments)


def most_moving(change: Change, seqs: Places, numbers: Floats) -> list[Evidence]:
    """Return the observations that moved the mean most, in the direction of a change.

    ``numbers`` are the signal of the observations ``seqs`` since the change.
    """
    if change.before is None:
        return []
    by = (numbers - change.before) * (1.0 if change.direction == "rose" else -1.0)
    largest = np.argsort(-by, kind="stable")[:MOST_MOVING]
    return [Evidence(int(seqs[i]), increment=float(numbers[i])) for i in largest if by[i] > 0.0]


def _outliers(change: Change, recent: Recent, first: int, sure: int) -> list[Evidence]:
    """Return the outliers before and during the change that are nearest to it."""
    begin = change.seq if change.after_seq is None else change.after_seq
    may_begin = min(begin, change.seq - (change.delay_bound or 0))
    earliest, latest = max(may_begin - EARLIER, first), min(change.seq, sure)
    near = [
        (feature, each)
        for feature, each in recent.outliers(change.method)
        if earliest <= each.seq <= latest and (each.seq >= may_begin - NEAR or each.is_beyond(FAR))
    ]
    near.sort(key=lambda of: (abs(of[1].seq - begin), of[1].seq))
    return [
        Evidence(each.seq, feature=feature, value=each.value, low=each.low, high=each.high)
        for feature, each in near[:MOST_OUTLIERS]
    ]

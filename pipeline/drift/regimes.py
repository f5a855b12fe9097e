"""Periods of a stream between its changes, and whether one of them has come back."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fluxplain.drift.recent_observations import Columns, Recent
from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas import Change
from fluxplain.schemas.change import Period
from fluxplain.schemas.methods import Watched

MOST = 32
"""Periods of a method that a change is compared with: the newest ones."""

BATCHES, LEAST = 10, 500
"""Batches of a period whose means tell its errors, and its smallest count of observations."""

WITHIN = 2.3
"""Two profiles are alike if their distance is at most so many of its standard errors.

Whatever the dependence between features, a sum of squares exceeds so many times its expectation
most often if it is one square, whose ten batches give Student's 95 % quantile for 9 degrees of
freedom (Székely, Bakirov 2003, "Extremal probabilities for Gaussian quadratic forms").
"""

NEARER = 0.5
"""The new profile is as near to an earlier one, with its error, as this share of its distance to
the one just before."""

ROUNDING = 1e-9
"""Profiles whose distance is at most this are the same."""


class _Profile(NamedTuple):
    """The features' shares of all importance, and the sum of the squares of their errors."""

    shares: Mapping[str, float]
    variance: float

    def distance(self, other: "_Profile") -> float:
        """Return the Euclidean distance of the shares."""
        names = {*self.shares, *other.shares}
        differences = (self.shares.get(n, 0.0) - other.shares.get(n, 0.0) for n in names)
        return math.sqrt(math.fsum(each * each for each in differences))


class _Ended(NamedTuple):
    """A period, as known at ``seen_seq``; the change of ``feature`` at ``seq`` ended it."""

    seen_seq: int
    feature: str
    seq: int
    period: Period
    profile: _Profile


class Regimes:
    """The profiles of importance that the changes of one stream ended.

    An incident ends one period of a method: the first of its changes with a second record tells.
    """

    def __init__(self) -> None:
        self._ended: dict[Watched, dict[str, _Ended]] = {}

    def compared(self, change: Change, recent: Recent) -> Change:
        """Return a second record with the earlier period to which the stream has returned.

        The period before the change is remembered. Changes are compared with what all features
        knew for sure, so their order does not matter among those that came out together.
        """
        begin, end, status_seq = change.seq + 1, change.after_seq, change.status_seq
        is_lasting = change.lasts and change.signal == "increment"
        if not is_lasting or change.method is None or end is None or status_seq is None:
            return change
        sure = recent.sure(status_seq, change.feature, change.method)
        known = self._ended.setdefault(change.method, {})
        others = [each for incident, each in known.items() if incident != change.incident]
        earlier = sorted(e for e in others if e.seen_seq <= sure and e.period.end < end)[-MOST:]
        first = max([recent.begin(status_seq), 0, *(each.seq + 1 for each in earlier)])
        before = _profile(recent, change.method, first, end)
        if before is not None:
            period = Period(first, end - 1)
            ended = _Ended(status_seq, change.feature or "", change.seq, period, before)
            _remember(known, change.incident or "", ended)
        elif earlier:  # between two changes in quick succession there is no profile
            before = earlier[-1].profile
        new = _profile(recent, change.method, begin, sure + 1)
        if before is None or new is None:
            return change
        return replace(change, returns_to=_alike(new, before, earlier))


def _remember(known: dict[str, _Ended], incident: str, ended: _Ended) -> None:
    """Keep the period that an incident ended, as its first change tells."""
    known[incident] = min(ended, known.get(incident, ended), key=lambda each: each[:2])
    if len(known) > 2 * MOST:  # so that changes that come out together find the same ones
        del known[min(known, key=lambda name: known[name][:2])]


def _alike(new: _Profile, before: _Profile, earlier: list[_Ended]) -> Period | None:
    """Return the period whose profile is nearest to the new one, if they are alike.

    None if the new one is like the one just before: only the size of all importances changed then,
    and with a single feature there is nothing else.
    """
    most = NEARER * new.distance(before)
    if most <= ROUNDING:
        return None
    found: list[tuple[float, Period]] = []
    for each in earlier:
        distance = new.distance(each.profile)
        error = WITHIN * math.sqrt(new.variance + each.profile.variance)
        if distance <= error and distance + error <= most:
            found.append((distance, each.period))
    return min(found, key=lambda of: of[0])[1] if found else None


def _profile(recent: Recent, method: Watched, begin: int, end: int) -> _Profile | None:
    """Return the profile of the observations from ``begin`` to before ``end``.

    Its error is that of means over batches, which hardly depend on each other (Schmeiser 1982).
    None if the observations are few, or no feature has any importance.
    """
    if end - begin < LEAST:
        return None
    names = recent.names(method)
    edges = np.linspace(begin, end, BATCHES + 1)
    columns = [recent.columns(name, method).between(begin, end) for name in names]
    batches = np.array([_means(each, edges) for each in columns])
    means = batches.mean(axis=1)
    total = float(abs(means).sum())
    if not total:
        return None
    shares = means / total
    # the error of a share, to first order
    rest = (batches - np.outer(shares, np.sign(means) @ batches)) / total
    variance = float(rest.var(axis=1, ddof=1).sum()) / BATCHES
    return _Profile(dict(zip(names, shares.tolist(), strict=True)), variance)


def _means(columns: Columns, edges: Floats) -> list[float]:
    """Return the mean increment in each batch; 0 in one without observations."""
    parts = np.split(columns.increments, np.searchsorted(columns.seqs, edges[1:-1]))
    return [float(part.mean()) if len(part) else 0.0 for part in parts]

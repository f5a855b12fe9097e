"""Recognizes that a stream has returned to an earlier period between changes."""

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
"""Batches of a period, whose means give its error, and the fewest observations of a period."""

WITHIN = 2.3
"""Standard errors of the distance within which two profiles are alike.

Whatever the dependence between features, a sum of squares exceeds so many times its expectation
most often if it is one square, whose ten batches give Student's 95 % quantile for 9 degrees of
freedom (Székely, Bakirov 2003, "Extremal probabilities for Gaussian quadratic forms").
"""

NEARER = 0.5
"""Largest distance to an earlier profile, plus its error, as a share of the distance to the profile
just before the change."""

ROUNDING = 1e-9
"""Profiles whose distance is at most this are the same."""


class _Profile(NamedTuple):
    """The features' shares of all importance, and the sum of their squared standard errors."""

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
    """Importance profiles of the earlier periods of one stream.

    An incident ends one period of each method, at its first change that has a second record.
    """

    def __init__(self) -> None:
        self._ended: dict[Watched, dict[str, _Ended]] = {}

    def compared(self, change: Change, recent: Recent) -> Change:
        """Return a second record with the earlier period to which the stream has returned.

        The period before the change is remembered. Only profiles of seqs that all features have
        reached are compared, so the order of changes that are published together does not matter.
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
    """Keep the period that an incident ended, by its first change."""
    known[incident] = min(ended, known.get(incident, ended), key=lambda each: each[:2])
    if len(known) > 2 * MOST:  # changes that are published together find the same ones
        del known[min(known, key=lambda name: known[name][:2])]


def _alike(new: _Profile, before: _Profile, earlier: list[_Ended]) -> Period | None:
    """Return the period whose profile is nearest to the new one, if they are alike.

    None if the new profile equals the one just before the change: then only the size of all
    importances changed, as it always does with a single feature.
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

    Its error is estimated by batch means (Schmeiser 1982). None if there are too few observations,
    or no feature has any importance.
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

"""The newest observations of a stream as its explanations tell them: increments and values."""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from fluxplain.drift.outliers import Outlier, Outliers
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.schemas import Explanation
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import Watched
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Value

MOST_AHEAD = 10_000_000
"""Most increments of a stream, of all features and methods together, while some features are far
ahead of others: about 240 MB."""

TOGETHER = 200
"""Observations that are forgotten together: each time, all are looked at."""

MOST_CATEGORIES = 1_000
"""Most categories of a feature that are told apart."""


class Columns(NamedTuple):
    """Increments of a feature and a method, and the feature's values, in the order of ``seqs``.

    Categories are codes; a missing value is NaN.
    """

    seqs: Places
    increments: Floats
    values: Floats

    def between(self, begin: int, end: int) -> "Columns":
        """Return the observations from ``begin`` to before ``end``."""
        first, last = np.searchsorted(self.seqs, (begin, end))
        seqs, increments, values = self
        return Columns(seqs[first:last], increments[first:last], values[first:last])


NOTHING = Columns(np.empty(0, np.int64), np.empty(0), np.empty(0))


class Recent:
    """The last observations of a stream, by feature and method.

    The explanations of its features arrive in any order, and each tells of up to ``emit_every``
    observations. So one asks for what is known for sure: see :meth:`sure` and :meth:`begin`.

    Parameters
    ----------
    categorical
        Names of the categorical features.
    series
        Number of features, groups and pairs, each counted with each of its methods.
    emit_every
        Most observations that an explanation tells of.
    length
        Number of observations that a change is compared with, at most; fewer with many series.
    """

    def __init__(
        self, categorical: Collection[str], series: int, emit_every: int, length: int
    ) -> None:
        self._categorical = frozenset(categorical)
        self._most = MOST_AHEAD // max(series, 1)
        self._emit_every = emit_every
        # as much again is left for those that are ahead
        self._length = max(min(length, self._most // 4), 1)
        self._looked_at = 0
        self._series: dict[tuple[str, Watched], _Series] = {}
        self._codes: dict[tuple[str, Watched], dict[Value, int]] = {}
        self._outliers: dict[tuple[str, Watched], Outliers] = {}
        self._ids: dict[Watched, dict[int, Id]] = {}
        self._contrasts: dict[tuple[str, Watched], list[Contrast]] = {}

    def add(self, e: Explanation, read: int) -> None:
        """Take what an explanation tells about observations after seq ``read``."""
        key = e.feature, e.method
        series = self._series.setdefault(key, _Series(self._most))
        # an explainer without its state tells it again
        first = bisect_right(e.seqs, max(read, series.newest))
        seqs, values = e.seqs[first:], [None] * len(e.seqs) if e.values is None else e.values
        numbers = [self._number(key, value) for value in values[first:]]
        series.add(seqs, e.increments[first:], numbers)
        if e.values is not None:
            self._outliers_of(key).add_all(seqs, e.values[first:])
        for seq, id_ in zip(seqs, (e.ids or ())[first:], strict=False):
            if id_ is not None:
                self._add_id(e.method, seq, id_)
        contrasts = self._contrasts.setdefault(key, [])
        newest = max(read, contrasts[-1].seq if contrasts else -1)
        contrasts += [each for each in e.contrasts or () if each.seq > newest]
        if len(contrasts) > self._most:
            del contrasts[: len(contrasts) // 2]

    def _add_id(self, method: Watched, seq: int, id_: Id) -> None:
        ids = self._ids.setdefault(method, {})
        ids[seq] = id_
        if len(ids) > self._most:
            for each in [*islice(ids, len(ids) // 2)]:
                del ids[each]

    def _number(self, key: tuple[str, Watched], value: Value | None) -> float:
        if value is None:
            return math.nan
        if key[0] not in self._categorical:
            return float(value)
        # of each method: one may miss observations that another one has
        codes = self._codes.setdefault(key, {})
        if value not in codes and len(codes) >= MOST_CATEGORIES:
            return math.nan
        return float(codes.setdefault(value, len(codes)))

    def _outliers_of(self, key: tuple[str, Watched]) -> Outliers:
        if key not in self._outliers:
            self._outliers[key] = Outliers(categorical=key[0] in self._categorical)
        return self._outliers[key]

    def forget(self, reached: int) -> None:
        """Drop the observations that no change from seq ``reached`` on is compared with.

        Of each method those are kept that its slowest feature may still need: one method may tell
        of many observations at once, and so much later than others. Twice as many are kept, since
        a feature may be behind.
        """
        if reached < self._looked_at + TOGETHER:
            return
        self._looked_at = reached
        told: dict[Watched, int] = {}
        for (_, method), series in self._series.items():
            told[method] = min(told.get(method, reached), series.newest)
        kept = self._length + max(self._length, 2 * self._emit_every)
        before = {method: seq - kept for method, seq in told.items()}
        for (_, method), outliers in self._outliers.items():
            outliers.forget(before[method])
        for (_, method), series in self._series.items():
            series.forget(before[method])
        for key, contrasts in self._contrasts.items():
            self._contrasts[key] = [each for each in contrasts if each.seq >= before[key[1]]]
        for method, ids in self._ids.items():
            for seq in [seq for seq in ids if seq < before[method]]:
                del ids[seq]

    def begin(self, seq: int) -> int:
        """Return from which seq on a change at ``seq`` is compared with observations.

        Earlier ones may be forgotten or not: that depends on how far the features are.
        """
        return seq - self._length

    def sure(self, seq: int, feature: str | None, method: Watched | None) -> int:
        """Return up to which seq a method has told of all features; -1 if of none.

        That is once all of them have reached a seq, and if it has told of this feature up to there.
        """
        seqs = self.columns(feature, method).seqs
        place = int(np.searchsorted(seqs, seq, side="right")) - 1 - self._emit_every
        return int(seqs[place]) if place >= 0 else -1

    def columns(self, feature: str | None, method: Watched | None) -> Columns:
        """Return what is known of a feature."""
        series = self._series.get((feature or "", method or "loss"))
        return NOTHING if series is None else series.columns()

    def contrasts(self, feature: str | None, method: Watched | None) -> Sequence[Contrast]:
        """Return the contrasts of a feature, in order."""
        return self._contrasts.get((feature or "", method or "loss"), ())

    def features(self, method: Watched | None) -> list[str]:
        """Return the features that have values and this method, in a fixed order."""
        return sorted(name for name, of in self._outliers if of == method)

    def names(self, method: Watched | None) -> list[str]:
        """Return the features, groups and pairs with this method, in a fixed order."""
        return sorted(name for name, of in self._series if of == method)

    def category(self, feature: str, method: Watched | None, code: float) -> Value | None:
        """Return the category with a code of a method; None for a numeric feature."""
        codes = self._codes.get((feature, method or "loss"))
        return None if codes is None else [*codes][int(code)]

    def is_categorical(self, feature: str) -> bool:
        """Return whether a feature's values are codes."""
        return feature in self._categorical

    def outliers(self, method: Watched | None) -> list[tuple[str, Outlier]]:
        """Return the outliers of all features among the observations that a method explained."""
        return [
            (name, each)
            for name in self.features(method)
            for each in self._outliers[name, method or "loss"].newest
        ]

    def id_of(self, seq: int, method: Watched | None) -> Id | None:
        """Return the id of an observation, if it is known."""
        return self._ids.get(method or "loss", {}).get(seq)


class _Series:
    """Increments of a feature and a method, and the feature's values."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seqs, self._increments, self._values = array("q"), array("d"), array("d")

    @property
    def newest(self) -> int:
        return self._seqs[-1] if self._seqs else -1

    def add(self, seqs: list[int], increments: list[float], values: list[float]) -> None:
        end = 0
        while end < len(seqs):
            begin, end = end, end + self._most + 1 - len(self._seqs)
            self._seqs.extend(seqs[begin:end])
            self._increments.extend(increments[begin:end])
            self._values.extend(values[begin:end])
            if len(self._seqs) > self._most:
                self._drop(len(self._seqs) // 2)

    def forget(self, before: int) -> None:
        self._drop(bisect_left(self._seqs, before))

    def _drop(self, n: int) -> None:
        for column in (self._seqs, self._increments, self._values):
            del column[:n]

    def columns(self) -> Columns:
        return Columns(*map(np.array, (self._seqs, self._increments, self._values)))

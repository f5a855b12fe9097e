"""The newest observations of a stream with their losses: where the loss changed, and by which."""

import math
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fluxplain.drift.behind import as_region
from fluxplain.drift.evidence import most_moving
from fluxplain.drift.region import Side, find_region
from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas import Change
from fluxplain.schemas.change import Region, Signal
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Value

MOST_VALUES = 200_000
"""Most values of features that are kept."""


class _Seen(NamedTuple):
    seq: int
    id: Id | None
    values: tuple[Value | None, ...]
    signals: Mapping[Signal, float]


class RecentLosses:
    """The last ``length`` observations with a loss; fewer if they have more than ``MOST_VALUES``.

    ``kinds`` maps each feature to whether it is categorical.

    Examples
    --------
    >>> recent, rng = RecentLosses({"a": False}, length=500), random.Random(1)
    >>> for seq in range(400):
    ...     a = rng.randrange(4)
    ...     recent.add(seq, f"id-{seq}", {"a": a}, {"error": float(seq >= 200 and a == 0)})
    >>> change = Change.notice(kind="drift", stream="features-0", seq=250, detail="", method="loss")
    >>> change = replace(change, signal="error", status="confirmed", direction="rose", before=0.0)
    >>> change = recent.with_what_is_behind(replace(change, after_seq=200), before=200, seed="")
    >>> print(change.region.conditions, change.region.share)
    [Condition(feature='a', op='<=', value=0.0)] 1.0
    >>> [each.id for each in change.evidence]
    ['id-201', 'id-206', 'id-207']
    """

    def __init__(self, kinds: Mapping[str, bool], length: int) -> None:
        self._kinds = dict(kinds)
        self._seen = deque[_Seen](maxlen=max(1, min(length, MOST_VALUES // max(len(kinds), 1))))

    def add(
        self, seq: int, id_: Id | None, x: Mapping[str, Value], signals: Mapping[Signal, float]
    ) -> None:
        """Take the next observation, with the numbers of its signals."""
        self._seen.append(_Seen(seq, id_, tuple(map(x.get, self._kinds)), signals))

    def with_what_is_behind(self, change: Change, before: int, seed: str) -> Change:
        """Return a change with its evidence, and its region if it is the second record.

        The region compares the observations since the change with at most ``before`` before it.
        """
        signal, begin = change.signal, change.after_seq
        if signal is None or begin is None:
            return change
        seqs = np.array([each.seq for each in self._seen])
        numbers = np.array([each.signals[signal] for each in self._seen])
        place, until = np.searchsorted(seqs, (begin, change.seq + 1)).tolist()
        ids = {each.seq: each.id for each in self._seen}
        moving = most_moving(change, seqs[place:until], numbers[place:until])
        evidence = [replace(each, id=ids[each.seq]) for each in moving]
        change = replace(change, evidence=sorted(evidence, key=lambda each: each.seq) or None)
        if change.status not in {"confirmed", "unclear"}:
            return change
        parts = slice(max(0, place - before), place), slice(place, None)
        return replace(change, region=self._region(numbers, parts, f"{seed}/{change.id}"))

    def _region(self, numbers: Floats, parts: tuple[slice, slice], seed: str) -> Region | None:
        rows = zip(*(each.values for each in self._seen), strict=True)
        columns = dict(zip(self._kinds, rows, strict=True))
        categories = {
            name: [*dict.fromkeys(each for each in columns[name] if each is not None)]
            for name, is_categorical in self._kinds.items()
            if is_categorical
        }
        values = {name: _numbers(each, categories.get(name)) for name, each in columns.items()}
        sides = [
            Side({name: each[part] for name, each in values.items()}, numbers[part])
            for part in parts
        ]
        found = find_region(sides[0], sides[1], categories, random.Random(seed))
        return as_region(found, lambda name, code: categories[name][int(code)])


def _numbers(values: tuple[Value | None, ...], categories: list[Value] | None) -> Floats:
    """Return values as numbers; categories as their places, and missing ones as NaN."""
    if categories is None:
        return np.array([math.nan if each is None else float(each) for each in values])
    codes: dict[Value | None, float] = {each: float(k) for k, each in enumerate(categories)}
    return np.array([codes.get(each, math.nan) for each in values])

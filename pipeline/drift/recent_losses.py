"""Keeps the newest observations and their losses, to find the region of a change of the loss."""

import math
import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from fluxplain.drift.behind import as_region
from fluxplain.drift.evidence import most_moving
from fluxplain.drift.region import Side, find_region
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.schemas import Change
from fluxplain.schemas.change import Region, Signal
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import Target, Value

MOST_VALUES = 200_000
"""Most values of features that are kept."""

MOST_CHARACTERS = 8_000_000
"""Most characters of categories and ids that are kept: 8 MB, or up to 32 MB in some scripts."""

MOST_ASKED = 1_000
"""Most observations since a change that a former model is asked about, in one step."""

LEAST_EXPLAINED = 0.5
"""The losses of a former model count if they explain at least this share of a change's step."""

SIGNALS: tuple[Signal, ...] = ("increment", "error")


Losses = Callable[[dict[str, Value], Target], Mapping[Signal, float]]
"""What a model loses on an observation, by signal."""


class RecentLosses:
    """The last ``length`` observations with a loss, within ``MOST_VALUES`` and ``MOST_CHARACTERS``.

    ``kinds`` maps each feature to whether it is categorical.

    Examples
    --------
    >>> recent, rng = RecentLosses({"a": False}, length=500), random.Random(1)
    >>> for seq in range(400):
    ...     a = rng.randrange(4)
    ...     error = float(seq >= 200 and a == 0)
    ...     recent.add(seq, f"id-{seq}", {"a": a}, error == 0.0, {"error": error})
    >>> change = Change.notice(kind="drift", stream="features-0", seq=250, detail="", method="loss")
    >>> change = replace(change, signal="error", status="confirmed", direction="rose", before=0.0)
    >>> change = recent.with_what_is_behind(replace(change, after_seq=200), before=200, seed="")
    >>> print(change.region.conditions, change.region.share)
    [Condition(feature='a', op='<=', value=0.0)] 1.0
    >>> [each.id for each in change.evidence]
    ['id-201', 'id-206', 'id-207']
    """

    def __init__(self, kinds: Mapping[str, bool], length: int) -> None:
        self._names = [*kinds]
        self._numeric = [name for name, is_categorical in kinds.items() if not is_categorical]
        self._categorical = [name for name, is_categorical in kinds.items() if is_categorical]
        length = max(1, min(length, MOST_VALUES // len(kinds)))
        self._ids = deque[Id | None]()
        self._labels = deque[Target]()
        self._categories = deque[tuple[Value | None, ...]]()
        self._characters = 0
        # rings, since thousands of objects would slow down each checkpoint
        self._seqs, self._n = np.zeros(length, np.int64), 0
        self._rows = np.zeros((length, len(SIGNALS) + len(self._numeric)))

    def add(
        self,
        seq: int,
        id_: Id | None,
        x: Mapping[str, Value],
        y: Target,
        signals: Mapping[Signal, float],
    ) -> None:
        """Add an observation with its label, and the number of each signal."""
        self._add_texts(id_, y, tuple(map(x.get, self._categorical)))
        numbers = [signals.get(each, math.nan) for each in SIGNALS]
        numbers += [x.get(name, math.nan) for name in self._numeric]  # type: ignore[misc]
        place = self._n % len(self._seqs)
        self._seqs[place], self._rows[place] = seq, numbers
        self._n += 1

    def _add_texts(self, id_: Id | None, y: Target, categories: tuple[Value | None, ...]) -> None:
        """Keep what may be a text; drop the oldest ones beyond ``MOST_CHARACTERS``."""
        self._ids.append(id_)
        self._labels.append(y)
        self._categories.append(categories)
        self._characters += _characters(id_, y, *categories)
        while len(self._ids) > len(self._seqs) or self._characters > MOST_CHARACTERS:
            oldest = self._ids.popleft(), self._labels.popleft(), *self._categories.popleft()
            self._characters -= _characters(*oldest)

    def mean_loss(self, newest: int) -> float | None:
        """Return the mean loss of at most the ``newest`` observations; None without any."""
        known = min(self._n, len(self._seqs))
        losses = np.roll(self._rows[:, SIGNALS.index("increment")], -self._n)[-known:][-newest:]
        return float(losses.mean()) if known else None

    def with_what_is_behind(
        self, change: Change, before: int, seed: str, former: Losses | None = None
    ) -> Change:
        """Return a change with its evidence, and its region if it is the second record.

        The region compares the observations since the change with at most ``before`` before it.
        If the loss rose, those of a ``former`` model count since then, one from before the change:
        a model that learns no longer loses where it has learned, and loses where it has forgotten.
        If the former one loses no more than before, it was the model that changed.
        """
        signal, begin = change.signal, change.after_seq
        if signal not in SIGNALS or begin is None or not self._ids:
            return change
        known = len(self._ids)
        seqs = np.roll(self._seqs, -self._n)[-known:]
        rows = np.roll(self._rows, -self._n, axis=0)[-known:]
        numbers = rows[:, SIGNALS.index(signal)]
        place, until = np.searchsorted(seqs, (begin, change.seq + 1)).tolist()
        ids = dict(zip(seqs.tolist(), self._ids, strict=True))
        moving = most_moving(change, seqs[place:until], numbers[place:until])
        evidence = [replace(each, id=ids[each.seq]) for each in moving]
        change = replace(change, evidence=sorted(evidence, key=lambda each: each.seq) or None)
        if change.status == "noticed":
            return change
        end = known if change.lasted is None else int(np.searchsorted(seqs, begin + change.lasted))
        before_it, since = np.arange(max(0, place - before), place), np.arange(place, end)
        if not len(before_it) or not len(since):
            return change
        if former is not None and change.direction == "rose":
            numbers, since = self._as_of(former, change, rows, before_it, since)
        rises = numbers[since].mean() > numbers[before_it].mean()
        if rises != (change.direction == "rose"):
            return change
        of = f"{seed}/{change.id}"
        return replace(change, region=self._region(rows, numbers, (before_it, since), of))

    def _as_of(
        self, former: Losses, change: Change, rows: Floats, before_it: Places, since: Places
    ) -> tuple[Floats, Places]:
        """Return the numbers, with those of a former model since a change, and where it was asked.

        Where these do not explain the change, they are the model's own.
        """
        signal: Signal = "error" if change.signal == "error" else "increment"
        own = rows[:, SIGNALS.index(signal)]
        count = min(len(since), MOST_ASKED)
        asked = since[np.arange(count) * len(since) // count]
        losses = self._losses_of(former, rows, asked, signal)
        if losses is None:
            return own, since
        rise = float(losses.mean() - own[before_it].mean())
        step = (change.after or 0.0) - (change.before or 0.0)
        if rise <= max(LEAST_EXPLAINED * step, 0.0):
            return own, since
        found = own.copy()
        found[asked] = losses
        return found, asked

    def _losses_of(
        self, former: Losses, rows: Floats, which: Places, signal: Signal
    ) -> Floats | None:
        """Return what a former model loses on some observations; None if it fails on one."""
        numeric, labels = rows[:, len(SIGNALS) :].tolist(), [*self._labels]
        categories, found = [*self._categories], []
        try:
            for k in which.tolist():
                known = dict(zip(self._numeric, numeric[k], strict=True))
                x: dict[str, Value] = {n: v for n, v in known.items() if not math.isnan(v)}
                texts = zip(self._categorical, categories[k], strict=True)
                x |= {name: value for name, value in texts if value is not None}
                # in the order that the model knows
                x = {name: x[name] for name in self._names if name in x}
                found.append(former(x, labels[k])[signal])
        except MemoryError:
            raise
        except Exception:  # the model's own code may raise anything
            return None
        return np.array(found) if np.isfinite(found).all() else None

    def _region(
        self, rows: Floats, numbers: Floats, parts: tuple[Places, Places], seed: str
    ) -> Region | None:
        values = dict(zip(self._numeric, rows[:, len(SIGNALS) :].T, strict=True))
        categories = dict[str, list[Value]]()
        columns = zip(*self._categories, strict=True)
        for name, column in zip(self._categorical, columns, strict=True):
            known = categories[name] = [*dict.fromkeys(each for each in column if each is not None)]
            codes: dict[Value | None, float] = {each: float(k) for k, each in enumerate(known)}
            values[name] = np.array([codes.get(each, math.nan) for each in column])
        sides = [
            Side({name: each[part] for name, each in values.items()}, numbers[part])
            for part in parts
        ]
        found = find_region(sides[0], sides[1], categories, random.Random(seed))
        return as_region(found, sides, lambda name, code: categories[name][int(code)])


def _characters(*values: Value | None) -> int:
    return sum([len(value) for value in values if isinstance(value, str)])

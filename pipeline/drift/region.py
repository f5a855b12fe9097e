"""Finds the region of a change: the part of the observations that carries it."""

import math
import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.encoding import Floats

Mask = NDArray[np.bool_]

MOST_CONDITIONS = 3
"""Largest number of conditions of a region."""

CUTS, FINE_CUTS = 15, 63
"""Quantiles that the search tries as thresholds of a feature, and that refine the chosen ones."""

MOST_CATEGORIES = 15
"""Most frequent categories of a feature that a condition may name."""

LEAST = 30
"""Fewest observations that meet a condition, and that do not, both before and after the change."""

MOST_COMPARED = 5_000
"""Most observations compared before the change, and after it: the nearest ones."""

SHIFTS = 49
"""How often the increments are moved along the observations, to see what chance finds."""

CHANCE = 1e-3
"""Largest chance that nothing but chance gives the region."""

GROWTH = 1.25
"""With each condition the difference, in standard errors, is so many times as large as without."""

LEAST_SHARE, MOST_SHARE, LEAST_RATIO = 0.4, 2.0, 1.5
"""A region carries at least this share of the change, and so many times its share of the
observations. A share above 1 says that the others moved the other way."""

EULER = 0.5772156649015329

TAIL = 0.01
"""Share of the increments on either side that counts like the largest of the others."""


class Cut(NamedTuple):
    """A condition: value ≤ ``at``, or with ``is_equal`` value = ``at``; ``is_not`` negates it."""

    name: str
    at: float
    is_equal: bool = False
    is_not: bool = False

    def holds(self, values: Floats) -> Mask:
        """Return where the condition holds; it never holds for a missing value."""
        with np.errstate(invalid="ignore"):
            found: Mask = values == self.at if self.is_equal else values <= self.at
        return (~found if self.is_not else found) & ~np.isnan(values)


class Found(NamedTuple):
    """A region: its conditions, its share of the observations, and its share of the change."""

    cuts: Sequence[Cut]
    coverage: float
    share: float


class Side(NamedTuple):
    """Observations before or after a change: values by feature, and their increments."""

    values: Mapping[str, Floats]
    increments: Floats

    def some(self, mask: Mask | slice) -> "Side":
        """Return the observations that a mask or slice selects."""
        values = {name: each[mask] for name, each in self.values.items()}
        return Side(values, self.increments[mask])


class _Sides(NamedTuple):
    """The observations before and after a change that meet the conditions so far."""

    before: Side
    after: Side

    @property
    def change(self) -> float:
        """Difference of the mean increments."""
        return float(self.after.increments.mean() - self.before.increments.mean())

    def meeting(self, cuts: Iterable[Cut]) -> "_Sides":
        """Return the observations that meet conditions."""
        return _Sides(*(side.some(_meeting(side, cuts)) for side in self))

    def are_enough(self) -> bool:
        """Return whether there are enough observations for another condition."""
        return min(len(side.increments) for side in self) >= 2 * LEAST


def find_region(
    before: Side, after: Side, categorical: Collection[str], rng: random.Random
) -> Found | None:
    """Return the region that carries the change of the mean increment; None if there is none.

    A greedy search adds up to three conditions. Each makes the change differ most, in standard
    errors, between the observations that meet all conditions and the others. The difference must be
    larger than by chance. Circular shifts of the increments, separately before and after the
    change, give its distribution by chance: they keep the increments' autocorrelation and break
    their dependence on the values.

    Parameters
    ----------
    categorical
        Features whose values are codes of categories.
    rng
        Draws the circular shifts.
    """
    before, after = before.some(slice(-MOST_COMPARED, None)), after.some(slice(MOST_COMPARED))
    sides = _Sides(*map(_clipped, (before, after)))
    if not sides.are_enough() or not sides.change:
        return None
    cuts = _chosen(sides, categorical, rng)
    if not cuts:
        return None
    cuts = _tightest(_placed(sides, _needed(sides, cuts)))
    parts = [np.where(_meeting(s, cuts), s.increments, 0.0).mean() for s in (before, after)]
    whole = _Sides(before, after).change
    if whole * sides.change <= 0.0:  # without the largest increments it would be the other way
        return None
    share = float(parts[1] - parts[0]) / whole
    coverage = float(_meeting(after, cuts).mean())
    if not max(LEAST_SHARE, LEAST_RATIO * coverage) <= share <= MOST_SHARE:
        return None
    return Found(cuts, coverage, share)


def _clipped(side: Side) -> Side:
    if not len(side.increments):
        return side
    low, high = np.quantile(side.increments, (TAIL, 1.0 - TAIL))
    return Side(side.values, side.increments.clip(low, high))


def _meeting(side: Side, cuts: Iterable[Cut]) -> Mask:
    """Return which observations meet all conditions."""
    mask = np.ones(len(side.increments), bool)
    for cut in cuts:
        mask &= cut.holds(side.values[cut.name])
    return mask


def _chosen(sides: _Sides, categorical: Collection[str], rng: random.Random) -> list[Cut]:
    """Return the conditions of the greedy search; none if chance gives as large a difference."""
    candidates = [*_candidates(sides, categorical, CUTS)]
    candidates += [cut._replace(is_not=True) for cut in candidates]
    if not candidates:
        return []
    masks = [_masks(side, candidates) for side in sides]
    moved = [_moved(side.increments, rng) for side in sides]
    chosen, best = [np.ones_like(each) for each in moved], np.zeros(1 + SHIFTS)
    direction, cuts = math.copysign(1.0, sides.change), list[Cut]()
    for _ in range(MOST_CONDITIONS):
        differences = direction * _differences(masks, moved, chosen)
        places, largest = differences.argmax(axis=0), differences.max(axis=0)
        is_better = largest > GROWTH * best
        best = np.where(is_better, largest, best)
        for mask, each in zip(masks, chosen, strict=True):
            each[:, is_better] *= mask[places[is_better]].T
        if is_better[0]:
            cuts.append(candidates[int(places[0])])
    found = direction * _certainty(moved, chosen)
    return cuts if _chance(float(found[0]), found[1:]) <= CHANCE else []


def _needed(sides: _Sides, cuts: list[Cut]) -> list[Cut]:
    """Return the conditions without those that hardly add to the difference.

    A condition that leaves out a part of the change must add more: where the change is larger in
    one half of a region, the region is nevertheless the whole of it.
    """

    def size(some: list[Cut]) -> float:
        masks = [_meeting(side, some) for side in sides]
        pairs = zip(masks, sides, strict=True)
        before, after = (np.where(mask, side.increments, 0.0).mean() for mask, side in pairs)
        share = min(abs(float(after - before) / sides.change), 1.0)
        inside = [mask[None].astype(np.float64) for mask in masks]
        difference = _differences(inside, [side.increments[:, None] for side in sides]).item()
        return math.sqrt(share) * abs(difference)

    while len(cuts) > 1:
        fewer = [[other for other in cuts if other is not cut] for cut in cuts]
        best = max(fewer, key=size)
        if GROWTH * size(best) <= size(cuts):
            break
        cuts = best
    return cuts


def _placed(sides: _Sides, cuts: list[Cut]) -> list[Cut]:
    """Return the conditions with the thresholds at which the change differs most."""
    for place, cut in enumerate(cuts):
        if cut.is_equal:
            continue
        others = sides.meeting([other for other in cuts if other is not cut])
        values = (
            {cut.name: others.before.values[cut.name]},
            {cut.name: others.after.values[cut.name]},
        )
        others = _Sides(*(Side(v, s.increments) for v, s in zip(values, others, strict=True)))
        candidates = [*_candidates(others, (), FINE_CUTS)] or [cut]
        masks = [_masks(side, candidates) for side in others]
        differences = _differences(masks, [side.increments[:, None] for side in others])[:, 0]
        differences = -differences if cut.is_not else differences
        direction = math.copysign(1.0, sides.change)
        if (direction * differences).max() > 0.0:
            at = candidates[int((direction * differences).argmax())].at
            cuts = [*cuts[:place], cut._replace(at=at), *cuts[place + 1 :]]
    return cuts


def _tightest(cuts: list[Cut]) -> list[Cut]:
    """Return the conditions, with only the tightest of several in the same direction."""
    tightest: dict[tuple[str, bool, float | None], Cut] = {}
    for cut in cuts:
        key = cut.name, cut.is_not, cut.at if cut.is_equal else None
        other = tightest.get(key, cut)
        at = max(cut.at, other.at) if cut.is_not else min(cut.at, other.at)
        tightest[key] = cut._replace(at=at)
    return [*tightest.values()]


def _candidates(sides: _Sides, categorical: Collection[str], n: int) -> Iterator[Cut]:
    """Yield one condition for each of n quantiles of a number, or for each category."""
    for name in sides.after.values:
        together = np.concatenate([side.values[name] for side in sides])
        together = together[~np.isnan(together)]
        if name in categorical:
            codes, counts = np.unique(together, return_counts=True)
            frequent = codes[np.argsort(-counts, kind="stable")][:MOST_CATEGORIES]
            yield from (Cut(name, float(code), is_equal=True) for code in frequent)
        elif len(together):
            quantiles = np.arange(1, n + 1) / (n + 1)
            levels = np.unique(np.quantile(together, quantiles, method="lower"))
            yield from (Cut(name, float(level)) for level in levels)


def _moved(increments: Floats, rng: random.Random) -> Floats:
    """Return the increments and circular shifts of them, shape (observations, 1 + SHIFTS)."""
    n = len(increments)
    by = [0, *(rng.randrange(1, n) for _ in range(SHIFTS))]
    return np.stack([np.roll(increments, k) for k in by], axis=1)


def _masks(side: Side, cuts: Sequence[Cut]) -> Floats:
    """Return 1 where a condition holds, else 0, shape (conditions, observations)."""
    return np.array([cut.holds(side.values[cut.name]) for cut in cuts], np.float64)


def _differences(
    masks: Sequence[Floats], increments: Sequence[Floats], chosen: Sequence[Floats] | None = None
) -> Floats:
    """Return how much the change differs between those that meet a condition and the others.

    The unit is standard errors, the shape (conditions, columns of the increments). It is 0 where
    too few observations meet a condition or do not. ``chosen``, of the shape of the increments, is
    1 for the observations that meet the earlier conditions.
    """
    difference, variance = np.zeros((1, 1)), np.zeros((1, 1))
    is_enough: Mask = np.ones((1, 1), bool)
    for side, (mask, numbers, sign) in enumerate(zip(masks, increments, (-1.0, 1.0), strict=True)):
        those = np.ones_like(numbers) if chosen is None else chosen[side]
        inside, sums = mask @ those, mask @ (those * numbers)
        outside = len(numbers) - inside
        is_enough = is_enough & (inside >= LEAST) & (outside >= LEAST)
        inside, outside = inside.clip(1.0), outside.clip(1.0)
        difference = difference + sign * (sums / inside - (numbers.sum(axis=0) - sums) / outside)
        variance = variance + numbers[:, 0].var() * (1.0 / inside + 1.0 / outside)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(is_enough & (variance > 0.0), difference / np.sqrt(variance), 0.0)
    return found


def _certainty(increments: Sequence[Floats], chosen: Sequence[Floats]) -> Floats:
    """Return the difference of the chosen observations from the others by its own standard error.

    Increments may be noisier somewhere, and what is chosen is often there. Few numbers say little
    about their variance, so that of all counts, too, like ``LEAST`` more numbers.
    """
    difference, variance = np.zeros(1), np.zeros(1)
    for sign, numbers, inside in zip((-1.0, 1.0), increments, chosen, strict=True):
        for way, those in ((sign, inside), (-sign, 1.0 - inside)):
            n = those.sum(axis=0).clip(1.0)
            mean = (those * numbers).sum(axis=0) / n
            squares = (those * (numbers - mean) ** 2).sum(axis=0)
            difference = difference + way * mean
            variance = variance + (squares + LEAST * numbers.var(axis=0)) / (n + LEAST) / n
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(variance > 0.0, difference / np.sqrt(variance), 0.0)
    return found


def _chance(found: float, by_chance: Floats) -> float:
    """Return the p-value of a difference, by a Gumbel distribution fitted to those by chance."""
    scale = float(by_chance.std()) * math.sqrt(6.0) / math.pi
    if scale <= 0.0:
        return 1.0
    place = float(by_chance.mean()) - EULER * scale
    return -math.expm1(-math.exp(-(found - place) / scale))

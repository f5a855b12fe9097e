"""Why an explanation changed: because of the data, the model, or what labels have to do with it."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fluxplain.drift.recent_observations import NOTHING, Columns
from fluxplain.drift.series_error import error_of_mean
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.schemas import Change
from fluxplain.schemas.change import Cause, CauseKind
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.methods import unit_of

LEAST = 20
"""Smallest count of contrasts that tell a cause."""

EARLIER = 200
"""Contrasts from before the change that tell how contrasts depend on each other, at most."""

SURE = 2.0
"""A part counts as one if it is at least so many standard errors."""

SMALLER = 0.5
"""Both are the cause if the smaller part is at least this share of the larger one."""

MOST_EXPLAINED = 0.5
"""The labels are the cause only if the output explains at most this share of the change, and beyond
its error not all of it."""


LEAST_REVERSED = 0.1
"""An importance is turned around if the smaller size is at least this share of the larger one: that
of an unused feature may be a little below 0."""


TINY = 1e-300
"""Keeps a division by 0 from failing."""


class Part(NamedTuple):
    """A part of a change and its standard error, infinite if unknown."""

    mean: float
    error: float

    def times(self, factor: float) -> "Part":
        """Return a multiple of it."""
        return Part(factor * self.mean, abs(factor) * self.error if factor else 0.0)

    @property
    def is_sure(self) -> bool:
        """Whether it is above 0 beyond its error."""
        return self.mean > 0.0 and self.mean >= SURE * self.error

    @property
    def known_error(self) -> float | None:
        """The standard error; None if unknown."""
        return self.error if self.error < math.inf else None


class Cells(NamedTuple):
    """The numbers of contrasts in order, and of earlier ones, shape (contrasts,) each.

    ``begin`` is the place of the first contrast since the change. ``chance`` is the increment of
    the observation minus the mean of those around it: contrasts are of one of ten observations.
    """

    new: Floats
    old: Floats
    new_then: Floats
    old_then: Floats
    chance: Floats
    begin: int

    def mean(self, numbers: Floats) -> Part:
        """Return the mean of numbers since the change.

        How observations depend on each other shows in the data's part from before the change, too;
        in the model's part only how it learned then.
        """
        before, since = slice(0, self.begin), slice(self.begin, None)
        earlier = _without((self.old - self.old_then)[before], self.chance[before])
        later = _without(numbers[since], self.chance[since])
        return Part(float(later.mean()), error_of_mean(later, earlier))


def cause_of(
    change: Change, contrasts: Sequence[Contrast], increments: Columns = NOTHING
) -> Cause | None:
    """Return the parts of a change; None if too few contrasts tell of it.

    They compare the model since the change with one from before it, on observations of both times.
    The ``increments`` of all observations make the parts more precise.

    References
    ----------
    Three-fold decomposition of a difference of means: Oaxaca (1973), Blinder (1973).

    Examples
    --------
    The older model would give the same increments as before; the newer one gives more everywhere:

    >>> from dataclasses import replace
    >>> change = Change.notice(kind="drift", stream="features-0", seq=7, detail="", method="ishap")
    >>> change = replace(change, direction="rose", before=1.0, after=1.5)
    >>> contrasts = [Contrast(t, -1, 0.5 + t % 3, t % 3, 0.5 + t % 3, t % 3) for t in range(60)]
    >>> cause = cause_of(change, contrasts)
    >>> cause.kind, cause.model, cause.data, cause.interaction
    ('model', 0.5, 0.0, 0.0)

    It does not explain that the feature moves the output less:

    >>> cause_of(replace(change, direction="fell"), contrasts).kind
    'unclear'
    """
    begin, end = change.after_seq or 0, change.status_seq
    told = [
        each
        for each in contrasts
        if each.since < begin <= each.seq and (end is None or each.seq <= end)
    ]
    if len(told) < LEAST:
        return None
    earlier = [each for each in contrasts if each.seq < begin][-EARLIER:]
    numbers = [(each.new, each.old, each.new_then, each.old_then) for each in (*earlier, *told)]
    new, old, new_then, old_then = np.array(numbers).T
    seqs = np.array([each.seq for each in (*earlier, *told)])
    chance = _chance(seqs, increments.between(seqs[0], told[-1].seq if end is None else end + 1))
    cells = Cells(new, old, new_then, old_then, chance, len(earlier))
    numbers_of = old - old_then, new_then - old_then, new - old - new_then + old_then
    data, model, interaction = map(cells.mean, numbers_of)
    return Cause(
        _kind(change, cells),
        data.mean,
        data.known_error,
        model.mean,
        model.known_error,
        interaction.mean,
        interaction.known_error,
    )


def _chance(seqs: Places, increments: Columns) -> Floats:
    """Return each contrast's increment minus the mean until the next contrast; 0 if unknown."""
    places = np.searchsorted(increments.seqs, seqs)
    found = np.zeros(len(seqs))
    for k, (first, last) in enumerate(pairwise([*places, len(increments.seqs)])):
        if first < last and increments.seqs[first] == seqs[k]:
            found[k] = increments.increments[first] - increments.increments[first:last].mean()
    return found


def _without(numbers: Floats, chance: Floats) -> Floats:
    """Return numbers without what they have in common with numbers of mean 0.

    References
    ----------
    Control variates: Lavenberg, Welch (1981), "A Perspective on the Use of Control Variables to
    Increase the Efficiency of Monte Carlo Simulations".
    """
    largest = float(abs(chance).max(initial=0.0))
    if largest == 0.0:
        return numbers
    scaled = chance / largest
    deviations = scaled - scaled.mean()
    slope = float(deviations @ numbers) / max(float(deviations @ deviations), TINY)
    return numbers - slope * scaled


def _kind(change: Change, cells: Cells) -> CauseKind:
    """Return the cause, from both parts with half of the interaction each."""
    new, old, new_then, old_then = cells[:4]
    way = _way(change)
    data = cells.mean((old - old_then + new - new_then) / 2.0).times(way)
    model = cells.mean((new_then - old_then + new - old) / 2.0).times(way)
    smaller, larger = sorted((data, model))
    if larger.is_sure:
        if smaller.is_sure and smaller.mean >= SMALLER * larger.mean:
            return "both"
        return "model" if model.mean > data.mean else "data"
    return "labels" if _is_of_labels(change, cells, way) else "unclear"


def _way(change: Change) -> float:
    """Return 1 if the feature would have to move the output more, -1 if less, 0 if neither.

    What a feature adds to the loss is about in proportion to how far it moves the output, also
    where that is harmful: below 0. But moving it more or less never turns use into harm.
    """
    before, after = change.before, change.after
    if unit_of(change.method) != "loss" or before is None or after is None:
        return {"rose": 1.0, "fell": -1.0, None: 0.0}[change.direction]
    errors = change.before_std_error or 0.0, change.after_std_error or 0.0
    is_clear = abs(before) > SURE * errors[0] and abs(after) > SURE * errors[1]
    smaller, larger = sorted((abs(before), abs(after)))
    if before * after < 0.0 and is_clear and smaller >= LEAST_REVERSED * larger:
        return 0.0
    return math.copysign(1.0, abs(after) - abs(before))


def _is_of_labels(change: Change, cells: Cells, way: float) -> bool:
    """Return whether the model is the same, and its output explains too little of the change.

    What a feature adds to the squared error grows with the square of how far it moves the output,
    and to other losses by less. Of a model that learns nothing is known: contrasts do not show
    whether its output goes the other way.
    """
    new, old, new_then, old_then = cells[:4]
    is_same = np.array_equal(new, old) and np.array_equal(new_then, old_then)
    if unit_of(change.method) != "loss" or not is_same:
        return False
    before, after = change.before, change.after
    errors = change.before_std_error, change.after_std_error
    if before is None or after is None or None in errors:
        return False
    step = abs(after - before) if way == 0.0 else abs(abs(after) - abs(before))
    largest = max(float(new.max()), float(old_then.max())) or 1.0  # its fourth power is too large
    squares, squares_then = (new / largest) ** 2, (old_then / largest) ** 2
    clear = step - SURE * math.hypot(*filter(None, errors))
    all_of_it = clear * float(squares_then[cells.begin :].mean())
    explained = cells.mean(squares - squares_then).times(way * abs(before))
    most = explained.mean + SURE * explained.error
    return explained.mean < MOST_EXPLAINED * all_of_it and most <= all_of_it

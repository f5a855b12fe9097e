"""Why an explanation changed: because the data did, or the model."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluxplain.drift.series_error import error_of_mean
from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas import Change
from fluxplain.schemas.change import Cause, CauseKind
from fluxplain.schemas.contrast import Contrast

LEAST = 20
"""Smallest count of contrasts that tell a cause."""

EARLIER = 200
"""Contrasts from before the change that tell how contrasts depend on each other, at most."""

SURE = 2.0
"""A part counts as one if it is at least so many standard errors."""

SMALLER = 0.5
"""Both are the cause if the smaller part is at least this share of the larger one."""


class Part(NamedTuple):
    """A part of a change and its standard error, infinite if unknown."""

    mean: float
    error: float

    @property
    def known_error(self) -> float | None:
        """The standard error; None if unknown."""
        return self.error if self.error < math.inf else None


class Cells(NamedTuple):
    """The numbers of contrasts in order, and of earlier ones, shape (contrasts,) each.

    ``begin`` is the place of the first contrast since the change.
    """

    new: Floats
    old: Floats
    new_then: Floats
    old_then: Floats
    begin: int

    def mean(self, numbers: Floats) -> Part:
        """Return the mean of numbers since the change."""
        earlier, later = numbers[: self.begin], numbers[self.begin :]
        return Part(float(later.mean()), error_of_mean(later, earlier))


def cause_of(change: Change, contrasts: Sequence[Contrast]) -> Cause | None:
    """Return the parts of a change; None if too few contrasts tell of it.

    They compare the model since the change with one from before it, on observations of both times.

    References
    ----------
    Three-fold decomposition of a difference of means: Oaxaca (1973), Blinder (1973).

    Examples
    --------
    The older model would give the same increments as before; the newer one gives more everywhere:

    >>> change = Change.notice(kind="drift", stream="features-0", seq=7, detail="")
    >>> contrasts = [Contrast(t, -1, 0.5 + t % 3, t % 3, 0.5 + t % 4, t % 4) for t in range(60)]
    >>> cause = cause_of(change, contrasts)
    >>> cause.kind, cause.model, cause.data, cause.interaction
    ('model', 0.5, -0.5, 0.0)
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
    cells = Cells(new, old, new_then, old_then, len(earlier))
    numbers_of = old - old_then, new_then - old_then, new - old - new_then + old_then
    data, model, interaction = map(cells.mean, numbers_of)
    return Cause(
        _kind(cells),
        data.mean,
        data.known_error,
        model.mean,
        model.known_error,
        interaction.mean,
        interaction.known_error,
    )


def _kind(cells: Cells) -> CauseKind:
    """Return the cause, from both parts with half of the interaction each."""
    new, old, new_then, old_then, begin = cells
    rise = math.copysign(1.0, (new - old_then)[begin:].mean())
    data = cells.mean((old - old_then + new - new_then) / 2.0)
    model = cells.mean((new_then - old_then + new - old) / 2.0)
    smaller, larger = sorted((rise * part.mean, part.error) for part in (data, model))
    if larger[0] < SURE * larger[1]:
        return "unclear"
    if smaller[0] >= max(SMALLER * larger[0], SURE * smaller[1]):
        return "both"
    return "model" if rise * model.mean > rise * data.mean else "data"

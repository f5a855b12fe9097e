"""Why an explanation changed: because the data did, or the model."""

import math
from collections.abc import Sequence

import numpy as np

from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas import Change
from fluxplain.schemas.change import Cause, CauseKind
from fluxplain.schemas.contrast import Contrast

LEAST = 20
"""Smallest count of contrasts that tell a cause."""

SURE = 2.0
"""A part counts as one if it is at least so many standard errors."""

SMALLER = 0.5
"""Both are the cause if the smaller part is at least this share of the larger one."""


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
    cells = np.array([(each.new, each.old, each.new_then, each.old_then) for each in told])
    new, old, new_then, old_then = cells.T
    data, model, interaction = old - old_then, new_then - old_then, new - old - new_then + old_then
    (d, d_error), (m, m_error), (i, i_error) = map(_mean, (data, model, interaction))
    shares = [_mean(part + interaction / 2.0) for part in (data, model)]
    kind = _kind(shares[0], shares[1], new - old_then)
    return Cause(kind, d, d_error, m, m_error, i, i_error)


def _mean(numbers: Floats) -> tuple[float, float]:
    """Return a mean and its standard error."""
    return float(numbers.mean()), float(numbers.std(ddof=1) / math.sqrt(len(numbers)))


def _kind(data: tuple[float, float], model: tuple[float, float], step: Floats) -> CauseKind:
    """Return the cause, from both parts with half of the interaction each."""
    rise = math.copysign(1.0, step.mean())
    smaller, larger = sorted((rise * part[0], part[1]) for part in (data, model))
    if larger[0] < SURE * larger[1]:
        return "unclear"
    if smaller[0] >= max(SMALLER * larger[0], SURE * smaller[1]):
        return "both"
    return "model" if rise * model[0] > rise * data[0] else "data"

"""The curves of a feature over time, and those of some observations alone."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fluxplain.drift.history import ThinnedHistory
from fluxplain.evaluate.encoding import Floats
from fluxplain.schemas import Explanation
from fluxplain.schemas.change import Curve
from fluxplain.schemas.record import Value

SMALLEST = 1e-12
"""Smallest weight of the later observations: a category may have none."""


class _Known(NamedTuple):
    """A curve, and how many observations are in each of its points."""

    curve: Curve
    counts: Floats


class CurveHistory:
    """The iPDP of a feature or a pair with the smoothing rate ``alpha``, at many points in time.

    With ``anchored``, the points of a numeric feature's curve stay where they are, and come and go
    at its ends; otherwise point k of one curve is point k of the next. Older curves are kept at
    coarser spacing. A smoothed curve forgets exponentially, so what it was
    before can be taken out of it.

    Examples
    --------
    >>> def explained(seq, effect):
    ...     fields = dict(stream="s-0", feature="a", method="ipdp", previous_seq=None, ts=None)
    ...     numbers = dict(alpha=0.1, updates=seq, value=0.0, std_error=None)
    ...     curve = dict(seqs=[seq], increments=[0.0], grid=[0.0, 1.0], effect=effect)
    ...     return Explanation(**fields, **numbers, **curve, seq=seq)
    >>> history, effect, weight = CurveHistory(alpha=0.1), [0.0, 0.0], 0.0
    >>> for seq in range(1, 50):
    ...     weight = 0.9 * weight + 0.1
    ...     observed = [0.0, 1.0] if seq <= 40 else [1.0, 0.0]
    ...     effect = [e + 0.1 / weight * (o - e) for e, o in zip(effect, observed)]
    ...     history.add(explained(seq, effect))
    >>> before, after = history.around(40)
    >>> [round(e, 2) for e in before.effect], [abs(round(e, 2)) for e in after.effect]
    ([0.0, 1.0], [1.0, 0.0])
    """

    def __init__(self, alpha: float, *, anchored: bool = False) -> None:
        self._alpha, self._anchored = alpha, anchored
        self._known: ThinnedHistory[_Known] = ThinnedHistory()
        self._newest: _Known | None = None
        self._updates = 0
        self._counts: dict[Value, int] = {}

    def add(self, e: Explanation) -> None:
        """Take the curve of an explanation, if it has one."""
        if not e.grid or not e.effect:
            return
        if e.updates < self._updates:  # the estimate began anew
            self._counts.clear()
            self._known = ThinnedHistory()
        errors = e.effect_std_error
        curve = Curve(e.seq, e.grid, e.effect, e.classes, e.second_grid, errors)
        self._newest = _Known(curve, self._counted(e))
        self._known.add(e.seq, self._newest)

    def _counted(self, e: Explanation) -> Floats:
        """Return how many observations are in each point; categories come and go."""
        more, self._updates = e.updates - self._updates, e.updates
        grid = e.grid or []
        if _is_numeric(grid):
            return np.full(len(grid), float(e.updates))
        for category in grid:
            # at its first appearance, it is in an unknown number of the observations since
            self._counts[category] = self._counts.get(category, 0) + more
        return np.array([self._counts[category] for category in grid], float)

    def around(self, seq: int) -> tuple[Curve | None, Curve | None]:
        """Return the curve at ``seq`` or shortly before, and that of the later observations alone.

        None where there is no such curve, or if it cannot be told: of pairs with categories, and if
        the classes have changed.
        """
        before, since, newest = self._known.at(seq), self._known.since(seq), self._newest
        if before is None or newest is None:
            return None, newest and newest.curve
        old = before if since is None or since is newest else since
        return before.curve, self._later(old, newest)

    def _later(self, old: _Known, new: _Known) -> Curve | None:
        """Return the curve of the observations that are only in the newer one."""
        one, other = old.curve, new.curve
        axes = [(one.grid, other.grid)]
        if one.second_grid is not None and other.second_grid is not None:
            axes.append((one.second_grid, other.second_grid))
        is_numeric = all(_is_numeric(a) and _is_numeric(b) for a, b in axes)
        if one.classes != other.classes or (len(axes) > 1 and not is_numeric):
            return None
        if len(axes) == 1 and is_numeric and self._anchored:
            return self._later_anchored(old, new)
        effect = np.array(one.effect, float)
        if is_numeric:
            counts: tuple[Any, Any] = old.counts[0], new.counts[0]
            grids = [self._own(np.array(a), np.array(b), *counts).tolist() for a, b in axes]
        else:
            places = {category: place for place, category in enumerate(one.grid)}
            taken = [places.get(category, -1) for category in other.grid]
            effect = effect[..., taken]
            counts = np.where(np.array(taken) < 0, 0.0, old.counts[taken]), new.counts
            grids = [other.grid]
        return replace(
            other,
            grid=grids[0],
            second_grid=grids[1] if len(grids) > 1 else None,
            effect=self._own(effect, np.array(other.effect, float), *counts).tolist(),
            effect_std_error=None,
        )

    def _later_anchored(self, old: _Known, new: _Known) -> Curve:
        """Return the curve of the later observations at the newer curve's points.

        Between and beyond the points of both curves, its distance from the newer one is a line and
        that at the end. If they have no point in common, the newer curve is later already.
        """
        one, other = np.array(old.curve.grid, float), np.array(new.curve.grid, float)
        is_common = np.isin(other, one)
        later = replace(new.curve, effect_std_error=None)
        if not is_common.any():
            return later
        before = np.array(old.curve.effect, float)[..., np.isin(one, other)]
        after = np.array(new.curve.effect, float)
        for i in np.ndindex(after.shape[:-1]):
            newer = after[i][is_common]
            moved = self._own(before[i], newer, old.counts[0], new.counts[0]) - newer
            after[i] += np.interp(other, other[is_common], moved)
        return replace(later, effect=after.tolist())

    def _own(self, old: Floats, new: Floats, n_old: Any, n_new: Any) -> Floats:
        """Return the mean of what came after the first ``n_old`` of ``n_new`` curves."""
        decay = (1.0 - self._alpha) ** (n_new - n_old)
        kept = 1.0 - (1.0 - self._alpha) ** n_old
        # the weight of the newer ones is 1 - decay
        moved: Floats = new + decay * kept * (new - old) / np.maximum(1.0 - decay, SMALLEST)
        return moved


def _is_numeric(grid: Sequence[Value]) -> bool:
    # smoothed points are floats, which categories rarely are
    return all(isinstance(value, float) for value in grid)

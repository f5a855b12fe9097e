"""The smoothed effects of several features and pairs of features."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

import numpy as np

from fluxplain.evaluate import Table, Value
from fluxplain.explain.categories import KeyedCurve, range_and_slopes
from fluxplain.explain.curve import Effect, Grid
from fluxplain.explain.method import Answers, Axis, as_grid
from fluxplain.explain.ranks import RankCurve, RankCurves
from fluxplain.explain.surface import Surface


class Curve(NamedTuple):
    """The ICE curve of observation ``seq``: the outputs at its evaluation points.

    ``axes`` are the points of a feature, or of both features of a pair.
    """

    seq: int
    axes: Axis | tuple[Axis, Axis]
    outputs: Table


class Effects:
    """A curve for each feature, and a surface for each pair.

    ``kinds`` maps a name to whether its feature, or each feature of its pair, is categorical.
    """

    def __init__(
        self, kinds: Mapping[str, tuple[bool, ...]], alpha: float, *, debias: bool = True
    ) -> None:
        self.names = tuple(kinds)
        numeric = [name for name, kind in kinds.items() if kind == (False,)]
        self._places = {name: place for place, name in enumerate(numeric)}
        self.ranks = RankCurves(len(numeric), alpha, debias=debias)
        self.categories = {
            name: KeyedCurve[Value](alpha, range_and_slopes, debias=debias)
            for name, kind in kinds.items()
            if kind == (True,)
        }
        self.surfaces = {
            name: Surface(alpha, categorical=(kind[0], kind[1]), debias=debias)
            for name, kind in kinds.items()
            if len(kind) == 2
        }

    def take(self, answers: Answers) -> dict[str, float]:
        """Take the ICE curves of one observation; return the importance of each.

        Raises ``ValueError`` or ``TypeError`` if the points or the outputs do not fit.
        """
        names, labels, blocks, points = answers
        increments: dict[str, float] = {}
        which, grids, numbers = [], [], []
        for name, block, axes in zip(names, blocks, points or (), strict=True):
            if name in self._places:
                which.append(name)
                grids.append(axes)
                numbers.append(block)
            else:
                increments[name] = self._take(name, axes, Table(labels, block))
        if which:
            places = np.array([self._places[name] for name in which], np.intp)
            moved = self.ranks.move(places, np.array(grids), Table(labels, np.concatenate(numbers)))
            increments |= dict(zip(which, moved.tolist(), strict=True))
        return increments

    def take_run(self, name: str, curves: Sequence[Curve]) -> list[float]:
        """Take the ICE curves of several observations as :meth:`take` those of one."""
        increments: list[float] = []
        for labels, group in groupby(curves, lambda curve: curve.outputs.labels):
            together = list(group)
            if name in self._places:
                places = np.full(len(together), self._places[name], np.intp)
                points = np.array([curve.axes for curve in together])
                numbers = np.concatenate([curve.outputs.numbers for curve in together])
                increments += self.ranks.move(places, points, Table(labels, numbers)).tolist()
            else:
                increments += [self._take(name, curve.axes, curve.outputs) for curve in together]
        return increments

    def _take(self, name: str, axes: Axis | tuple[Axis, Axis], outputs: Table) -> float:
        """Take the ICE curve of a categorical feature, or the surface of a pair."""
        if name in self.categories:
            return self.categories[name].update_table(as_grid(cast(Axis, axes)), outputs)
        first, second = cast(tuple[Axis, Axis], axes)
        return self.surfaces[name].update_table((as_grid(first), as_grid(second)), outputs)

    @property
    def values(self) -> dict[str, float]:
        """Name → importance of its curve or surface; 0 before the first explanation."""
        ranks = self.ranks.values.tolist()
        if len(ranks) == len(self.names):
            return dict(zip(self.names, ranks, strict=True))
        return self._each(ranks, lambda effect: effect.value)

    @property
    def variances(self) -> dict[str, float]:
        """Name → variance of one observation's contribution to the importance."""
        return self._each(self.ranks.variances.tolist(), lambda effect: effect.variance)

    @property
    def std_errors(self) -> dict[str, float]:
        """Name → standard error of the importance; infinite before the first explanation."""
        return self._each(self.ranks.std_errors, lambda effect: effect.std_error)

    def of(self, name: str) -> RankCurve | KeyedCurve[Value] | Surface:
        """Return the curve or surface of a name."""
        if name in self._places:
            return RankCurve(self.ranks, self._places[name])
        return self.categories[name] if name in self.categories else self.surfaces[name]

    def curve(self, name: str) -> tuple[Grid, Effect]:
        """Return the smoothed points and effects of a feature; both empty before the first."""
        curve = cast(RankCurve | KeyedCurve[Value], self.of(name))
        return list(curve.grid), curve.effect

    def _each(
        self, ranks: list[float], of: Callable[[RankCurve | KeyedCurve[Any]], float]
    ) -> dict[str, float]:
        others: dict[str, RankCurve | KeyedCurve[Any]] = {
            **self.categories,
            **{name: surface.curve for name, surface in self.surfaces.items()},
        }
        return {
            name: ranks[self._places[name]] if name in self._places else of(others[name])
            for name in self.names
        }

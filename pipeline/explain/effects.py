"""The smoothed effects of several features and pairs of features."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import curve_kernels
from fluxplain.explain.categories import KeyedCurve
from fluxplain.explain.curve import Grid, shown_effect, shown_labels
from fluxplain.explain.dependence import DEFAULT_REACH
from fluxplain.explain.method import Answers, Axis, as_grid, labels_of
from fluxplain.explain.ranks import RankCurves
from fluxplain.explain.smoothing import Estimated, Estimates
from fluxplain.explain.surface import Surface
from fluxplain.explain.trends import Trends


class Curve(NamedTuple):
    """The ICE curve of observation ``seq``: the outputs at its evaluation points.

    ``axes`` are the points of a feature, or of both features of a pair.
    """

    seq: int
    axes: Axis | tuple[Axis, Axis]
    outputs: Table


class Smoothed(NamedTuple):
    """The estimates of one feature or pair.

    ``n`` counts the updates, ``axes`` are the smoothed points or categories of each feature, and
    ``effect`` is an :data:`~fluxplain.explain.curve.Effect`, of a pair a
    :data:`~fluxplain.explain.surface.SurfaceEffect`. ``effect_errors`` are the standard errors of a
    feature's effect, in its form, infinite while too little is known; None for a pair.
    """

    n: int
    value: float
    std_error: float
    axes: tuple[Grid, ...]
    effect: Any
    effect_errors: Any


def ice_importances(
    kinds: Mapping[str, tuple[bool, ...]],
    answers: Answers,
    known: Mapping[str, Labels],
    own: Labels,
) -> dict[str, float]:
    """Return the importance of each ICE curve, and surface, of one observation.

    ``kinds`` as of :class:`Effects`; ``known`` and ``own`` as of
    :func:`~fluxplain.explain.method.labels_of`. It is not finite if the outputs are not, or too
    large.
    """
    given = answers.labels
    usual = np.array([given.index(each) for each in shown_labels(given)], np.intp)
    found: dict[str, float] = {}
    for place, (name, block) in enumerate(zip(answers.names, answers.blocks, strict=True)):
        outputs, columns = block, usual
        if given not in {(None,), known[name]}:
            shown = tuple(shown_labels(labels_of(known[name], own, [(answers, place)])))
            outputs = aligned(Table(given, np.asarray(block)), shown)
            columns = np.arange(len(shown))
        found[name] = curve_kernels.ice_importance(outputs, columns, kinds[name] == (True,))
    return found


Contribution = tuple[float, float]
"""The importance of one ICE curve, in units of the output, and its trend; without trends 0."""


class Effects(Estimates):
    """A curve for each feature, and a surface for each pair.

    ``kinds`` maps a name to whether its feature, or each feature of its pair, is categorical. With
    ``anchored``, the curves of numeric features have the points of a lattice; see
    :class:`~fluxplain.explain.ranks.RankCurves`. The ``trends`` may be those of earlier effects of
    the same features.
    """

    def __init__(
        self,
        kinds: Mapping[str, tuple[bool, ...]],
        alpha: float,
        *,
        debias: bool = True,
        reach: int = DEFAULT_REACH,
        anchored: bool = False,
        trends: Trends | None = None,
    ) -> None:
        numeric = [name for name, kind in kinds.items() if kind == (False,)]
        self._trends = {} if trends is None else trends.categorical
        self.ranks = RankCurves(
            len(numeric),
            alpha,
            debias=debias,
            reach=reach,
            anchored=anchored,
            trends=None if trends is None else trends.numeric,
        )
        self.surfaces = {
            name: Surface(alpha, categorical=kind, debias=debias, reach=reach)
            for name, kind in kinds.items()
            if name not in numeric
        }
        self._names = tuple(kinds)
        self._places = {name: place for place, name in enumerate(numeric)}
        self._all = np.arange(len(numeric))

    def take(self, answers: Answers) -> dict[str, Contribution]:
        """Take the ICE curves of one observation; return the importance and trend of each.

        Raises ``ValueError`` or ``TypeError`` if the points or the outputs do not fit.
        """
        names, labels, blocks, points = answers
        if not self.surfaces and isinstance(blocks, np.ndarray) and tuple(names) == self._names:
            size = blocks.shape[0] * blocks.shape[1]
            outputs = Table(labels, blocks.reshape(size, len(labels)))
            moved = self.ranks.move(self._all, np.asarray(points), outputs)
            return dict(zip(names, _contributions(moved), strict=True))
        found: dict[str, Contribution] = {}
        which, grids, numbers = [], [], []
        for name, block, axes in zip(names, blocks, () if points is None else points, strict=True):
            if name in self._places:
                which.append(name)
                grids.append(axes)
                numbers.append(block)
            else:
                found[name] = self._take(name, axes, Table(labels, block))
        if which:
            places = np.array([self._places[name] for name in which], np.intp)
            moved = self.ranks.move(places, np.array(grids), Table(labels, np.concatenate(numbers)))
            found |= dict(zip(which, _contributions(moved), strict=True))
        return found

    def take_run(self, name: str, curves: Sequence[Curve]) -> list[Contribution]:
        """Take the ICE curves of several observations as :meth:`take` those of one."""
        if name not in self._places:
            return [self._take(name, curve.axes, curve.outputs) for curve in curves]
        found: list[Contribution] = []
        for labels, group in groupby(curves, lambda curve: curve.outputs.labels):
            together = list(group)
            places = np.array([self._places[name]] * len(together))
            points = np.array([curve.axes for curve in together])
            numbers = together[0].outputs.numbers
            if len(together) > 1:
                numbers = np.concatenate([curve.outputs.numbers for curve in together])
            found += _contributions(self.ranks.move(places, points, Table(labels, numbers)))
        return found

    def _take(self, name: str, axes: Axis | tuple[Axis, Axis], outputs: Table) -> Contribution:
        """Take the ICE curve of a categorical feature, or the surface of a pair."""
        several = axes if isinstance(axes, tuple) else (axes,)
        grids = [as_grid(axis) for axis in several]
        importance = self.surfaces[name].update_table(grids, outputs)
        trends = self._trends.get(name)
        return importance, 0.0 if trends is None else trends.take(grids[0], outputs)

    def _numbers(self, of: Estimated) -> dict[str, float]:
        """Return the values, variances or standard errors by name."""
        ranks = getattr(self.ranks, of).tolist()
        if len(ranks) == len(self._names):
            return dict(zip(self._names, ranks, strict=True))
        return {
            name: ranks[self._places[name]]
            if name in self._places
            else getattr(self.surfaces[name].curves, of).item()
            for name in self._names
        }

    def smoothed(self, name: str) -> Smoothed:
        """Return the estimates of a name."""
        place = self._places.get(name, 0)
        if name in self._places:
            curves: RankCurves | KeyedCurve[Any] = self.ranks
            axes: tuple[Grid, ...] = (self.ranks.grid(place),)
        else:
            curves, axes = self.surfaces[name].curves, self.surfaces[name].axes
        labels, effects = curves.effects(place)
        shape = [len(axis) for axis in axes]
        effect, errors = shown_effect(labels, effects, shape), None
        if len(axes) == 1:
            errors = shown_effect(labels, curves.effect_errors(place), shape)
        n, value = curves.n.item(place), curves.values.item(place)
        return Smoothed(n, value, curves.std_error(place), axes, effect, errors)


def _contributions(moved: Floats) -> list[Contribution]:
    """Return those of some ICE curves from an array of the shape (1 or 2, curves)."""
    importances, *trends = moved.tolist()
    return [*zip(importances, trends[0] if trends else [0.0] * len(importances), strict=True)]

"""Partial dependence of a model's output on features, over a batch, with its ICE curves.

Friedman (2001), "Greedy Function Approximation: A Gradient Boosting Machine"; Goldstein, Kapelner,
Bleich, Pitkin (2015), "Peeking Inside the Black Box", for the ICE curves.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from fluxplain.evaluate import (
    Encoding,
    Evaluator,
    Inputs,
    Observation,
    Value,
    as_evaluator,
    as_observation,
)
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import curve_kernels
from fluxplain.explain.curve import Effect, Grid, shown_effect, shown_labels
from fluxplain.explain.explainers import check_observation
from fluxplain.explain.grids import GridKind, GridSettings, check_pairs
from fluxplain.explain.method import as_grid
from fluxplain.explain.players import check_features
from fluxplain.explain.point_storage import PointStorage, seeded
from fluxplain.explain.surface import Axes, SurfaceEffect


@dataclass(frozen=True, slots=True)
class PartialDependence:
    """The effect of one feature on the model's output.

    Attributes
    ----------
    grid
        The evaluation points: numbers in increasing order, or categories.
    effect
        The mean output at each point; for more than two classes, one curve per class.
    ice
        The curve of each observation, in their order; ``effect`` is their mean.
    importance
        Standard deviation of the effect; of a categorical feature a quarter of its range. The
        mean over the classes if there are more than two.
    """

    grid: Grid
    effect: Effect
    ice: list[Effect]
    importance: float


@dataclass(frozen=True, slots=True)
class PairDependence:
    """The effect of two features; its importance is always the effect's standard deviation.

    Attributes
    ----------
    axes
        The evaluation points of the first and of the second feature.
    effect, ice, importance
        As in :class:`PartialDependence`, with a row for each point of the first feature.
    """

    axes: Axes
    effect: SurfaceEffect
    ice: list[SurfaceEffect]
    importance: float


def batch_pdp(
    model: object,
    xs: Sequence[Observation],
    features: Sequence[str],
    *,
    grid: GridKind = "quantile-range",
    grid_size: int = 10,
    categorical: Collection[str] | None = None,
    grids: Mapping[str, Grid] | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, PartialDependence]:
    """Return the partial dependence curve of each feature.

    A curve shows the predicted value (regression), the probability of the positive class (binary:
    the larger of the two labels), or one curve per class (more than two). The model is evaluated
    N·features·grid_size times, for N observations.

    Parameters
    ----------
    model, xs, features, evaluator
        See :mod:`fluxplain.baselines`, also for errors.
    grid
        Evaluation points of numeric features: ``"quantile-range"``, equidistant from the 5 % to the
        95 % quantile of the batch; ``"range"``, equidistant from its smallest value to its largest;
        ``"quantiles"``, its quantiles, of equidistant levels from 5 % to 95 %.
    grid_size
        Points of a numeric feature's grid, at least 2.
    categorical
        Which of the features are categorical: their grid is all of their values. By default those
        whose first value is text or a boolean.
    grids
        Feature → evaluation points to use instead, such as those of an iPDP.

    Returns
    -------
    Feature → its curve.

    References
    ----------
    iPDP (Muschalik et al. 2023), Eq. 1; Section 3.2 for the grid. Importance after Greenwell,
    Boehmke, McCarthy (2018), "A Simple and Effective Model-Based Variable Importance Measure".

    Examples
    --------
    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"] + x["b"]
    >>> xs = [{"a": a, "b": b} for a in (0.0, 1.0, 2.0) for b in (1.0, 3.0)]
    >>> pdp = batch_pdp(Double(), xs, ["a"], grid_size=3)["a"]
    >>> pdp.grid, pdp.effect, pdp.ice[0]
    ([0.0, 1.0, 2.0], [2.0, 4.0, 6.0], [1.0, 3.0, 5.0])
    >>> pdp.importance
    2.0
    """
    names = check_features(features)
    kinds, chosen = _points(xs, names, grid, grid_size, categorical, grids or {})
    replacements = [{feature: point} for feature, points in chosen.items() for point in points]
    labels, numbers = _asked(model, xs, replacements, evaluator)
    curves, begin = {}, 0
    for feature, points in chosen.items():
        end = begin + len(points)
        effect, ice, importance = _shown(
            labels, numbers[:, begin:end], (points,), by_range=kinds[feature]
        )
        curves[feature] = PartialDependence(points, effect, ice, importance)
        begin = end
    return curves


def batch_pair_pdp(
    model: object,
    xs: Sequence[Observation],
    pairs: Sequence[tuple[str, str]],
    *,
    grid: GridKind = "quantile-range",
    grid_size: int = 10,
    categorical: Collection[str] | None = None,
    grids: Mapping[str, Grid] | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, PairDependence]:
    """Return the partial dependence of each pair of features.

    The same as :func:`batch_pdp`, with a surface instead of a curve. The model is evaluated
    N·pairs·grid_size² times, for N observations.

    Parameters
    ----------
    model, xs, grid, grid_size, categorical, grids, evaluator
        See :func:`batch_pdp`.
    pairs
        The pairs, two different features each.

    Returns
    -------
    ``"first|second"`` → its surface.

    References
    ----------
    iPDP (Muschalik et al. 2023), Eq. 1, with a set S of two features.

    Examples
    --------
    >>> class Product:
    ...     def predict_one(self, x):
    ...         return x["a"] * x["b"]
    >>> xs = [{"a": a, "b": b} for a in (0.0, 1.0) for b in (1.0, 3.0)]
    >>> pdp = batch_pair_pdp(Product(), xs, [("a", "b")], grid_size=2, grid="range")["a|b"]
    >>> pdp.axes, pdp.effect
    (([0.0, 1.0], [1.0, 3.0]), [[0.0, 0.0], [1.0, 3.0]])
    """
    named = check_pairs(pairs)
    members = [feature for pair in named.values() for feature in pair]
    _, chosen = _points(xs, members, grid, grid_size, categorical, grids or {})
    surfaces = {}
    for name, pair in named.items():
        axes = (chosen[pair[0]], chosen[pair[1]])
        rows = [dict(zip(pair, point, strict=True)) for point in product(*axes)]
        labels, numbers = _asked(model, xs, rows, evaluator)
        surfaces[name] = PairDependence(axes, *_shown(labels, numbers, axes, by_range=False))
    return surfaces


def _points(  # noqa: PLR0917  the arguments of both
    xs: Sequence[Observation],
    features: Sequence[str],
    grid: GridKind,
    size: int,
    categorical: Collection[str] | None,
    grids: Mapping[str, Grid],
) -> tuple[dict[str, bool], dict[str, Grid]]:
    """Return whether each feature is categorical, and its evaluation points."""
    if not xs:
        raise ValueError("xs is empty, but at least 1 observation is needed")
    encoding = Encoding()
    xs = [as_observation(x) for x in xs]
    observed = [encoding.observe(x) for x in xs]
    for each in observed:
        check_observation(each, tuple(features))
    kinds = {
        f: isinstance(xs[0][f], bool | str) if categorical is None else f in categorical
        for f in features
    }
    names = [f for f in kinds if f not in grids]
    settings = GridSettings(kind=grid, size=size, storage_size=len(xs), warm_up=1)
    # it holds all values, so it draws no random numbers
    own = [f for f in names if kinds[f]]
    storage = PointStorage(names, settings, categorical=own, rng_of=seeded(0))
    for each in observed:
        storage.store(each)
    found = storage.points(encoding)
    axes = {**grids, **dict(zip(found.names, map(as_grid, found.axes), strict=True))}
    return kinds, {f: [*axes[f]] for f in kinds}


def _asked(
    model: object,
    xs: Sequence[Observation],
    replacements: Sequence[Mapping[str, Value]],
    evaluator: Evaluator | str,
) -> tuple[Labels, Floats]:
    """Return all classes, and the outputs, shape (observations, points, classes); 0 if missing."""
    ask, encoding = as_evaluator(model, evaluator), Encoding()
    tables = [ask(Inputs.replacing(encoding.observe(x), replacements)) for x in xs]
    labels = tuple(dict.fromkeys(label for table in tables for label in table.labels))
    return labels, np.array([aligned(table, labels) for table in tables])


def _shown(
    labels: Labels, numbers: Floats, axes: Sequence[Grid], *, by_range: bool
) -> tuple[Any, list[Any], float]:
    """Return the shown effect, those of each observation, and the importance."""
    shown, shape = shown_labels(labels), [len(axis) for axis in axes]
    ices = numbers[:, :, [labels.index(label) for label in shown]].transpose(0, 2, 1)
    effect = np.ascontiguousarray(ices.mean(axis=0))
    importances = [
        curve_kernels.quarter_range(c) if by_range else curve_kernels.deviation(c) for c in effect
    ]
    return (
        shown_effect(shown, effect, shape),
        [shown_effect(shown, ice, shape) for ice in ices],
        float(curve_kernels.mean_of(np.array(importances))),
    )

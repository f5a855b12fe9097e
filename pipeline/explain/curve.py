"""The smoothed curve of one feature, and its importance."""

import math
from collections.abc import Mapping, Sequence

from pipeline.evaluate import Label, Output, Value
from pipeline.explain.outputs import label_order, positive_class
from pipeline.explain.smoothing import ExponentialMean, OutputMean, check_alpha

Grid = list[Value]
"""Numbers in increasing order, or categories."""

Effect = list[float] | dict[Label, list[float]]
"""One number a grid point; for more than two classes, one such curve a class."""

Columns = Mapping[Label | None, list[float]]
"""Class → one number a grid point; None for the number of a regressor."""

MIXED = "the model gave a number once and probabilities another time"

LARGEST = 1e153
"""Outputs that are larger have no finite square."""

ABSENT_CATEGORIES = 100
"""Categories out of the storage whose means are kept: a rare one goes on from there when it comes
back, instead of jumping to the value of a single record."""


class PDPCurve:
    """The smoothed curve of one feature.

    Parameters
    ----------
    alpha
        Smoothing of the effects and of the numeric grid points, in (0, 1].
    categorical
        Whether each category has a mean of its own, shown while the category is in the storage;
        else grid points keep their rank and move.

    Attributes
    ----------
    n
        Updates so far.
    value
        Importance of the curve: the standard deviation of the effects over the grid, or a quarter
        of their range over the categories; the mean over the curves if there are more than two
        classes.

    References
    ----------
    iPDP, Algorithm 1, lines 5 to 10; importance after Greenwell, Boehmke, McCarthy (2018), "A
    Simple and Effective Model-Based Variable Importance Measure".
    """

    def __init__(self, alpha: float, *, categorical: bool, debias: bool = True) -> None:
        self.alpha = check_alpha(alpha)
        self.categorical = categorical
        self.debias = debias
        self.n = 0
        self.value = 0.0
        self._effects: _Categories | _Ranks
        self._effects = (_Categories if categorical else _Ranks)(alpha, debias=debias)
        self._labels: tuple[Label | None, ...] = ()
        self._shown: Sequence[Label | None] = ()  # whose curves are shown
        self._is_number: bool | None = None  # what the outputs are; None before the first
        self._projections = ExponentialMean(alpha)

    def update(self, points: Grid, outputs: Sequence[Output]) -> float:
        """Take the ICE curve of one observation and return its importance, the increment.

        Raises
        ------
        ValueError, TypeError
            If the points or the outputs do not fit; then nothing has changed.
        """
        self._check(points, len(outputs))
        kinds = {isinstance(output, dict) for output in outputs}
        if len(kinds) > 1:
            raise TypeError(MIXED)
        labels = self._labels_with(outputs)
        return self._move(points, _columns(outputs, labels), labels)

    def update_columns(self, points: Grid, columns: Columns) -> float:
        """Take an ICE curve that is given by class, as :meth:`update` does.

        Parameters
        ----------
        points
            The evaluation points.
        columns
            Class → its probability at each point; or None → the number at each point.
        """
        self._check(points, *map(len, columns.values()))
        new = [label for label in columns if label not in self._labels]
        labels = (*self._labels, *new) if new else self._labels
        absent = [label for label in labels if label not in columns]
        zeros = [0.0] * len(points)
        return self._move(points, {**columns, **dict.fromkeys(absent, zeros)}, labels)

    def _move(self, points: Grid, ice: Columns, labels: tuple[Label | None, ...]) -> float:
        is_number = None in ice
        if self._is_number is not None and self._is_number != is_number:
            raise TypeError(MIXED)
        for column in ice.values():
            # an infinite square would spoil the variance for ever
            if not (math.isfinite(sum(column)) and -LARGEST < min(column) <= max(column) < LARGEST):
                large = max(column, key=abs)
                raise ValueError(f"an output is not finite or too large to square: {large}")
        if labels != self._labels:
            self._labels, self._shown = labels, _shown(labels)
        self._is_number = is_number
        self._effects.update(points, ice)
        self.n += 1
        effects = self._effects.columns(labels)
        increments, projections, values = [], [], []
        for label in self._shown:
            value, slopes = _importance_and_slopes(effects[label], self.categorical)
            values.append(value)
            projections.append(sum([s * v for s, v in zip(slopes, ice[label], strict=True)]))
            increments.append(curve_importance(ice[label], categorical=self.categorical))
        self.value = _mean(values)
        self._projections.update(_mean(projections))
        return _mean(increments)

    @property
    def grid(self) -> Grid:
        """The smoothed grid points, or the categories."""
        return self._effects.grid()

    @property
    def effect(self) -> Effect:
        """The smoothed effect: one curve, or one a class if there are more than two."""
        effects, shown = self._effects.columns(self._labels), self._shown
        if len(shown) > 1:
            return {label: list(effects[label]) for label in shown if label is not None}
        return list(effects[shown[0]]) if shown else [0.0] * len(self.grid)

    @property
    def variance(self) -> float:
        """Variance of what one observation contributes to :attr:`value`, to first order."""
        return self._projections.variance

    @property
    def std_error(self) -> float:
        """Standard error of :attr:`value`, by the delta method; infinite before an update."""
        return self._projections.std_error

    def _check(self, points: Grid, *sizes: int) -> None:
        size = len(set(points)) if self.categorical else self._effects.size() or len(points)
        for n in (*sizes, len(points)):
            if n != size:
                raise ValueError(f"{n} outputs do not fit a curve of {size} points")

    def _labels_with(self, outputs: Sequence[Output]) -> tuple[Label | None, ...]:
        """Return what is known, and what these outputs tell of, in the order in which it came."""
        if not isinstance(outputs[0], dict):
            return (None,)
        known = dict.fromkeys(self._labels)
        dicts = [output for output in outputs if isinstance(output, dict)]
        if all(map(known.keys().__ge__, map(dict.keys, dicts))):
            return self._labels
        new = [label for output in dicts for label in output if label not in known]
        return (*self._labels, *dict.fromkeys(new))


class _Ranks:
    """The effects at numeric grid points, which keep their rank and move."""

    def __init__(self, alpha: float, *, debias: bool) -> None:
        self._alpha = alpha
        self._debias = debias
        self._weight = 0.0  # Σ α(1-α)^(n-s), of all points alike
        self._grid: list[float] = []
        self._columns: dict[Label | None, list[float]] = {}

    def size(self) -> int:
        return len(self._grid)

    def grid(self) -> Grid:
        return list(self._grid)

    def columns(self, labels: Sequence[Label | None]) -> Columns:
        return {label: self._columns[label] for label in labels}

    def update(self, points: Grid, ice: Columns) -> None:
        self._weight = (1.0 - self._alpha) * self._weight + self._alpha
        w = self._alpha / self._weight if self._debias else self._alpha
        zeros = [0.0] * len(points)
        grid = [float(point) for point in points]
        self._grid = [m + w * (v - m) for m, v in zip(self._grid or zeros, grid, strict=True)]
        for label, column in ice.items():
            means = self._columns.get(label, zeros)
            self._columns[label] = [m + w * (v - m) for m, v in zip(means, column, strict=True)]


class _Categories:
    """The effects of categories, each with a mean of its own."""

    def __init__(self, alpha: float, *, debias: bool) -> None:
        self._alpha = alpha
        self._debias = debias
        self._keys: list[Value] = []
        self._effects: dict[Value, OutputMean] = {}  # the longest absent first

    def size(self) -> int:
        return len(self._keys)

    def grid(self) -> Grid:
        return list(self._keys)

    def columns(self, labels: Sequence[Label | None]) -> Columns:
        return _columns([self._effects[key].value for key in self._keys], labels)

    def update(self, points: Grid, ice: Columns) -> None:
        self._keys = list(points)
        for i, key in enumerate(self._keys):
            mean = self._effects.pop(key, None) or OutputMean(self._alpha, debias=self._debias)
            shares = {label: column[i] for label, column in ice.items() if label is not None}
            mean.update(ice[None][i] if None in ice else shares)
            self._effects[key] = mean
        while len(self._effects) > len(self._keys) + ABSENT_CATEGORIES:
            del self._effects[next(iter(self._effects))]


def curve_importance(curve: Sequence[float], *, categorical: bool) -> float:
    """Return the importance of a curve: its standard deviation, or range / 4 if categorical.

    References
    ----------
    Greenwell, Boehmke, McCarthy (2018), Section 2.

    Examples
    --------
    >>> curve_importance([0.0, 1.0, 2.0], categorical=False)
    1.0
    >>> curve_importance([0.0, 1.0, 2.0], categorical=True)
    0.5
    """
    return _importance_and_slopes(curve, categorical)[0]


def _importance_and_slopes(curve: Sequence[float], categorical: bool) -> tuple[float, list[float]]:
    """Return :func:`curve_importance` and its derivative by each point, 0 where it is flat."""
    slopes = [0.0] * len(curve)
    if len(curve) < 2:
        return 0.0, slopes
    if categorical:
        high, low = max(curve), min(curve)
        if high > low:
            slopes[curve.index(high)] = 0.25
            slopes[curve.index(low)] = -0.25
        return (high - low) / 4.0, slopes
    # around the first, so that equal values have no deviation, exactly
    first = curve[0]
    shifted = [v - first for v in curve]
    mean = sum(shifted) / len(curve)
    deviations = [v - mean for v in shifted]
    importance = math.sqrt(sum([v * v for v in deviations]) / (len(curve) - 1))
    if importance == 0.0:
        return 0.0, slopes
    scale = importance * (len(curve) - 1)
    return importance, [v / scale for v in deviations]


def _mean(values: Sequence[float]) -> float:
    # around the first, so that the mean of equal values is that value, exactly
    if not values:
        return 0.0
    first = values[0]
    return first + sum([v - first for v in values]) / len(values)


def _shown(labels: Sequence[Label | None]) -> Sequence[Label | None]:
    """Return whose curves are shown: the number, the positive class, or each class."""
    classes = sorted((label for label in labels if label is not None), key=label_order)
    positive = positive_class(classes)
    return labels if not classes else classes if positive is None else (positive,)


def _columns(outputs: Sequence[Output], labels: Sequence[Label | None]) -> Columns:
    """Return the outputs by class; a class that one lacks counts as 0."""
    if labels == (None,):
        return {None: [float(o) for o in outputs if not isinstance(o, dict)]}
    dicts = [o for o in outputs if isinstance(o, dict)]
    return {c: [d.get(c, 0.0) for d in dicts] for c in labels if c is not None}

"""Smoothed curves of categories, each of which has a mean of its own."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from pipeline.evaluate import Label, Value
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.curve import (
    Effect,
    Grid,
    PDPCurve,
    check_answers,
    check_size,
    shown_effect,
    shown_labels,
    table_of,
)
from pipeline.explain.smoothing import ExponentialMean, OutputMean

ABSENT_CATEGORIES = 100
"""Categories out of the storage whose means are kept: a rare one goes on from there when it comes
back, instead of jumping to the value of a single record."""


Importance = Callable[[Sequence[float]], tuple[float, list[float]]]
"""Gives the importance of a curve, and its derivative by each point."""

K = TypeVar("K", bound=Hashable)


class KeyedCurve(Generic[K]):
    """Effects at keys that come and go, each with a mean of its own.

    Parameters
    ----------
    alpha
        Smoothing of the effects, in (0, 1].
    importance
        Of the effects.
    debias
        Divide by the sum of the smoothing's weights.
    """

    def __init__(self, alpha: float, importance: Importance, *, debias: bool = True) -> None:
        self.alpha = alpha
        self.debias = debias
        self.keys: list[K] = []
        self._importance = importance
        self._value = 0.0
        self._projections = ExponentialMean(alpha)
        self._labels: tuple[Label | None, ...] = ()
        self._effects: dict[K, OutputMean] = {}  # the longest absent first

    def update_keys(self, keys: Sequence[K], answers: Table, *, width: int = 1) -> float:
        """Take the effects on one observation, as :meth:`PDPCurve.update_table` does.

        A category has at most ``width`` of the keys.
        """
        check_size(len(set(keys)), len(answers.numbers), len(keys))
        check_answers(self._labels, answers)
        self._labels = tuple(dict.fromkeys((*self._labels, *answers.labels)))
        ice = dict.fromkeys(self._labels, [0.0] * len(keys))
        ice.update(zip(answers.labels, answers.numbers.T.tolist(), strict=True))
        self._move(keys, ice, len(keys) + ABSENT_CATEGORIES * width)
        increments, projections, values = [], [], []
        for label, effect in self._shown().items():
            value, slopes = self._importance(effect)
            values.append(value)
            projections.append(sum([s * v for s, v in zip(slopes, ice[label], strict=True)]))
            increments.append(self._importance(ice[label])[0])
        self._value = _mean(values)
        self._projections.update(_mean(projections))
        return _mean(increments)

    @property
    def n(self) -> int:
        """Updates so far."""
        return self._projections.n

    @property
    def value(self) -> float:
        """Importance of the curve."""
        return self._value

    @property
    def variance(self) -> float:
        """Variance of what one observation contributes to the importance."""
        return self._projections.variance

    @property
    def std_error(self) -> float:
        """Standard error of the importance."""
        return self._projections.std_error

    @property
    def effect(self) -> Effect:
        """The smoothed effect at the keys."""
        return shown_effect(self._shown(), len(self.keys))

    def _move(self, keys: Sequence[K], ice: Mapping[Label | None, list[float]], most: int) -> None:
        self.keys = list(keys)
        for i, key in enumerate(self.keys):
            mean = self._effects.pop(key, None) or OutputMean(self.alpha, debias=self.debias)
            shares = {label: column[i] for label, column in ice.items() if label is not None}
            mean.update(ice[None][i] if None in ice else shares)
            self._effects[key] = mean
        while len(self._effects) > most:
            del self._effects[next(iter(self._effects))]

    def _shown(self) -> dict[Label | None, list[float]]:
        """Return the shown effects, by class."""
        means = table_of([self._effects[key].value for key in self.keys])
        effects = dict(zip(means.labels, means.numbers.T.tolist(), strict=True))
        return {label: effects[label] for label in shown_labels(self._labels)}


class CategoryCurve(KeyedCurve[Value], PDPCurve):
    """The effects of the categories that are in the storage.

    Its importance is a quarter of the effects' range.

    Parameters
    ----------
    alpha, debias
        See :class:`KeyedCurve`.
    """

    def __init__(self, alpha: float, *, debias: bool = True) -> None:
        super().__init__(alpha, range_and_slopes, debias=debias)

    def update_table(self, points: Grid, answers: Table) -> float:
        """Take the ICE curve of one observation; see :class:`PDPCurve`."""
        return self.update_keys(points, answers)

    @property
    def grid(self) -> Grid:
        """The categories."""
        return list(self.keys)


def _mean(values: Sequence[float]) -> float:
    return float(kernels.mean_of(np.array(values)))


def range_and_slopes(curve: Sequence[float]) -> tuple[float, list[float]]:
    """Return a quarter of the range of a curve, and its derivative by each point.

    References
    ----------
    Greenwell, Boehmke, McCarthy (2018), Section 2.

    Examples
    --------
    >>> range_and_slopes([1.0, 0.0, 2.0])
    (0.5, [0.0, -0.25, 0.25])
    """
    slopes = [0.0] * len(curve)
    high, low = max(curve), min(curve)
    if high > low:
        slopes[curve.index(high)] = 0.25
        slopes[curve.index(low)] = -0.25
    return (high - low) / 4.0, slopes

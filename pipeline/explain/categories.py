"""Smoothed curves of categories: one mean per category."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from fluxplain.evaluate import Table, Value
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import kernels
from fluxplain.explain.curve import (
    Effect,
    Grid,
    PDPCurve,
    check_answers,
    check_size,
    shown_effect,
    shown_labels,
)
from fluxplain.explain.smoothing import ExponentialMeans

ABSENT_CATEGORIES = 100
"""Largest number of categories outside the storage whose means are kept: a rare one continues from
its mean when it returns, instead of jumping to the value of a single record."""


Importance = Callable[[Floats], tuple[float, Floats]]
"""Returns the importance of a curve, and its derivative by each point."""

K = TypeVar("K", bound=Hashable)


class KeyedCurve(Generic[K]):
    """Effects at keys that come and go, with one mean per key."""

    def __init__(self, alpha: float, importance: Importance, *, debias: bool = True) -> None:
        self.alpha = alpha
        self.debias = debias
        self.keys: list[K] = []
        self._importance = importance
        self._value = 0.0
        self._projections = ExponentialMeans(1, [alpha])
        self._labels: Labels = ()
        self._slots: dict[K, int] = {}  # the longest absent first
        self._free: list[int] = []
        self._rows: Places = np.zeros(0, np.intp)  # the slots of the keys
        self._effects: Floats = np.zeros((0, 0))  # shape (slots, labels)
        self._weights: Floats = np.zeros(0)

    def update_keys(self, keys: Sequence[K], answers: Table, *, width: int = 1) -> float:
        """Take one observation's effects; see :meth:`PDPCurve.update_table`.

        A category has at most ``width`` keys.
        """
        check_size(len(set(keys)), len(answers.numbers), len(keys))
        check_answers(self._labels, answers)
        labels = tuple(dict.fromkeys((*self._labels, *answers.labels)))
        if labels != self._labels:
            self._effects = np.pad(self._effects, ((0, 0), (0, len(labels) - len(self._labels))))
            self._labels = labels
        ice = aligned(answers, labels)
        self._move(keys, ice, len(keys) + ABSENT_CATEGORIES * width)
        increments, projections, values = [], [], []
        for column, effect in self._shown():
            value, slopes = self._importance(effect)
            own = ice[:, column]
            values.append(value)
            projections.append(float(slopes @ own))
            increments.append(self._importance(own)[0])
        self._value = _mean(values)
        self._projections.update(np.array([[_mean(projections)]]))
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
        return self._projections.variances.item()

    @property
    def std_error(self) -> float:
        """Standard error of the importance."""
        return self._projections.std_errors.item()

    @property
    def effect(self) -> Effect:
        """The smoothed effect at the keys."""
        shown = {self._labels[column]: effect.tolist() for column, effect in self._shown()}
        return shown_effect(shown, len(self.keys))

    def _move(self, keys: Sequence[K], ice: Floats, most: int) -> None:
        self.keys = list(keys)
        self._rows = rows = np.array([self._slot(key) for key in self.keys], np.intp)
        self._weights[rows] = (1.0 - self.alpha) * self._weights[rows] + self.alpha
        w = self.alpha / self._weights[rows, None] if self.debias else self.alpha
        self._effects[rows] += w * (ice - self._effects[rows])
        while len(self._slots) > most:
            self._free.append(self._slots.pop(next(iter(self._slots))))

    def _slot(self, key: K) -> int:
        """Return the slot of a key, and mark it as the most recent one."""
        slot = self._slots.pop(key, None)
        if slot is None:
            if not self._free:
                n = len(self._weights)
                self._free = list(range(n, 2 * n + 8))
                self._weights = np.pad(self._weights, (0, n + 8))
                self._effects = np.pad(self._effects, ((0, n + 8), (0, 0)))
            slot = self._free.pop()
            self._weights[slot], self._effects[slot] = 0.0, 0.0
        self._slots[key] = slot
        return slot

    def _shown(self) -> list[tuple[int, Floats]]:
        """Return the columns of the shown classes, and their effects."""
        effects = self._effects[self._rows]
        columns = [self._labels.index(label) for label in shown_labels(self._labels)]
        return [(column, effects[:, column]) for column in columns]


class CategoryCurve(KeyedCurve[Value], PDPCurve):
    """The effects of the stored categories; the importance is a quarter of their range."""

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


def range_and_slopes(curve: Floats) -> tuple[float, Floats]:
    """Return a quarter of the range of a curve, and its derivative by each point.

    References
    ----------
    Greenwell, Boehmke, McCarthy (2018), Section 2.

    Examples
    --------
    >>> value, slopes = range_and_slopes(np.array([1.0, 0.0, 2.0]))
    >>> value, slopes.tolist()
    (0.5, [0.0, -0.25, 0.25])
    """
    slopes = np.zeros(len(curve))
    high, low = curve.argmax(), curve.argmin()
    if curve[high] > curve[low]:
        slopes[high], slopes[low] = 0.25, -0.25
    return float(curve[high] - curve[low]) / 4.0, slopes

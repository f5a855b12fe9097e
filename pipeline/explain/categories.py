"""Smoothed effects at keys that come and go: categories, and points of a surface with any."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import kernels
from fluxplain.explain.curve import Effect, check_answers, check_size, shown_effect, shown_labels
from fluxplain.explain.smoothing import ExponentialMeans

ABSENT_CATEGORIES = 100
"""Largest number of categories outside the storage whose means are kept: a rare one continues from
its mean when it returns, instead of jumping to the value of a single record."""


Importance = Callable[[Floats], tuple[float, Floats]]
"""Returns the importance of a curve, and its derivative by each point."""

K = TypeVar("K", bound=Hashable)


class KeyedCurve(Generic[K]):
    """One mean per key; it has the estimates of a :class:`~fluxplain.explain.ranks.RankCurve`."""

    def __init__(self, alpha: float, importance: Importance, *, debias: bool = True) -> None:
        self.alpha = alpha
        self.debias = debias
        self.grid: list[K] = []
        self.value = 0.0
        self._importance = importance
        self._projections = ExponentialMeans(1, [alpha])
        self._labels: Labels = ()
        self._slots: dict[K, int] = {}  # the longest absent first
        self._free: list[int] = []
        self._rows: Places = np.zeros(0, np.intp)  # the slots of the keys
        self._effects: Floats = np.zeros((0, 0))  # shape (slots, labels)
        self._weights: Floats = np.zeros(0)

    def update_table(self, keys: Sequence[K], answers: Table, *, width: int = 1) -> float:
        """Take one observation's effects and return their importance, the increment.

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
        self.value = _mean(values)
        self._projections.update(np.array([[_mean(projections)]]))
        return _mean(increments)

    @property
    def n(self) -> int:
        """Updates so far."""
        return self._projections.n

    @property
    def variance(self) -> float:
        """Variance of what one observation contributes to the importance, to first order."""
        return self._projections.variances.item()

    @property
    def std_error(self) -> float:
        """Standard error of the importance."""
        return self._projections.std_errors.item()

    @property
    def effect(self) -> Effect:
        """The smoothed effect at the keys."""
        shown = {self._labels[column]: effect.tolist() for column, effect in self._shown()}
        return shown_effect(shown, len(self.grid))

    def _move(self, keys: Sequence[K], ice: Floats, most: int) -> None:
        self.grid = list(keys)
        self._rows = rows = np.array([self._slot(key) for key in keys], np.intp)
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


def _mean(values: Sequence[float]) -> float:
    return float(kernels.mean_of(np.array(values)))


def range_and_slopes(curve: Floats) -> tuple[float, Floats]:
    """Return a quarter of the range of a curve, and its derivative by each point.

    It is the importance of a categorical feature (Greenwell, Boehmke, McCarthy, 2018, Section 2).
    """
    slopes = np.zeros(len(curve))
    high, low = curve.argmax(), curve.argmin()
    if curve[high] > curve[low]:
        slopes[high], slopes[low] = 0.25, -0.25
    return float(curve[high] - curve[low]) / 4.0, slopes


def deviation_and_slopes(effects: Floats) -> tuple[float, Floats]:
    """Return the standard deviation of some effects, and its derivative by each."""
    deviation = float(kernels.deviation(effects))
    if deviation == 0.0:
        return 0.0, np.zeros(len(effects))
    distances = effects - effects[0] - kernels.middle(effects)
    return deviation, distances / (deviation * (len(effects) - 1))

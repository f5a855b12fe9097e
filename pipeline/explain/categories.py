"""Smoothed effects at keys that come and go: categories, and points of a surface with any."""

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import kernels
from fluxplain.explain.curve import check_answers, check_size, shown_labels
from fluxplain.explain.smoothing import ExponentialMeans

ABSENT_CATEGORIES = 100
"""Largest number of categories outside the storage whose means are kept: a rare one continues from
its mean when it returns, instead of jumping to the value of a single record."""


K = TypeVar("K", bound=Hashable)


class KeyedCurve(Generic[K]):
    """One mean per key; it has the estimates of one :class:`~fluxplain.explain.ranks.RankCurves`.

    The importance is a quarter of the effects' range with ``by_range``, which suits categories
    (Greenwell, Boehmke, McCarthy, 2018, Section 2), else their standard deviation.
    """

    def __init__(self, alpha: float, *, by_range: bool = False, debias: bool = True) -> None:
        self.alpha = alpha
        self.debias = debias
        self.n = np.zeros(1, np.intp)
        self.values = np.zeros(1)
        self._by_range = by_range
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
        shown, effects = self.effects(0)
        own = np.ascontiguousarray(aligned(Table(labels, ice), shown).T)
        deviation, projection = RANGE if self._by_range else DEVIATION
        projections = [projection(*each) for each in zip(effects, own, strict=True)]
        self.values[0] = _mean([deviation(effect) for effect in effects])
        self._projections.update(np.array([[_mean(projections)]]))
        self.n += 1
        return _mean([deviation(each) for each in own])

    @property
    def variances(self) -> Floats:
        """Variance of what one observation contributes to the importance, to first order."""
        variances: Floats = self._projections.variances[0]
        return variances

    @property
    def std_errors(self) -> Floats:
        """Standard error of the importance; infinite before an update."""
        errors: Floats = self._projections.std_errors[0]
        return errors

    def effects(self, _curve: int) -> tuple[Labels, Floats]:
        """Return the shown classes, and their effects at the keys, shape (classes, keys)."""
        shown = tuple(shown_labels(self._labels))
        effects = aligned(Table(self._labels, self._effects[self._rows]), shown)
        return shown, np.ascontiguousarray(effects.T)

    def _move(self, keys: Sequence[K], ice: Floats, most: int) -> None:
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


def _mean(values: Sequence[float]) -> float:
    return float(kernels.mean_of(np.array(values)))


def quarter_range(curve: Floats) -> float:
    """Return a quarter of the range of a curve."""
    return float(curve.max() - curve.min()) / 4.0


def range_projection(curve: Floats, ice: Floats) -> float:
    """Return the product of the quarter range's derivatives, by the points, with ``ice``."""
    high, low = curve.argmax(), curve.argmin()
    return float(ice[high] - ice[low]) / 4.0 if curve[high] > curve[low] else 0.0


RANGE = quarter_range, range_projection
DEVIATION = kernels.deviation, kernels.projection

"""Smoothed effects at keys that come and go: categories, and points of a surface with any."""

import math
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import curve_kernels
from fluxplain.explain.curve import LARGEST, check_answers, check_size, shown_labels
from fluxplain.explain.curve_estimates import CurveEstimates
from fluxplain.explain.dependence import COLUMNS, DEFAULT_REACH

ABSENT_CATEGORIES = 100
"""Largest number of categories outside the storage whose means are kept: a rare one continues from
its mean when it returns, instead of jumping to the value of a single record."""


K = TypeVar("K", bound=Hashable)


class KeyedCurve(CurveEstimates, Generic[K]):
    """One curve, with a mean per key.

    The importance is a quarter of the effects' range with ``by_range``, which suits categories
    (Greenwell, Boehmke, McCarthy, 2018, Section 2), else their standard deviation. With
    ``point_errors``, the effects have standard errors.
    """

    def __init__(
        self,
        alpha: float,
        *,
        by_range: bool = False,
        debias: bool = True,
        reach: int = DEFAULT_REACH,
        point_errors: bool = True,
    ) -> None:
        super().__init__(1, alpha, debias=debias, reach=reach)
        self._by_range = by_range
        self._labels: Labels = ()
        self._shown: Places = np.zeros(0, np.intp)  # the columns of the shown labels
        self._slots: dict[K, int] = {}  # the longest absent first
        self._free: list[int] = []
        self._keys: Sequence[K] = []  # the last ones
        self._rows: Places = np.zeros(0, np.intp)  # the slots of the keys
        self._effects: Floats = np.zeros((0, 0))  # shape (slots, labels)
        self._weights: Floats = np.zeros(0)
        self._squared_weights: Floats = np.zeros(0)
        self._counts: Places = np.zeros(0, np.intp)
        self._has_errors = point_errors
        self._followed_points: Floats = np.zeros((0, 0, COLUMNS))  # shape (slots, labels, 6)

    def update_table(self, keys: Sequence[K], answers: Table, *, width: int = 1) -> float:
        """Take one observation's effects and return their importance.

        A category has at most ``width`` keys.
        """
        is_new = keys is not self._keys and keys != self._keys
        if is_new:
            check_size(len(set(keys)), len(keys))
        check_size(len(keys), len(answers.numbers))
        if is_new or answers.labels != self._labels:
            check_answers(self._labels, answers)
            self._learn(answers.labels)
        if is_new:
            self._rows = np.array([self._slot(key) for key in keys], np.intp)
            self._keys = keys
            while len(self._slots) > len(keys) + ABSENT_CATEGORIES * width:
                self._free.append(self._slots.pop(next(iter(self._slots))))
        found: float = curve_kernels.move_keyed(
            self._rows,
            aligned(answers, self._labels),
            LARGEST,
            self._shown,
            self.alpha,
            self.debias,
            self.reach,
            self._by_range,
            self._weights,
            self._squared_weights,
            self._counts,
            self._effects,
            self._kept[0],
            self._followed[0],
            self._followed_points,
            self.n.item() + 1,
        )
        if math.isnan(found):
            check_answers(self._labels, answers)
        self.n += 1
        return found

    def _learn(self, given: Labels) -> None:
        """Add new classes."""
        labels = tuple(dict.fromkeys((*self._labels, *given)))
        if labels == self._labels:
            return
        grown = (0, 0), (0, len(labels) - len(self._labels))
        self._effects = np.pad(self._effects, grown)
        self._followed_points = np.pad(self._followed_points, (*grown, (0, 0)))
        self._labels = labels
        columns = [labels.index(label) for label in shown_labels(labels)]
        self._shown = np.array(columns, np.intp)

    def effects(self, _curve: int) -> tuple[Labels, Floats]:
        """Return the shown classes, and their effects at the keys, shape (classes, keys)."""
        shown = tuple(self._labels[place] for place in self._shown.tolist())
        return shown, np.ascontiguousarray(self._effects[self._rows][:, self._shown].T)

    def effect_errors(self, _curve: int) -> Floats:
        """Return the standard errors of these effects; infinite while too little is known."""
        rows = self._rows
        squares = self._squared_weights[rows] / np.maximum(self._weights[rows], self.alpha) ** 2
        followed, counts = self._followed_points[rows], self._counts[rows]
        errors = [
            curve_kernels.point_errors(followed[:, c], counts, squares, self.alpha, self.reach)
            for c in self._shown.tolist()
        ]
        return np.array(errors)

    def _slot(self, key: K) -> int:
        """Return the slot of a key, and mark it as the most recent one."""
        slot = self._slots.pop(key, None)
        if slot is None:
            if not self._free:
                n = len(self._weights)
                self._free = list(range(n, 2 * n + 8))
                more = 0, n + 8
                self._weights = np.pad(self._weights, more)
                self._squared_weights = np.pad(self._squared_weights, more)
                self._counts = np.pad(self._counts, more)
                self._effects = np.pad(self._effects, (more, (0, 0)))
                if self._has_errors:
                    self._followed_points = np.pad(self._followed_points, (more, (0, 0), (0, 0)))
            slot = self._free.pop()
            self._weights[slot], self._effects[slot] = 0.0, 0.0
            self._squared_weights[slot], self._counts[slot] = 0.0, 0
            self._followed_points[slot : slot + 1] = 0.0
        self._slots[key] = slot
        return slot

"""The trends of ICE curves: signed numbers that change their sign when an effect reverses.

A trend is the correlation of an ICE curve with a reference curve. The reference is the mean of
earlier ICE curves, so the trend keeps its sign as long as the effect keeps its shape, whatever the
shape is. The first reference rises along the grid. It is replaced after 1, 2, 4, ... 1,024 ICE
curves and then after every 1,024, always by the mean of those since the last time, turned by
:func:`~fluxplain.explain.trend_kernels.turn`. The numbers that are tested have no part in their own
reference.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from fluxplain.evaluate import Table
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain import trend_kernels
from fluxplain.explain.categories import ABSENT_CATEGORIES
from fluxplain.explain.curve import shown_labels

SPARE = 8
"""Keys for which there is room, beyond those that are known."""


class CurveTrends:
    """The trends of several numeric features; ``labels`` are the classes that they know.

    A reference is a curve over the points of the first of its ICE curves and half as many on either
    side. It stays when the model is replaced.
    """

    def __init__(self, count: int) -> None:
        self.labels: Labels = ()
        self._counts = np.zeros((count, 3), np.intp)
        self._grow(0, ())

    def _grow(self, points: int, labels: Labels) -> None:
        """Begin with as many points."""
        count, knots, classes = len(self._counts), points + 2 * (points // 2), len(labels)
        self.labels = labels
        self._size = points
        self._counts[:] = 0
        self._knots = np.zeros((count, 2, knots))
        self._references = np.zeros((count, knots, classes))
        self._steps = np.zeros((count, 2, knots, classes))
        self._visits = np.zeros((count, 2, knots))

    def take(
        self, which: Places, points: Floats, outputs: Floats, labels: Labels, shown: Places
    ) -> Floats:
        """Return the trends of ICE curves; see :func:`.trend_kernels.take_curves`.

        ``labels`` are those of the outputs, in the order of which ``shown`` are places.
        """
        if points.shape[1] != self._size or labels != self.labels:
            self._learn(points.shape[1], labels)
            places = np.array([*map(self.labels.index, labels), -1])
            outputs, shown = aligned(Table(labels, outputs), self.labels), places[shown]
        found = np.empty(len(which))
        trend_kernels.take_curves(
            which,
            points,
            outputs,
            shown,
            self._counts,
            self._knots,
            self._references,
            self._steps,
            self._visits,
            found,
        )
        return found

    def _learn(self, points: int, labels: Labels) -> None:
        """Add new classes, after the known ones; begin anew with outputs of another kind."""
        if points != self._size or (None in labels) != (None in self.labels):
            self._grow(points, ())
        new = tuple(label for label in labels if label not in self.labels)
        if new:
            more = (0, 0), (0, len(new))
            self._references = np.pad(self._references, ((0, 0), *more))
            self._steps = np.pad(self._steps, ((0, 0), (0, 0), *more))
            self.labels = (*self.labels, *new)


class KeyedTrends:
    """The trends of a categorical feature.

    Keys that are in no recent ICE curve are forgotten, and those that have been absent the longest
    if there are too many.
    """

    def __init__(self) -> None:
        self._labels: Labels = ()
        self._shown: Places = np.zeros(0, np.intp)
        self._keys: Sequence[Hashable] = []  # the last ones
        self._rows: dict[Any, int] = {}
        self._places: Places = np.zeros(0, np.intp)  # the rows of the last keys
        self._counts = np.zeros(3, np.intp)
        self._references = np.zeros((0, 0))
        self._known = np.zeros(0)
        self._sums = np.zeros((2, 0, 0))
        self._visits = np.zeros((2, 0))

    def take(self, keys: Sequence[Hashable], answers: Table) -> float:
        """Return the trend of an ICE curve over some keys."""
        if answers.labels != self._labels:
            self._learn(answers.labels)
        if keys is not self._keys and keys != self._keys:
            self._find(keys)
        found: float = trend_kernels.take_keyed(
            self._places,
            aligned(answers, self._labels),
            self._shown,
            self._counts,
            self._references,
            self._known,
            self._sums,
            self._visits,
        )
        return found

    def _learn(self, given: Labels) -> None:
        """Add new classes; begin anew with outputs of another kind."""
        if self._labels and (None in given) != (None in self._labels):
            self.__init__()  # type: ignore[misc]
        labels = tuple(dict.fromkeys((*self._labels, *given)))
        more = (0, 0), (0, len(labels) - len(self._labels))
        self._references = np.pad(self._references, more)
        self._sums = np.pad(self._sums, ((0, 0), *more))
        self._labels = labels
        columns = [labels.index(label) for label in shown_labels(labels)]
        self._shown = np.array(columns, np.intp)

    def _find(self, keys: Sequence[Hashable]) -> None:
        """Find the rows of keys."""
        new = [key for key in keys if key not in self._rows]
        for key in keys:
            if key in self._rows:
                self._rows[key] = self._rows.pop(key)  # the newest ones come last
        if len(self._rows) + len(new) > len(self._known):
            self._forget_absent(keys)
        for key in new:
            self._rows[key] = len(self._rows)
        self._keys = keys
        self._places = np.array([self._rows[key] for key in keys], np.intp)

    def _forget_absent(self, keys: Sequence[Hashable]) -> None:
        """Forget keys that are neither in the reference, nor collected, nor among these."""
        is_used = (self._known + self._visits.sum(axis=0)) > 0.0
        kept = [key for key, row in self._rows.items() if is_used[row] or key in keys]
        kept = kept[-(len(keys) + ABSENT_CATEGORIES) :]
        rows = np.array([self._rows[key] for key in kept], np.intp)
        self._rows = {key: row for row, key in enumerate(kept)}
        room = len({*kept, *keys}) + SPARE
        more = 0, room - len(rows)
        self._references = np.pad(self._references[rows], (more, (0, 0)))
        self._known = np.pad(self._known[rows], more)
        self._sums = np.pad(self._sums[:, rows], ((0, 0), more, (0, 0)))
        self._visits = np.pad(self._visits[:, rows], ((0, 0), more))


class Trends:
    """The trends of several features; ``kinds`` as of :class:`~fluxplain.explain.effects.Effects`.

    Pairs have none.
    """

    def __init__(self, kinds: Mapping[str, tuple[bool, ...]]) -> None:
        self.numeric = CurveTrends(sum(kind == (False,) for kind in kinds.values()))
        self.categorical = {name: KeyedTrends() for name, kind in kinds.items() if kind == (True,)}

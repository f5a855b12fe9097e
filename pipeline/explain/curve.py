"""Curves: their public form, the checks of what moves them, and those of single observations."""

import math
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from fluxplain.evaluate import Label, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import MIXED, Labels, aligned, in_order
from fluxplain.explain import kernels

Grid = list[Value]
"""Numbers in increasing order, or categories."""

Effect = list[float] | dict[Label, list[float]]
"""One number per grid point; for more than two classes, one such curve per class."""

LARGEST = 1e153
"""Largest output: larger ones have no finite square."""


def check_answers(known: Collection[Label | None], answers: Table) -> None:
    """Raise an error if outputs do not match earlier ones, or have no finite square."""
    if known and (None in known) != (None in answers.labels):
        raise TypeError(MIXED)
    if not kernels.are_moderate(answers.numbers, LARGEST):
        _refuse(answers.numbers)


def check_size(size: int, *numbers: int) -> None:
    """Raise ``ValueError`` unless all numbers of points or outputs equal the curve's size."""
    for n in numbers:
        if n != size:
            raise ValueError(f"{n} outputs do not fit a curve of {size} points")


def shown_labels(labels: Collection[Label | None]) -> Sequence[Label | None]:
    """Return the labels of the shown curves: the number, the positive class, or each class.

    The positive one is the larger of two: ``True``, 1, or the last in the alphabet. Labels of any
    kinds have the same order in every process.

    Examples
    --------
    >>> shown_labels([True, False]), shown_labels(["c", "a", "b"]), shown_labels([None])
    ([True], ['a', 'b', 'c'], [None])
    """
    classes = in_order(label for label in labels if label is not None)
    return list(labels) if not classes else classes if len(classes) > 2 else classes[-1:]


def shown_effect(labels: Sequence[Label | None], effects: Floats, shape: Sequence[int]) -> Any:
    """Return the effects of the shown classes in their public form, :data:`Effect` or of surfaces.

    ``effects`` has the shape (classes, points), ``shape`` the points of each axis. Zeros without
    classes.
    """
    if not labels:
        return np.zeros(shape).tolist()
    curves = effects.reshape(len(labels), *shape).tolist()
    return dict(zip(labels, curves, strict=True)) if len(labels) > 1 else curves[0]


def _refuse(numbers: Floats) -> NoReturn:
    columns = [[v for v in column if not abs(v) <= LARGEST] for column in numbers.T.tolist()]
    large = max(next(filter(None, columns)), key=lambda v: math.inf if math.isnan(v) else abs(v))
    raise ValueError(f"an output is not finite or too large to square: {large}")


class IceCurve(NamedTuple):
    """The output on observation number ``seq`` as a function of one feature.

    The effect is the output at each point; for more than two classes, one such curve per class.
    """

    seq: int
    grid: Grid
    effect: Effect


class IceCurves:
    """The last ``size`` curves of one feature; a class that the model did not know counts as 0.

    References
    ----------
    iPDP, Section 3.2: the answers at one time are the ICE curve of that observation. Goldstein,
    Kapelner, Bleich, Pitkin (2015), "Peeking Inside the Black Box".
    """

    def __init__(self, size: int) -> None:
        self._kept: deque[tuple[int, Grid, Labels, Floats]] = deque(maxlen=size)
        self._labels: Labels = ()

    def update(self, seq: int, points: Grid, answers: Table) -> None:
        """Take the curve of one observation, after the smoothed curve has taken it."""
        self._labels = tuple(dict.fromkeys((*self._labels, *answers.labels)))
        self._kept.append((seq, list(points), answers.labels, answers.numbers.copy()))

    @property
    def curves(self) -> list[IceCurve]:
        """The curves, oldest first, with the classes of the smoothed one."""
        shown = tuple(shown_labels(self._labels))
        curves = []
        for seq, points, labels, numbers in self._kept:
            effects = aligned(Table(labels, numbers), shown).T
            curves.append(IceCurve(seq, list(points), shown_effect(shown, effects, [len(points)])))
        return curves

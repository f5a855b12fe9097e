"""Base of the smoothed curves of numeric and categorical features."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import NoReturn

from fluxplain.evaluate import Label, Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import MIXED
from fluxplain.explain import kernels
from fluxplain.explain.outputs import label_order, positive_class

Grid = list[Value]
"""Numbers in increasing order, or categories."""

Effect = list[float] | dict[Label, list[float]]
"""One number per grid point; for more than two classes, one such curve per class."""

LARGEST = 1e153
"""Largest output: larger ones have no finite square."""


class PDPCurve(ABC):
    """The smoothed curve of one feature.

    References
    ----------
    iPDP, Algorithm 1, lines 5 to 10; importance after Greenwell, Boehmke, McCarthy (2018), "A
    Simple and Effective Model-Based Variable Importance Measure".
    """

    @abstractmethod
    def update_table(self, points: Grid, answers: Table) -> float:
        """Take the ICE curve of one observation and return its importance, the increment.

        Raises
        ------
        ValueError, TypeError
            If the points or the outputs do not fit; then nothing has changed.
        """

    @property
    @abstractmethod
    def n(self) -> int:
        """Updates so far."""

    @property
    @abstractmethod
    def value(self) -> float:
        """Importance of the curve; its mean if more than two classes have one each."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of what one observation contributes to :attr:`value`, to first order."""

    @property
    @abstractmethod
    def std_error(self) -> float:
        """Standard error of :attr:`value`, by the delta method; infinite before an update."""

    @property
    @abstractmethod
    def grid(self) -> Grid:
        """The smoothed grid points, or the categories."""

    @property
    @abstractmethod
    def effect(self) -> Effect:
        """The smoothed effect: one curve, or one per class if there are more than two."""


def check_answers(known: Collection[Label | None], answers: Table) -> None:
    """Raise an error if outputs do not match earlier ones, or have no finite square."""
    check_labels(known, answers.labels)
    if not kernels.are_moderate(answers.numbers, LARGEST):
        _refuse(answers.numbers)


def check_labels(known: Collection[Label | None], labels: Collection[Label | None]) -> None:
    """Raise ``TypeError`` if one side has classes and the other a number."""
    if known and (None in known) != (None in labels):
        raise TypeError(MIXED)


def check_size(size: int, *numbers: int) -> None:
    """Raise ``ValueError`` unless all numbers of points or outputs equal the curve's size."""
    for n in numbers:
        if n != size:
            raise ValueError(f"{n} outputs do not fit a curve of {size} points")


def shown_labels(labels: Collection[Label | None]) -> Sequence[Label | None]:
    """Return the labels of the shown curves: the number, the positive class, or each class."""
    classes = sorted((label for label in labels if label is not None), key=label_order)
    positive = positive_class(classes)
    return list(labels) if not classes else classes if positive is None else [positive]


def shown_effect(effects: Mapping[Label | None, list[float]], size: int) -> Effect:
    """Return the shown curves in their public form; one of zeros if there is none."""
    if len(effects) > 1:
        return {label: effect for label, effect in effects.items() if label is not None}
    return next(iter(effects.values()), [0.0] * size)


def _refuse(numbers: Floats) -> NoReturn:
    columns = [[v for v in column if not abs(v) <= LARGEST] for column in numbers.T.tolist()]
    large = max(next(filter(None, columns)), key=lambda v: math.inf if math.isnan(v) else abs(v))
    raise ValueError(f"an output is not finite or too large to square: {large}")

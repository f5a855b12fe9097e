"""What is estimated of one feature, and what each curve must keep to."""

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import cast

import numpy as np

from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.curve import MIXED
from pipeline.explain.curves import make_curve
from pipeline.explain.smoothing import ExponentialMean
from pipeline.stages.limits import (
    MAX_NUMBER,
    NUMBER_BYTES,
    are_moderate,
    is_moderate,
    text_bytes,
)
from schemas.evaluation import Row
from schemas.explanation import Method
from schemas.record import Label, Value, describe


@dataclass(slots=True)
class Pending:
    """Increments of one method that were not published yet."""

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
    increments: list[float] = field(default_factory=list)


class FeatureState:
    """The estimates of one feature of one stream."""

    def __init__(self, alpha: float, *, categorical: bool) -> None:
        self.seq = -1  # the newest one seen
        self.estimates: dict[Method, ExponentialMean] = {
            "ipfi": ExponentialMean(alpha),
            "isage": ExponentialMean(alpha),
        }
        self.curve = make_curve(alpha, categorical=categorical)
        self._is_categorical = categorical
        self._classes: frozenset[Label] = frozenset()  # of the curve
        self.pending: dict[Method, Pending] = {
            "ipfi": Pending(),
            "isage": Pending(),
            "ipdp": Pending(),
        }

    def move_curve(
        self, points: list[Value], rows: list[Row], classes: list[Label] | None, room: int
    ) -> float:
        """Take the ICE curve of one observation and return its importance.

        Parameters
        ----------
        points, rows, classes
            The curve.
        room
            Bytes that the curve, with all classes seen so far, may need in a message.

        Raises
        ------
        ValueError, TypeError
            If they do not fit; then nothing has changed.
        """
        _check_points(points, categorical=self._is_categorical)
        texts = text_bytes(points) if self._is_categorical else 0
        width = max([len(row) for row in rows if isinstance(row, list)], default=0)
        _check_room(len(points), width, texts, room)  # before the curve is made
        table = _table(rows, classes)
        _check_outputs(table.numbers)
        known = self._with_classes(table.labels, len(points), texts, room)
        increment = self.curve.update_table(points, table)
        self._classes = known
        return increment

    def expect_classes(self, labels: Collection[Label | None], size: int, room: int) -> None:
        """Take note of the classes of curves of a numeric feature, of ``size`` points each.

        Raises
        ------
        ValueError
            If there is no room; then nothing has changed.
        """
        self._classes = self._with_classes(labels, size, 0, room)

    def _with_classes(
        self, labels: Collection[Label | None], size: int, texts: int, room: int
    ) -> frozenset[Label]:
        """Return all classes seen, if there is room for a curve with each."""
        known = self._classes
        if not known.issuperset(labels):
            known = known.union([label for label in labels if label is not None])
        _check_room(size, len(known), texts + text_bytes(known), room)
        return known


def _check_room(points: int, classes: int, texts: int, room: int) -> None:
    if NUMBER_BYTES * (points + 1) * (classes + 1) + texts > room:
        raise ValueError(
            f"a curve of {points:,} points and {classes:,} classes does not fit into a message"
        )


def _check_points(points: list[Value], *, categorical: bool) -> None:
    if not categorical and set(map(type, points)) <= {int, float} and are_moderate(points):  # type: ignore[arg-type]
        return
    for point in points:
        if categorical:
            fits = not isinstance(point, float)
        else:
            fits = not isinstance(point, bool | str) and is_moderate(point)
        if not fits:
            raise ValueError(f"a point is not of the feature's type: {describe(point)}")


def _table(rows: list[Row], classes: list[Label] | None) -> Table:
    """Return the outputs on the classes that any of them knows; a class that one lacks has 0."""
    numbers = [row for row in rows if not isinstance(row, list)]
    if numbers and len(numbers) < len(rows):
        raise TypeError(MIXED)
    if numbers:
        return Table((None,), np.array(numbers, np.float64)[:, None])
    shares, labels = cast(list[list[float | None]], rows), classes or []
    is_whole = not any(None in row for row in shares)
    if is_whole and all(len(row) == len(labels) for row in shares):
        return Table(tuple(labels), np.array(shares, np.float64))
    columns = zip(labels, zip_longest(*shares), strict=False)
    known = {label: column for label, column in columns if any(p is not None for p in column)}
    filled = [[0.0 if p is None else p for p in column] for column in known.values()]
    table = np.array(filled, np.float64).reshape(len(filled), len(rows))
    return Table(tuple(known), np.ascontiguousarray(table.T))


def _check_outputs(numbers: Floats) -> None:
    if not kernels.are_moderate(numbers, MAX_NUMBER):
        large = next(number for number in numbers.T.flat if not is_moderate(number))
        raise ValueError(f"an output is not finite or too large to square: {large}")

"""What is estimated of one feature, and what each curve must keep to."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import cast

import numpy as np

from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.curve import MIXED, PDPCurve
from pipeline.explain.curves import make_curve
from pipeline.explain.ice import IceCurves
from pipeline.explain.smoothing import ExponentialMean
from pipeline.explain.surface import Surface
from pipeline.stages.chain import Chain, Gap
from pipeline.stages.limits import NUMBER_BYTES, text_bytes
from pipeline.stages.pairs import split
from schemas.evaluation import Evaluation, Row
from schemas.explanation import Method
from schemas.numbers import MAX_NUMBER, are_moderate, is_moderate
from schemas.record import FIRST_INCARNATION, Label, Value, describe


@dataclass(slots=True)
class Pending:
    """Increments of one method that were not published yet."""

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
    increments: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def loss(self) -> float | None:
        """Mean of the losses; None without any, or if they are too large to be compared."""
        if not self.losses:
            return None
        mean = sum(self.losses) / len(self.losses)
        return mean if is_moderate(mean) else None


class FeatureState:
    """The estimates of one feature, group or pair of features of one stream.

    Parameters
    ----------
    alphas
        Smoothing rates: with each of them the same increments are smoothed.
    categorical
        Whether the feature is, or each of a pair.
    ice
        How many ICE curves to keep; 0 for none.

    Attributes
    ----------
    chain
        The seqs of the evaluations that were taken.
    silent
        Observations since the last explanation.
    """

    def __init__(self, alphas: Sequence[float], *, categorical: tuple[bool, ...], ice: int) -> None:
        self._model_version: str | None = None
        self._alphas, self._kept = alphas, ice
        self._categorical = categorical
        self._begin()
        self.restart()

    def _begin(self) -> None:
        ice, categorical = self._kept, self._categorical
        self.estimates: dict[Method, list[ExponentialMean]] = {
            "ipfi": [ExponentialMean(alpha) for alpha in self._alphas],
            "isage": [ExponentialMean(alpha) for alpha in self._alphas],
        }
        self.curves = [_curve(alpha, categorical) for alpha in self._alphas]
        self.ice = IceCurves(ice) if ice and len(categorical) == 1 else None
        self._copies = 1 + ice if self.ice else 1  # of a curve in a message
        self._classes: frozenset[Label] = frozenset()  # of the curve

    def restart(self) -> None:
        """Begin with another stream, with what was learned."""
        self.incarnation = FIRST_INCARNATION
        self.chain = Chain()
        self.silent = 0
        self._has_begun = False
        self.pending: dict[Method, Pending] = {
            "ipfi": Pending(),
            "isage": Pending(),
            "ipdp": Pending(),
        }

    def take(self, run: Evaluation, first: int) -> Gap | None:
        """Take the seqs of a run from one on, all of them new; return the gap before them."""
        previous = run.seqs[first - 1] if first else run.previous_seq
        gap = self.chain.take(run.seqs[first], previous)
        self.chain.take(run.seqs[-1], run.seqs[first])
        return gap

    def be_of(self, model_version: str | None) -> None:
        """Know of which model the next answers are: of another one the estimates begin anew."""
        if self._has_begun and model_version != self._model_version:
            self._begin()
        self._model_version, self._has_begun = model_version, True

    def move_curve(
        self,
        seq: int,
        points: list[Value],
        rows: list[Row],
        classes: list[Label] | None,
        *,
        room: int,
    ) -> float:
        """Take the ICE curve of one observation and return its importance.

        Parameters
        ----------
        seq, points, rows, classes
            Whose curve, and the curve.
        room
            Bytes that the curve, with all classes seen so far, may need in a message.

        Raises
        ------
        ValueError, TypeError
            If they do not fit; then nothing has changed.
        """
        axes = split(points) if len(self._categorical) == 2 else (points,)
        for axis, categorical in zip(axes, self._categorical, strict=True):
            _check_points(axis, categorical=categorical)
        size, texts = len(rows), text_bytes(points)
        width = max([len(row) for row in rows if isinstance(row, list)], default=0)
        self._check_room(size, width, texts, room)  # before the curve is made
        table = _table(rows, classes)
        _check_outputs(table.numbers)
        known = self._with_classes(table.labels, size, texts, room)
        # what fits one curve fits all, since all have seen the same
        increments = [
            curve.update_table((axes[0], axes[-1]), table)
            if isinstance(curve, Surface)
            else curve.update_table(points, table)
            for curve in self.curves
        ]
        if self.ice is not None:
            grid = points if self._categorical[0] else [*map(float, points)]
            self.ice.update(seq, [*grid], table)
        self._classes = known
        return increments[0]

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
        self._check_room(size, len(known), texts + text_bytes(known), room)
        return known

    def _check_room(self, points: int, classes: int, texts: int, room: int) -> None:
        # the numbers of grid and effect, and the names in front of them
        each = NUMBER_BYTES * (points + 2) * (max(classes, 1) + 1) + texts
        if self._copies * each > room:
            raise ValueError(
                f"a curve of {points:,} points and {classes:,} classes does not fit into a message"
            )


def _curve(alpha: float, categorical: tuple[bool, ...]) -> PDPCurve | Surface:
    if len(categorical) == 2:
        return Surface(alpha, categorical=(categorical[0], categorical[1]))
    return make_curve(alpha, categorical=categorical[0])


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

"""The second stage: evaluations become increments, and increments become explanations."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, cast

import numpy as np

from pipeline.config import Config
from pipeline.evaluate import Output
from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.curve import MIXED, PDPCurve
from pipeline.explain.curves import make_curve
from pipeline.explain.ice import IceCurves
from pipeline.explain.pfi import pfi_increment
from pipeline.explain.sage import sage_increment
from pipeline.explain.smoothing import ExponentialMean
from pipeline.explain.surface import Surface
from pipeline.stages.base import Message
from pipeline.stages.limits import (
    MAX_NUMBER,
    MAX_RECORD_BYTES,
    MAX_RUN,
    NUMBER_BYTES,
    are_moderate,
    check_key,
    check_length,
    check_order,
    check_origin,
    is_moderate,
    text_bytes,
)
from pipeline.stages.pairs import split
from schemas import (
    BadRecordError,
    Change,
    DeadLetter,
    Evaluation,
    Explanation,
    Record,
    parse_stream,
)
from schemas.evaluation import Row
from schemas.explanation import Ice, Method
from schemas.record import Label, Value, describe


class ExplainerStage:
    """Keeps the explanations of every (stream, feature) in one partition of ``evaluations``.

    Drops what it has already seen, so a run that is published again after a crash counts once.
    """

    def __init__(self, config: Config) -> None:
        self._source = config.topic("features")
        categorical = {name for name, kind in config.features.items() if kind == "categorical"}
        self._categorical = {
            name: tuple(feature in categorical for feature in config.pairs.get(name, (name,)))
            for name in config.explained
        }
        self._ice = config.explain.ipdp.ice
        self._loss = config.loss()
        self._alpha = config.explain.alpha
        self._emit_every = config.explain.emit_every
        self._room = MAX_RECORD_BYTES - 2 * NUMBER_BYTES * self._emit_every
        self._states: dict[tuple[str, str], FeatureState] = {}

    def decode(self, message: Message) -> tuple[Message, Evaluation]:
        """Return the run of evaluations.

        Raises
        ------
        BadRecordError
            If it is none, or of a stream or a feature that is not configured.
        """
        check_key(message)
        run = Evaluation.decode(message.value)
        check_origin(self._source, self._categorical, run.stream, run.feature)
        if len(run.seqs) > MAX_RUN:
            raise BadRecordError(f"seqs has {len(run.seqs):,} items, but at most {MAX_RUN} may be")
        check_order(run.previous_seq, run.seqs)
        for ts in run.ts:
            check_length("ts", ts)
        return message, run

    def step(self, record: tuple[Message, Evaluation]) -> Sequence[Record]:
        """Return the explanations that are due, in the order of their seq.

        An observation whose increments are not finite is left out of the estimates and goes to
        ``dead-letters``.
        """
        message, run = record
        key = (run.stream, run.feature)
        state = self._states.get(key)
        records: list[Record] = []
        if state is None or (run.previous_seq is None and run.seqs[0] > state.seq):
            # a run without a predecessor begins the stream, or begins it anew after a cold start
            categorical = self._categorical[run.feature]
            state = FeatureState(self._alpha, categorical=categorical, ice=self._ice)
            self._states[key] = state
        if run.previous_seq is not None and run.previous_seq > state.seq:
            records.append(_gap(run, state.seq))
        for i, seq in enumerate(run.seqs):
            if seq <= state.seq:
                continue
            state.seq = seq
            try:
                explained = self._increments(state, run, i)
            except MemoryError:
                raise
            except Exception as error:  # the user's loss may raise anything
                records.append(_unusable(message, run.single(i), error))
                continue
            records += self._due(state, run, i, explained)
        return records

    def _increments(self, state: "FeatureState", run: Evaluation, i: int) -> dict[Method, float]:
        """Smooth the increments of one observation, all or none."""
        y, prediction = run.y[i], _output(run.prediction[i], run.classes)
        increments: dict[Method, float] = {}
        if y is not None and (ipfi := run.ipfi[i]):
            outputs = [_output(row, run.classes) for row in ipfi]
            increments["ipfi"] = pfi_increment(self._loss, y, prediction, outputs)
        if y is not None and (isage := run.isage[i]):
            before, after = (_output(row, run.classes) for row in isage)
            increments["isage"] = sage_increment(self._loss, y, before, after)
        for method, increment in increments.items():
            if not is_moderate(increment):
                raise ValueError(
                    f"the {method} increment is not finite or too large to square: {increment}"
                )
        curve: dict[Method, float] = {}
        if (points := run.ipdp_points[i]) and (ipdp := run.ipdp[i]):
            asked = (points, ipdp, run.classes)
            curve["ipdp"] = state.move_curve(run.seqs[i], *asked, room=self._room)
        for method, increment in increments.items():
            state.estimates[method].update(increment)
        return {**increments, **curve}

    def _due(
        self, state: "FeatureState", run: Evaluation, i: int, increments: dict[Method, float]
    ) -> list[Explanation]:
        """Return an explanation of each method that has enough new increments."""
        due = []
        for method, increment in increments.items():
            pending = state.pending[method]
            pending.seqs.append(run.seqs[i])
            pending.increments.append(increment)
            if len(pending.seqs) >= self._emit_every:
                due.append(self._explanation(state, run, i, method))
        return due

    def _explanation(
        self, state: "FeatureState", run: Evaluation, i: int, method: Method
    ) -> Explanation:
        pending = state.pending[method]
        estimate = state.curve if method == "ipdp" else state.estimates[method]
        record = Explanation(
            stream=run.stream,
            feature=run.feature,
            method=method,
            seq=run.seqs[i],
            previous_seq=pending.previous_seq,
            ts=run.ts[i],
            alpha=self._alpha,
            updates=estimate.n,
            value=estimate.value,
            std_error=estimate.std_error,
            seqs=pending.seqs,
            increments=pending.increments,
            **(_curve(state) if method == "ipdp" else {}),
        )
        state.pending[method] = Pending(previous_seq=run.seqs[i])
        return record


@dataclass(slots=True)
class Pending:
    """Increments of one method that were not published yet."""

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
    increments: list[float] = field(default_factory=list)


class FeatureState:
    """The estimates of one feature or pair of features of one stream."""

    def __init__(self, alpha: float, *, categorical: tuple[bool, ...], ice: int) -> None:
        self.seq = -1  # the newest one seen
        self.estimates: dict[Method, ExponentialMean] = {
            "ipfi": ExponentialMean(alpha),
            "isage": ExponentialMean(alpha),
        }
        self.curve: PDPCurve | Surface
        if len(categorical) == 2:
            self.curve = Surface(alpha, categorical=(categorical[0], categorical[1]))
        else:
            self.curve = make_curve(alpha, categorical=categorical[0])
        self.ice = IceCurves(ice) if ice and len(categorical) == 1 else None
        self._categorical = categorical
        self._copies = 1 + ice if self.ice else 1
        self._classes: frozenset[Label] = frozenset()  # of the curve
        self.pending: dict[Method, Pending] = {
            "ipfi": Pending(),
            "isage": Pending(),
            "ipdp": Pending(),
        }

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
        axes = split(points) if isinstance(self.curve, Surface) else (points,)
        for axis, categorical in zip(axes, self._categorical, strict=True):
            _check_points(axis, categorical=categorical)
        size, texts, room = len(rows), text_bytes(points), room // self._copies
        width = max([len(row) for row in rows if isinstance(row, list)], default=0)
        _check_room(size, width, texts, room)  # before the curve is made
        table = _table(rows, classes)
        _check_outputs(table.numbers)
        known = self._classes
        if not known.issuperset(table.labels):
            known = known.union([label for label in table.labels if label is not None])
        _check_room(size, len(known), texts + text_bytes(known), room)
        if isinstance(self.curve, Surface):
            increment = self.curve.update_table((axes[0], axes[-1]), table)
        else:
            increment = self.curve.update_table(points, table)
        if self.ice is not None:
            self.ice.update(seq, points, table)
        self._classes = known
        return increment


def _check_room(points: int, classes: int, texts: int, room: int) -> None:
    # the numbers of grid and effect, and the names in front of them
    if NUMBER_BYTES * (points + 2) * (max(classes, 1) + 1) + texts > room:
        raise ValueError(
            f"a curve of {points:,} points and {classes:,} classes does not fit into a message"
        )


def _output(row: Row, classes: list[Label] | None) -> Output:
    if not isinstance(row, list):
        return row
    known = zip(classes or (), row, strict=False)
    return {label: p for label, p in known if p is not None}


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


def _curve(state: FeatureState) -> dict[str, Any]:
    effect = state.curve.effect
    fields: dict[str, Any] = {"effect": effect}
    if isinstance(effect, dict):
        fields = {"effect": list(effect.values()), "classes": list(effect)}
    if isinstance(state.curve, Surface):
        fields["grid"], fields["second_grid"] = state.curve.axes
    else:
        fields["grid"] = state.curve.grid
    if state.ice is not None:
        fields["ice"] = [
            Ice(seq, grid, list(each.values()) if isinstance(each, dict) else each)
            for seq, grid, each in state.ice.curves
        ]
    return fields


def _gap(run: Evaluation, seq: int) -> Change:
    missing = "its beginning" if seq < 0 else f"what follows seq {seq}"
    return Change.notice(
        kind="gap",
        stream=run.stream,
        seq=run.seqs[0],
        previous_seq=None if seq < 0 else seq,
        ts=run.ts[0],
        feature=run.feature,
        detail=(
            f"evaluations of {run.feature} are lost: {missing}, up to seq {run.previous_seq}; "
            f"explanations go on at seq {run.seqs[0]}"
        ),
    )


def _unusable(message: Message, run: Evaluation, error: Exception) -> DeadLetter:
    # where the observation was read: the same whatever run it came in
    topic, partition = parse_stream(run.stream)
    source = replace(
        message,
        topic=topic,
        partition=partition,
        offset=run.seqs[0],
        key=run.feature.encode(),
        value=run.encode(),
    )
    return source.dead_letter(f"cannot explain {run.feature}: {error}")

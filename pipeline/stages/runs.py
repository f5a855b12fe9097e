"""Runs of observations as arrays, at a fraction of what they cost one by one.

Most runs are regular: numeric points, as many in each curve, and outputs that know all classes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import cast

import numpy as np

from pipeline.evaluate.compiled import IS_COMPILED
from pipeline.evaluate.inputs import Floats
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.ice import IceCurves
from pipeline.explain.losses import Loss, compiled_losses
from pipeline.explain.ranks import RankCurve
from pipeline.explain.smoothing import ExponentialMean
from pipeline.stages.estimates import FeatureState
from schemas import Evaluation
from schemas.evaluation import Row
from schemas.explanation import Method
from schemas.numbers import MAX_NUMBER
from schemas.record import Label

SHORTEST = 3
"""Arrays of fewer observations cost more than they save."""

Move = Callable[[int, int], list[float]]
"""Takes the increments from one place to before another into an estimate, and returns them."""

Moves = dict[Method, tuple[list[int], Move]]
"""Method → which observations it explains, and what takes them."""


def moves_of_run(
    state: FeatureState, run: Evaluation, first: int, loss: Loss, room: int
) -> Moves | None:
    """Return what takes a run into the estimates: the same bits as one by one.

    Parameters
    ----------
    state
        The estimates.
    run, first
        The run, and the first observation in it that is new.
    loss
        That of iPFI and iSAGE.
    room
        Bytes that the curve may need in a message.

    Returns
    -------
    None, and nothing has changed, if arrays do not pay, the run is not regular, the loss has no
    compiled form, or an observation cannot be explained: only one by one can be said which, and
    why.
    """
    curves = [curve for curve in state.curves if isinstance(curve, RankCurve)]
    is_short = len(run.seqs) - first < SHORTEST
    # categories may come and go, and surfaces are few
    if not IS_COMPILED or is_short or not curves:
        return None
    moves: Moves = {}
    try:
        for method, estimates in state.estimates.items():
            if places := _asked(run, method, first):
                increments = _increments(run, method, places, loss)
                moves[method] = places, partial(_smooth, estimates, increments)
        if places := _asked(run, "ipdp", first):
            points, table = _curves(run, places)
            curves[0].check(points.shape[1], table.labels)  # what fits one fits all
            state.expect_classes(table.labels, points.shape[1], room)
            seqs = [run.seqs[i] for i in places]
            moves["ipdp"] = places, partial(_move, curves, state.ice, seqs, points, table)
    except (TypeError, ValueError):
        return None
    return moves


def _smooth(
    estimates: list[ExponentialMean], increments: Floats, begin: int, end: int
) -> list[float]:
    taken = increments[begin:end]
    for estimate in estimates:
        estimate.update_run(taken)
    return cast(list[float], taken.tolist())


def _move(  # noqa: PLR0917  the first five are given first, the last two with each part
    curves: list[RankCurve],
    ice: IceCurves | None,
    seqs: list[int],
    points: Floats,
    table: Table,
    begin: int,
    end: int,
) -> list[float]:
    size = points.shape[1]
    outputs = Table(table.labels, table.numbers[begin * size : end * size])
    increments = [curve.update_run(points[begin:end], outputs) for curve in curves]
    if ice is not None:
        each = zip(seqs[begin:end], points[begin:end].tolist(), strict=True)
        for place, (seq, grid) in enumerate(each):
            own = Table(table.labels, outputs.numbers[place * size : (place + 1) * size])
            ice.update(seq, grid, own)
    return cast(list[float], increments[0].tolist())


def _asked(run: Evaluation, method: Method, first: int) -> list[int]:
    """Return which observations a method explains, from the first one on."""
    rows = getattr(run, method)
    if method == "ipdp":
        return [i for i in range(first, len(rows)) if rows[i] and run.ipdp_points[i]]
    return [i for i in range(first, len(rows)) if rows[i] and run.y[i] is not None]


def _increments(run: Evaluation, method: Method, places: list[int], loss: Loss) -> Floats:
    """Return the increments of iPFI or iSAGE, one for each place."""
    column: Sequence[Sequence[Row] | None] = run.ipfi if method == "ipfi" else run.isage
    rows = [column[i] or () for i in places]
    if method == "ipfi":
        rows = [(run.prediction[i], *each) for i, each in zip(places, rows, strict=True)]
    labels, numbers = _table(rows, run.classes)
    ys = [y for i in places if (y := run.y[i]) is not None]
    losses = compiled_losses(loss, ys, labels)
    if losses is None:
        raise TypeError("the loss has no compiled form for such outputs")
    blocks = numbers.reshape(len(places), -1, len(labels))
    increments: Floats = kernels.increments_of_run(*losses, 2.0, blocks, method == "ipfi")
    _check_moderate(increments[:, None])
    return increments


def _curves(run: Evaluation, places: list[int]) -> tuple[Floats, Table]:
    """Return the points of ICE curves, a row for each place, and the outputs there."""
    points = [run.ipdp_points[i] or [] for i in places]
    flat = list(chain.from_iterable(points))
    if not set(map(type, flat)) <= {int, float}:
        raise TypeError("a point is no number")
    grids = np.array(flat, np.float64).reshape(len(places), _length_of_each(points))
    table = _table([run.ipdp[i] or () for i in places], run.classes)
    if len(table.numbers) != grids.size:
        raise ValueError("there are not as many outputs as points")
    _check_moderate(grids)
    _check_moderate(table.numbers)
    return grids, table


def _table(blocks: Sequence[Sequence[Row]], classes: list[Label] | None) -> Table:
    """Return the outputs of equally long blocks, one after the other."""
    _length_of_each(blocks)
    rows = list(chain.from_iterable(blocks))
    [kind] = set(map(type, rows))
    if kind is float:
        return Table((None,), np.array(rows, np.float64)[:, None])
    lists, labels = cast(list[list[float | None]], rows), tuple(classes or ())
    if not labels or len(set(labels)) < len(labels) or _length_of_each(lists) != len(labels):
        raise ValueError("not one number for each of several classes")
    # unlike np.array, it refuses None
    numbers = np.fromiter(chain.from_iterable(lists), np.float64, len(lists) * len(labels))
    return Table(labels, numbers.reshape(len(lists), len(labels)))


def _length_of_each(lists: Sequence[Sequence[object]]) -> int:
    """Return how long each is, or raise ``ValueError`` if they are not equally long."""
    [length] = set(map(len, lists))
    return length


def _check_moderate(numbers: Floats) -> None:
    if not kernels.are_moderate(numbers, MAX_NUMBER):
        raise ValueError("a number is not finite or too large to square")

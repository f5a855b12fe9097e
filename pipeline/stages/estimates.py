"""The estimates of one feature, group or pair of one stream."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Any, NamedTuple, cast

import numpy as np

from fluxplain.evaluate import Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import MIXED, Labels
from fluxplain.explain import kernels
from fluxplain.explain.curve import IceCurves
from fluxplain.explain.effects import Curve, Effects
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.method import Axis, as_grid
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.schemas.evaluation import Evaluation, Row
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.numbers import MAX_NUMBER, are_moderate, is_moderate
from fluxplain.schemas.record import FIRST_INCARNATION, Label, describe
from fluxplain.stages.chain import Chain, Gap
from fluxplain.stages.limits import NUMBER_BYTES, text_bytes
from fluxplain.stages.method_code import increments_of
from fluxplain.stages.pair_points import split

UNLIKE = "its outputs are not all alike: numbers, or one probability for each class"


@dataclass(slots=True)
class Pending:
    """Observations of one method that are not published yet.

    The estimates have moved by ``increments``, not yet by the increments or curves in ``queued``.
    """

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
    queued: list[Any] = field(default_factory=list)
    increments: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def loss(self) -> float | None:
        """Mean of the losses; None without any, or if it is too large."""
        if not self.losses:
            return None
        mean = sum(self.losses) / len(self.losses)
        return mean if is_moderate(mean) else None


class FeatureState:
    """The estimates of one feature, group or pair of one stream.

    Each of the smoothing rates ``alphas`` smooths the same increments. ``categorical`` says whether
    the feature is categorical, or each one of a pair; ``ice`` is the number of ICE curves to keep.
    ``chain`` holds the seqs taken, ``silent`` counts observations since the last explanation.
    """

    def __init__(
        self,
        name: str,
        methods: Sequence[Method],
        alphas: Sequence[float],
        *,
        categorical: tuple[bool, ...],
        ice: int,
    ) -> None:
        self._name, self._alphas = name, alphas
        self._categorical = categorical
        self._kept = ice if len(categorical) == 1 else 0
        self._model_version: str | None = None
        self._forget_model()
        self.restart(methods)

    def _forget_model(self) -> None:
        self.means: dict[Method, ExponentialMeans] = {}
        self.effects: list[Effects] = []
        self.ice: IceCurves | None = None
        # properties of the curves so far
        self._classes: frozenset[Label] = frozenset()
        self._shape: tuple[int, ...] | None = None
        self._is_number: bool | None = None

    def _add_estimates(self) -> None:
        """Add estimates for methods that have none yet."""
        for method in self.pending:
            if not METHODS[method].is_curve:
                self.means.setdefault(method, ExponentialMeans(1, self._alphas))
            elif not self.effects:
                kinds = {self._name: self._categorical}
                self.effects = [Effects(kinds, alpha) for alpha in self._alphas]
                self.ice = IceCurves(self._kept) if self._kept else None

    def restart(self, methods: Sequence[Method]) -> None:
        """Begin another stream with the estimates so far; new methods begin from scratch."""
        self.incarnation = FIRST_INCARNATION
        self.chain = Chain()
        self.silent = 0
        self._has_begun = False
        self.pending = {method: Pending() for method in methods}
        self._add_estimates()

    def take(self, run: Evaluation, first: int) -> Gap | None:
        """Take a run's seqs from index ``first`` on, all new; return the gap before them."""
        previous = run.seqs[first - 1] if first else run.previous_seq
        gap = self.chain.take(run.seqs[first], previous)
        self.chain.take(run.seqs[-1], run.seqs[first])
        return gap

    def set_model(self, model_version: str | None) -> None:
        """Set the model version; a new version resets the estimates."""
        if self._has_begun and model_version != self._model_version:
            self._forget_model()
            self._add_estimates()
        self._model_version, self._has_begun = model_version, True

    def read(self, run: Evaluation, first: int, loss: Loss, room: int) -> "Reading":
        """Return the increments and curves of a run from index ``first`` on; change no estimate.

        ``room`` is how many bytes the curve, with all classes seen so far, may take in a message.
        """
        reading = Reading({}, {})
        for method, blocks in run.outputs.items():
            if method in self.means:
                needs_label = METHODS[method].needs_label
                indices = [
                    i
                    for i in range(first, len(blocks))
                    if blocks[i] and (run.y[i] is not None or not needs_label)
                ]
                reading.found[method] = _increments(run, method, indices, loss, reading.errors)
        for method in run.points.keys() & (self.pending.keys() - self.means.keys()):
            reading.found[method] = self._curves(run, method, first, room, reading.errors)
        return reading

    def _curves(
        self, run: Evaluation, method: Method, first: int, room: int, errors: "Errors"
    ) -> dict[int, Curve]:
        """Return ICE curves by index in the run; add an error for one that does not fit."""
        points, blocks = run.points[method], run.outputs.get(method, [])
        places = range(first, len(blocks))
        indices = [i for i in places if blocks[i] and points[i] and i not in errors]
        if self._categorical == (False,):
            with suppress(ValueError, TypeError):  # one by one, to tell which does not fit
                return self._alike_curves(run, method, indices, room)
        found: dict[int, Curve] = {}
        for i in indices:
            grid = cast(list[Value], points[i])
            try:
                curve = self._curve(run.seqs[i], grid, blocks[i] or [], run.classes)
                self._check_fits(curve, grid, room)
            except (ValueError, TypeError) as error:
                errors[i] = error
            else:
                found[i] = curve
        return found

    def _alike_curves(
        self, run: Evaluation, method: Method, indices: list[int], room: int
    ) -> dict[int, Curve]:
        """Return the ICE curves of a numeric feature, if all have as many points and outputs.

        Raises ``ValueError`` or ``TypeError`` if they are not alike, or one does not fit.
        """
        if not indices:
            return {}
        points = [run.points[method][i] or [] for i in indices]
        labels, blocks = _blocks([run.outputs[method][i] or [] for i in indices], run.classes)
        axis = _axis([*chain.from_iterable(points)], categorical=False)
        grids = np.asarray(axis).reshape(len(points), len(points[0]))
        if any(len(each) != grids.shape[1] for each in points):
            raise ValueError("they differ in their number of points")
        if not kernels.are_moderate(blocks.reshape(-1, max(blocks.shape[2], 1)), MAX_NUMBER):
            raise ValueError("an output is not finite or too large to square")
        curves = {
            i: Curve(run.seqs[i], grid, Table(labels, numbers))
            for i, grid, numbers in zip(indices, grids, blocks, strict=True)
        }
        # what fits one fits all: they have as many points, and the same labels
        self._check_fits(curves[indices[0]], points[0], room)
        return curves

    def _curve(
        self, seq: int, points: list[Value], rows: list[Row], classes: list[Label] | None
    ) -> Curve:
        axes = split(points) if len(self._categorical) == 2 else (points,)
        made = [
            _axis(axis, categorical=categorical)
            for axis, categorical in zip(axes, self._categorical, strict=True)
        ]
        labels, blocks = _blocks([rows], classes)
        whole = (made[0], made[1]) if len(made) == 2 else made[0]
        return Curve(seq, whole, Table(labels, blocks[0]))

    def _check_fits(self, curve: Curve, points: list[Value], room: int) -> None:
        """Raise an error if a curve does not match the earlier ones, or is too large to publish."""
        labels, numbers, _ = curve.outputs
        if not kernels.are_moderate(numbers, MAX_NUMBER):
            large = next(number for number in numbers.T.flat if not is_moderate(number))
            raise ValueError(f"an output is not finite or too large to square: {large}")
        axes = curve.axes if isinstance(curve.axes, tuple) else (curve.axes,)
        kinds = list(zip(axes, self._categorical, strict=True))
        shape = tuple(len(axis) for axis, categorical in kinds if not categorical)
        size = math.prod(len({*as_grid(a)}) if c else len(a) for a, c in kinds)
        if size != len(numbers) or (self._shape is not None and shape != self._shape):
            raise ValueError(f"{len(numbers)} outputs do not fit a curve of {size} points")
        if self._is_number is not None and self._is_number != (labels == (None,)):
            raise TypeError(MIXED)
        known = self._classes.union([label for label in labels if label is not None])
        texts = text_bytes(points) + text_bytes(known)
        # the numbers of grid and effect, and the names in front of them
        each = NUMBER_BYTES * (len(points) + 2) * (max(len(known), 1) + 1) + texts
        if (1 + self._kept) * each > room:
            raise ValueError(
                f"a curve of {len(points):,} points and {len(known):,} classes does not fit into a "
                "message"
            )
        self._classes, self._shape = known, shape
        self._is_number = labels == (None,)

    def queue(self, reading: "Reading", run: Evaluation, i: int) -> list[Method]:
        """Queue an observation's increments and curve; return the methods that have one."""
        methods = [method for method, found in reading.found.items() if i in found]
        for method in methods:
            pending = self.pending[method]
            pending.queued.append(reading.found[method][i])
            pending.seqs.append(run.seqs[i])
            if (loss := run.loss[i]) is not None:
                pending.losses.append(loss)
        return methods

    def smooth(self, method: Method) -> None:
        """Move the estimates of a method by the queued increments or curves."""
        pending = self.pending[method]
        queued, pending.queued = pending.queued, []
        if queued and method in self.means:
            self.means[method].update(np.array(queued)[:, None])
            pending.increments += queued
        elif queued:
            moved = [effects.take_run(self._name, queued) for effects in self.effects]
            pending.increments += moved[0]
            if self.ice is not None:
                for seq, axes, outputs in queued:
                    self.ice.update(seq, as_grid(axes), outputs)

    def estimate(self, method: Method, place: int) -> dict[str, Any]:
        """Return the explanation's fields for the smoothing rate at index ``place``."""
        if method in self.means:
            means = self.means[method]
            error = means.std_errors[place, 0].item() if means.n else 0.0
            value = means.values[place, 0].item()
            return {"updates": means.n, "value": value, "std_error": error}
        n, value, std_error, axes, effect = self.effects[place].smoothed(self._name)
        by_class = effect if isinstance(effect, dict) else None
        return {
            "updates": n,
            "value": value,
            "std_error": std_error if n else 0.0,
            "effect": effect if by_class is None else list(by_class.values()),
            "classes": None if by_class is None else list(by_class),
            **dict(zip(("grid", "second_grid"), axes, strict=False)),
        }


Errors = dict[int, Exception]
"""Index in a run → why no method can use the observation."""


class Reading(NamedTuple):
    """The increments, or ICE curves, of one feature by method and index in a run; and errors."""

    found: dict[Method, Mapping[int, float | Curve]]
    errors: Errors


def _increments(
    run: Evaluation, method: Method, indices: list[int], loss: Loss, errors: Errors
) -> dict[int, float]:
    """Return increments by index in the run; add an error for an observation that has none."""
    blocks = run.outputs[method]
    found: dict[int, float] = {}
    for _, group in groupby(indices, lambda i: len(blocks[i] or ())):
        together = list(group)
        try:
            made = _together(run, method, together, loss)
        except MemoryError:
            raise
        except Exception as error:  # a user's loss may raise anything
            if len(together) == 1:
                errors.setdefault(together[0], error)
                continue
            for i in together:
                found |= _increments(run, method, [i], loss, errors)
            continue
        for i, increment in zip(together, made, strict=True):
            if is_moderate(increment):
                found[i] = increment
                continue
            large = f"the {method} increment is not finite or too large to square: {increment}"
            errors.setdefault(i, ValueError(large))
    return found


def _together(run: Evaluation, method: Method, indices: list[int], loss: Loss) -> list[float]:
    labels, predictions = _blocks([[run.prediction[i]] for i in indices], run.classes)
    _, blocks = _blocks([run.outputs[method][i] or [] for i in indices], run.classes)
    ys = [cast(Target, run.y[i]) for i in indices]  # None only for a method that needs none
    increments = increments_of(method)
    made: list[float] = increments(loss, ys, labels, predictions[:, 0], blocks).tolist()
    return made


def _blocks(rows: Sequence[Sequence[Row]], classes: list[Label] | None) -> tuple[Labels, Floats]:
    """Return equally long blocks of outputs as an array, shape (blocks, outputs, labels)."""
    try:
        numbers = np.array(rows, np.float64)
    except (TypeError, ValueError):
        raise ValueError(UNLIKE) from None
    labels: Labels = (None,) if classes is None else tuple(classes)
    if classes is None:
        numbers = numbers[..., None]
    if numbers.ndim != 3 or numbers.shape[2] != len({*labels}):
        raise ValueError(UNLIKE)
    return labels, numbers


def _axis(points: list[Value], *, categorical: bool) -> Axis:
    """Return a feature's evaluation points, or raise ``ValueError`` for one of another type."""
    if not categorical and set(map(type, points)) <= {int, float} and are_moderate(points):  # type: ignore[arg-type]
        return np.array(points, np.float64)
    for point in points:
        if categorical:
            fits = not isinstance(point, float)
        else:
            fits = not isinstance(point, bool | str) and is_moderate(point)
        if not fits:
            raise ValueError(f"a point is not of the feature's type: {describe(point)}")
    return points if categorical else np.array(points, np.float64)

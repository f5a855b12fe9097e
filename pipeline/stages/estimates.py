"""The estimates of one feature, group or pair of one stream."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
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
from fluxplain.explain.surface import Surface
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
    """Increments of one method that are not published yet."""

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
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
        self._name, self._methods = name, methods
        self._alphas, self._kept = alphas, ice
        self._categorical = categorical
        self._model_version: str | None = None
        self._begin()
        self.restart(methods)

    def _begin(self) -> None:
        self.means: dict[Method, ExponentialMeans] = {}
        self.effects: list[Effects] = []
        self.ice: IceCurves | None = None
        self._copies = 1  # curves in a message
        self._add_estimates()
        # properties of the curves so far
        self._classes: frozenset[Label] = frozenset()
        self._shape: tuple[int, ...] | None = None
        self._is_number: bool | None = None

    def _add_estimates(self) -> None:
        """Add estimates for methods that have none yet."""
        for method in self._methods:
            if not METHODS[method].is_curve:
                self.means.setdefault(method, ExponentialMeans(1, self._alphas))
            elif not self.effects:
                kinds = {self._name: self._categorical}
                self.effects = [Effects(kinds, alpha) for alpha in self._alphas]
                if self._kept and len(self._categorical) == 1:
                    self.ice, self._copies = IceCurves(self._kept), 1 + self._kept

    def restart(self, methods: Sequence[Method]) -> None:
        """Begin another stream with the estimates so far; new methods begin from scratch."""
        self._methods = methods
        self._add_estimates()
        self.incarnation = FIRST_INCARNATION
        self.chain = Chain()
        self.silent = 0
        self._has_begun = False
        self.pending = {method: Pending() for method in self._methods}
        self._queues: dict[Method, list[float]] = {method: [] for method in self._methods}
        self._curves: list[Curve] = []

    def take(self, run: Evaluation, first: int) -> Gap | None:
        """Take a run's seqs from index ``first`` on, all new; return the gap before them."""
        previous = run.seqs[first - 1] if first else run.previous_seq
        gap = self.chain.take(run.seqs[first], previous)
        self.chain.take(run.seqs[-1], run.seqs[first])
        return gap

    def set_model(self, model_version: str | None) -> None:
        """Set the model version; a new version resets the estimates."""
        if self._has_begun and model_version != self._model_version:
            self._begin()
        self._model_version, self._has_begun = model_version, True

    def read(self, run: Evaluation, first: int, loss: Loss, room: int) -> "Reading":
        """Return the increments and curves of a run from index ``first`` on; change no estimate.

        ``room`` is how many bytes the curve, with all classes seen so far, may take in a message.
        """
        reading = Reading({}, {}, {})
        for method, blocks in run.outputs.items():
            if method in self.means:
                asked = range(first, len(blocks))
                needs_label = METHODS[method].needs_label
                places = [
                    i for i in asked if blocks[i] and (run.y[i] is not None or not needs_label)
                ]
                reading.increments[method] = _increments(run, method, places, loss, reading.errors)
        for method in run.points.keys() & set(self._methods):
            points, blocks = run.points[method], run.outputs.get(method, [])
            asked = range(first, len(blocks))
            places = [i for i in asked if blocks[i] and points[i] and i not in reading.errors]
            self._read_curves(run, method, places, room, reading)
        return reading

    def _read_curves(
        self, run: Evaluation, method: Method, places: list[int], room: int, reading: "Reading"
    ) -> None:
        """Add the ICE curves to the reading, or the error of one that does not fit."""
        points, outputs = run.points[method], run.outputs[method]
        for i in places:
            try:
                curve = self._curve(run.seqs[i], points[i] or [], outputs[i] or [], run.classes)
                self._check_fits(curve, points[i] or [], room)
            except (ValueError, TypeError) as error:
                reading.errors.setdefault(i, error)
            else:
                reading.curves[i] = curve

    def _curve(
        self, seq: int, points: list[Value], rows: list[Row], classes: list[Label] | None
    ) -> Curve:
        axes = split(points) if len(self._categorical) == 2 else (points,)
        for axis, categorical in zip(axes, self._categorical, strict=True):
            _check_points(axis, categorical=categorical)
        made: list[Axis] = [
            axis if categorical else np.array(axis, np.float64)
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
        if self._copies * each > room:
            raise ValueError(
                f"a curve of {len(points):,} points and {len(known):,} classes does not fit into a "
                "message"
            )
        self._classes, self._shape = known, shape
        self._is_number = labels == (None,)

    def queue(self, reading: "Reading", run: Evaluation, i: int) -> list[Method]:
        """Queue an observation's increments and curve; return the methods that have one."""
        methods: list[Method] = []
        for method, increments in reading.increments.items():
            if i in increments:
                self._queues[method].append(increments[i])
                methods.append(method)
        if i in reading.curves:
            self._curves.append(reading.curves[i])
            methods.append(next(method for method in self._methods if method not in self.means))
        for method in methods:
            pending = self.pending[method]
            pending.seqs.append(run.seqs[i])
            if (loss := run.loss[i]) is not None:
                pending.losses.append(loss)
        return methods

    def smooth(self, method: Method) -> None:
        """Move the estimates of a method by the queued increments or curves."""
        if method in self.means:
            queue = self._queues[method]
            if queue:
                self.means[method].update(np.array(queue)[:, None])
                self.pending[method].increments += queue
                self._queues[method] = []
        elif self._curves:
            curves, self._curves = self._curves, []
            moved = [effects.take_run(self._name, curves) for effects in self.effects]
            self.pending[method].increments += moved[0]
            if self.ice is not None:
                for seq, axes, outputs in curves:
                    self.ice.update(seq, as_grid(cast(Axis, axes)), outputs)

    def estimate(self, method: Method, place: int) -> dict[str, Any]:
        """Return the explanation's fields for the smoothing rate at index ``place``."""
        if method in self.means:
            means = self.means[method]
            error = means.std_errors[place, 0].item() if means.n else 0.0
            value = means.values[place, 0].item()
            return {"updates": means.n, "value": value, "std_error": error}
        effect = self.effects[place].of(self._name)
        curve = effect.curve if isinstance(effect, Surface) else effect
        fields: dict[str, Any] = {
            "updates": curve.n,
            "value": curve.value,
            "std_error": curve.std_error if curve.n else 0.0,
            "effect": effect.effect,
        }
        if isinstance(effect.effect, dict):
            fields |= {"effect": list(effect.effect.values()), "classes": list(effect.effect)}
        if isinstance(effect, Surface):
            fields["grid"], fields["second_grid"] = effect.axes
        else:
            fields["grid"] = effect.grid
        return fields

    def smooth_all(self) -> None:
        """Move the estimates of all methods."""
        for method in self._methods:
            self.smooth(method)


class Reading(NamedTuple):
    """The increments, ICE curves and errors of one feature in a run, by index in the run.

    ``increments`` is by method first. An error makes the observation unusable for all methods.
    """

    increments: dict[Method, dict[int, float]]
    curves: dict[int, Curve]
    errors: dict[int, Exception]


def _increments(
    run: Evaluation,
    method: Method,
    places: list[int],
    loss: Loss,
    errors: dict[int, Exception],
) -> dict[int, float]:
    """Return increments by index in the run; add observations that have none to the errors."""
    blocks = run.outputs[method]
    found: dict[int, float] = {}
    for _, group in groupby(places, lambda i: len(blocks[i] or ())):
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
        else:
            for i, increment in zip(together, made, strict=True):
                if is_moderate(increment):
                    found[i] = increment
                else:
                    errors.setdefault(
                        i,
                        ValueError(
                            f"the {method} increment is not finite or too large to square: "
                            f"{increment}"
                        ),
                    )
    return found


def _together(run: Evaluation, method: Method, places: list[int], loss: Loss) -> list[float]:
    labels, predictions = _blocks([[run.prediction[i]] for i in places], run.classes)
    _, blocks = _blocks([run.outputs[method][i] or [] for i in places], run.classes)
    ys = [cast(Target, run.y[i]) for i in places]  # None only for a method that needs none
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

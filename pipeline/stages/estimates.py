"""The estimates of one feature, group or pair of one stream."""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

import numpy as np

from fluxplain.evaluate import Table, Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import MIXED
from fluxplain.explain import kernels
from fluxplain.explain.curve import IceCurves
from fluxplain.explain.effects import Curve, Effects
from fluxplain.explain.losses import Loss
from fluxplain.explain.method import as_grid
from fluxplain.explain.point_means import most_points
from fluxplain.explain.smoothing import ExponentialMeans
from fluxplain.explain.trends import Trends
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.evaluation import Evaluation
from fluxplain.schemas.methods import METHODS, Method
from fluxplain.schemas.numbers import MAX_NUMBER, is_moderate
from fluxplain.schemas.observation import Id
from fluxplain.schemas.record import FIRST_INCARNATION, Label
from fluxplain.stages.answered import (
    Answered,
    Errors,
    Reading,
    axis_of,
    increments_in,
    signed_in,
)
from fluxplain.stages.chain import Chain, Gap
from fluxplain.stages.limits import NUMBER_BYTES, text_bytes
from fluxplain.stages.pair_points import split
from fluxplain.stages.partners import Partners, known, partner_of


@dataclass(slots=True)
class Pending:
    """Observations of one method that are not published yet.

    The estimates have moved by ``increments``, not yet by the increments or curves in ``queued``.
    ``trends`` are those of the curves behind the increments, ``partners`` those of the queued
    interactions.
    """

    previous_seq: int | None = None
    seqs: list[int] = field(default_factory=list)
    queued: list[Any] = field(default_factory=list)
    increments: list[float] = field(default_factory=list)
    trends: list[float] = field(default_factory=list)
    partners: list[int] = field(default_factory=list)
    values: list[Value | None] = field(default_factory=list)
    ids: list[Id | None] = field(default_factory=list)
    contrasts: list[Contrast] = field(default_factory=list)
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

    Each of the smoothing rates ``alphas`` smooths the same increments. ``reaches`` are how many
    updates those of each method may depend on each other, None if they are biased by an unknown
    amount. ``categorical`` says whether the feature is categorical, or each one of a pair; ``ice``
    is the number of ICE curves to keep, and ``players`` names the partners of interactions. With
    ``anchored``, numeric features' evaluation points lie on a lattice.
    ``chain`` holds the seqs taken, ``silent`` counts observations since the last explanation.
    """

    def __init__(
        self,
        name: str,
        methods: Sequence[Method],
        alphas: Sequence[float],
        *,
        reaches: Mapping[Method, int | None],
        categorical: tuple[bool, ...],
        ice: int,
        players: Sequence[str],
        anchored: bool,
    ) -> None:
        self._anchored = anchored and categorical == (False,)
        self._name, self._alphas, self._reaches = name, alphas, reaches
        self._categorical = categorical
        self._kept = ice if len(categorical) == 1 else 0
        self._players = players
        self._trends = Trends({name: categorical})  # of all models
        self._model_version: str | None = None
        self._forget_model()
        self.restart(methods)

    def _forget_model(self) -> None:
        self.means: dict[Method, ExponentialMeans] = {}
        self.partners: dict[Method, Partners] = {}
        self.effects: list[Effects] = []
        self.ice: IceCurves | None = None
        # properties of the curves so far
        self._classes: frozenset[Label] = frozenset()
        self._shape: tuple[int, ...] | None = None
        self._is_number: bool | None = None
        self._fitting: object = None  # the form of a numeric feature's last curve, which fitted

    def _add_estimates(self) -> None:
        """Add estimates for methods that have none yet."""
        for method in self.pending:
            if METHODS[method].has_partners and method not in self.partners:
                reach = self._reaches[method]
                self.partners[method] = Partners(self._players, self._alphas, reach)
            if not METHODS[method].is_curve:
                self.means.setdefault(method, self._new_means(method))
            elif not self.effects:
                kinds = {self._name: self._categorical}
                reach = cast(int, self._reaches[method])  # curves are not biased
                self.effects = [
                    Effects(kinds, alpha, reach=reach, anchored=self._anchored, trends=trends)
                    for alpha, trends in zip_longest(self._alphas, [self._trends])
                ]
                self.ice = IceCurves(self._kept) if self._kept else None

    def _new_means(self, method: Method) -> ExponentialMeans:
        count = 2 if METHODS[method].is_signed else 1
        return ExponentialMeans(count, self._alphas, reach=self._reaches[method])

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

    def read(self, run: Evaluation, first: int, loss: Loss, room: int) -> Reading:
        """Return the increments and curves of a run from index ``first`` on; change no estimate.

        ``room`` is how many bytes the curve, with all classes seen so far, may take in a message.
        """
        contrasts = (run.contrasts or {}).items()
        by_seq = {(method, each.seq): each for method, several in contrasts for each in several}
        reading, answered = Reading({}, {}, by_seq, {}), Answered(run)
        for method in run.outputs:
            if method in self.means:
                needs_label = METHODS[method].needs_label
                indices = [
                    i
                    for i, size in enumerate(answered.sizes(method))
                    if size and i >= first and (run.y[i] is not None or not needs_label)
                ]
                indices = self._partnered(answered, method, indices, reading.errors)
                found = increments_in(answered, method, indices, loss, reading.errors)
                reading.found[method] = found
                if METHODS[method].is_signed:
                    reading.signed[method] = signed_in(answered, method, [*found])
        for method in run.points.keys() & (self.pending.keys() - self.means.keys()):
            reading.found[method] = self._curves(answered, method, first, room, reading.errors)
        return reading

    def _partnered(
        self, answered: Answered, method: Method, indices: list[int], errors: Errors
    ) -> list[int]:
        """Return the observations whose answer has a partner; all, if the method needs none."""
        for i in indices if method in self.partners else ():
            try:
                partner_of(answered.run, method, i, len(self._players))
            except ValueError as error:
                errors.setdefault(i, error)
        return [i for i in indices if i not in errors]

    def _curves(
        self, answered: Answered, method: Method, first: int, room: int, errors: Errors
    ) -> dict[int, Curve]:
        """Return ICE curves by index in the run; add an error for one that does not fit."""
        run, sizes = answered.run, answered.sizes(method)
        indices = [
            i
            for i, (grid, size) in enumerate(zip(run.points[method], sizes, strict=False))
            if i >= first and size and grid is not None and len(grid) and i not in errors
        ]
        if self._categorical == (False,):
            with suppress(ValueError, TypeError):  # one by one, to tell which does not fit
                return self._alike_curves(answered, method, indices, room)
        found: dict[int, Curve] = {}
        for i in indices:
            grid = answered.points(method, i)
            try:
                curve = self._curve(answered, method, i)
                self._check_numbers(curve.outputs.numbers)
                self._check_fits(curve, grid, room)
            except (ValueError, TypeError) as error:
                errors[i] = error
            else:
                found[i] = curve
        return found

    def _alike_curves(
        self, answered: Answered, method: Method, indices: list[int], room: int
    ) -> dict[int, Curve]:
        """Return the ICE curves of a numeric feature, if all have as many points and outputs.

        Raises ``ValueError`` or ``TypeError`` if they are not alike, or one does not fit.
        """
        if not indices:
            return {}
        run, labels = answered.run, answered.labels
        grids, blocks = answered.grids(method, indices), answered.blocks(method, indices)
        self._check_numbers(blocks.reshape(-1, max(blocks.shape[2], 1)))
        curves = {
            i: Curve(run.seqs[i], grid, Table(labels, numbers))
            for i, grid, numbers in zip(indices, grids, blocks, strict=True)
        }
        # what fits one fits all: they have as many points, and the same labels
        self._check_fits(curves[indices[0]], grids[0], room)
        return curves

    def _curve(self, answered: Answered, method: Method, i: int) -> Curve:
        points = answered.points(method, i)
        axes = split(points) if len(self._categorical) == 2 else (points,)
        made = [
            axis_of(axis, categorical=categorical)
            for axis, categorical in zip(axes, self._categorical, strict=True)
        ]
        [block] = answered.blocks(method, [i])
        whole = (made[0], made[1]) if len(made) == 2 else made[0]
        return Curve(answered.run.seqs[i], whole, Table(answered.labels, block))

    @staticmethod
    def _check_numbers(numbers: Floats) -> None:
        """Raise ``ValueError`` if a row has an output that cannot be squared."""
        if not kernels.are_moderate(numbers, MAX_NUMBER):
            large = next(number for number in numbers.T.flat if not is_moderate(number))
            raise ValueError(f"an output is not finite or too large to square: {large}")

    def _check_fits(self, curve: Curve, points: Sequence[Value] | Floats, room: int) -> None:
        """Raise an error if a curve does not match the earlier ones, or is too large to publish."""
        labels, numbers, _ = curve.outputs
        form = labels, numbers.shape, len(points), room
        if self._categorical == (False,) and form == self._fitting:
            return
        axes = curve.axes if isinstance(curve.axes, tuple) else (curve.axes,)
        kinds = list(zip(axes, self._categorical, strict=True))
        shape = tuple(len(axis) for axis, categorical in kinds if not categorical)
        size = math.prod(len({*as_grid(a)}) if c else len(a) for a, c in kinds)
        if size != len(numbers) or (self._shape is not None and shape != self._shape):
            raise ValueError(f"{len(numbers)} outputs do not fit a curve of {size} points")
        if self._is_number is not None and self._is_number != (labels == (None,)):
            raise TypeError(MIXED)
        known = self._classes.union([label for label in labels if label is not None])
        texts = text_bytes(known)
        if not isinstance(points, np.ndarray):
            texts += text_bytes(points)
        # the numbers of grid, effect and errors, and the names in front of them
        n = most_points(len(points), len(known)) if self._anchored else len(points)
        of_class, of_ice = NUMBER_BYTES * (n + 2), NUMBER_BYTES * (len(points) + 2)
        classes = max(len(known), 1)
        ice = self._kept * (of_ice * (classes + 1) + texts)
        if ice + of_class * (2 * classes + 1) + texts > room:
            raise ValueError(
                f"a curve of {len(points):,} points and {len(known):,} classes does not fit into a "
                "message with its standard errors: take fewer grid points or classes"
            )
        self._classes, self._shape = known, shape
        self._is_number = labels == (None,)
        self._fitting = form

    def queue(self, reading: Reading, run: Evaluation, i: int) -> list[Method]:
        """Queue an observation's increments and curve; return the methods that have one."""
        methods = [method for method, found in reading.found.items() if i in found]
        seq, loss = run.seqs[i], run.loss[i]
        value, id_ = run.values[i] if run.values else None, run.ids[i] if run.ids else None
        for method in methods:
            pending, found = self.pending[method], reading.found[method][i]
            signed, contrast = reading.signed.get(method), reading.contrasts.get((method, seq))
            pending.queued.append(found if signed is None else (found, signed[i]))
            if method in self.partners:
                pending.partners.append(partner_of(run, method, i, len(self._players)))
            pending.seqs.append(seq)
            pending.values.append(value)
            pending.ids.append(id_)
            if contrast is not None:
                pending.contrasts.append(contrast)
            if loss is not None:
                pending.losses.append(loss)
        return methods

    def smooth(self, method: Method) -> None:
        """Move the estimates of a method by the queued increments or curves."""
        pending = self.pending[method]
        queued = pending.queued
        if not queued:
            return
        pending.queued = []
        if method in self.means:
            increments = np.array(queued).reshape(len(queued), -1)
            self.means[method].update(increments)
            pending.increments += increments[:, 0].tolist()
            if method in self.partners:
                self.partners[method].update(pending.partners, queued)
                pending.partners = []
            return
        moved = [effects.take_run(self._name, queued) for effects in self.effects]
        for increment, trend in moved[0]:
            pending.increments.append(increment)
            pending.trends.append(trend)
        if self.ice is not None:
            for seq, axes, outputs in queued:
                self.ice.update(seq, as_grid(axes), outputs)

    def trends(self, method: Method) -> list[float] | None:
        """Return the trends of the pending ICE curves; None for other methods and for pairs."""
        has_trends = METHODS[method].is_curve and len(self._categorical) == 1
        return self.pending[method].trends if has_trends else None

    def estimate(self, method: Method, place: int) -> dict[str, Any]:
        """Return the explanation's fields for the smoothing rate at index ``place``."""
        if method in self.means:
            means = self.means[method]
            value, error = means.values.item(place, 0), means.std_error(place, 0)
            signed = means.values.item(place, 1) if METHODS[method].is_signed else None
            partners = self.partners.get(method)
            interactions = None if partners is None else partners.strongest(place)
            estimates = {"updates": means.n, "value": value, "std_error": known(error)}
            return estimates | {"signed": signed, "interactions": interactions}
        n, value, std_error, axes, effect, errors = self.effects[place].smoothed(self._name)
        by_class = effect if isinstance(effect, dict) else None
        return {
            "updates": n,
            "value": value,
            "std_error": known(std_error),
            "effect": effect if by_class is None else list(by_class.values()),
            "effect_std_error": _all_known(errors),
            "classes": None if by_class is None else list(by_class),
            **dict(zip(("grid", "second_grid"), axes, strict=False)),
        }


def _all_known(errors: Any) -> Any:
    """Return the standard errors of a curve, or of one for each class; None for unknown ones."""
    if isinstance(errors, dict):
        return [_all_known(of_class) for of_class in errors.values()]
    return None if errors is None else [*map(known, errors)]

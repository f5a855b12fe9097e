"""The answers about a run of observations as arrays, and the increments they give."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain, groupby
from typing import Any, NamedTuple, cast

import numpy as np

from fluxplain.evaluate import Value
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels, in_order
from fluxplain.explain import kernels
from fluxplain.explain.effects import Curve
from fluxplain.explain.losses import Loss, Target
from fluxplain.explain.method import Axis
from fluxplain.schemas.contrast import Contrast
from fluxplain.schemas.evaluation import Evaluation, Row
from fluxplain.schemas.methods import Method
from fluxplain.schemas.numbers import MAX_NUMBER, are_moderate, is_moderate
from fluxplain.schemas.record import describe
from fluxplain.stages.method_code import increments_of, signed_of

UNLIKE = "its outputs are not all alike: numbers, or one probability for each class"

Errors = dict[int, Exception]
"""Index in a run → why no method can use the observation."""


class Reading(NamedTuple):
    """The increments, or ICE curves, of one feature by method and index in a run; and errors.

    ``signed`` are the numbers whose sizes are increments; ``contrasts`` are by method and seq.
    """

    found: dict[Method, Mapping[int, float | Curve]]
    signed: dict[Method, Mapping[int, float]]
    contrasts: Mapping[tuple[Method, int], Contrast]
    errors: Errors


class Answered:
    """The outputs of a run as arrays; each is converted once.

    ``labels`` are the columns. What is not alike raises ``ValueError`` where it is asked for.
    """

    def __init__(self, run: Evaluation) -> None:
        self.run = run
        self.labels: Labels = (None,) if run.classes is None else tuple(run.classes)
        self._whole: dict[Method | None, Floats] = {}
        with suppress(ValueError):  # asked for one by one, to tell which is not alike
            self._whole = self._converted()

    def sizes(self, method: Method) -> list[int]:
        """Return the number of outputs about each observation."""
        blocks = self.run.outputs.get(method, [])
        if isinstance(blocks, np.ndarray):
            return [blocks.shape[1]] * len(blocks)
        return [len(block or ()) for block in blocks]

    def points(self, method: Method, i: int) -> list[Value]:
        """Return the evaluation points of an observation."""
        return _listed(self.run.points[method][i])

    def grids(self, method: Method, indices: list[int]) -> Floats:
        """Return the evaluation points of a numeric feature, shape (observations, points).

        Raises ``ValueError`` if an observation has others, or more of them.
        """
        points: Any = self.run.points[method]
        if isinstance(points, np.ndarray):
            grids = points if len(indices) == len(points) else points[indices]
            if not kernels.are_moderate(grids, MAX_NUMBER):
                raise ValueError("a point is not finite, or too large")
            return grids
        lists = [points[i] for i in indices]
        if len({*map(len, lists)}) > 1:
            raise ValueError("they differ in their number of points")
        axis = axis_of([*chain.from_iterable(lists)], categorical=False)
        return np.asarray(axis).reshape(len(lists), len(lists[0]))

    def predictions(self, indices: list[int]) -> Floats:
        """Return the outputs on the observations themselves, shape (observations, labels)."""
        whole = self._whole.get(None)
        if whole is None:
            return self._as_array([self.run.prediction[i] for i in indices])
        return whole if len(indices) == len(whole) else whole[indices]

    def blocks(self, method: Method, indices: list[int]) -> Floats:
        """Return the outputs of a method, shape (observations, outputs, labels)."""
        whole = self._whole.get(method)
        if whole is not None:
            return whole if len(indices) == len(whole) else whole[indices]
        blocks = [_listed(self.run.outputs[method][i]) for i in indices]
        if len({*map(len, blocks)}) > 1:
            raise ValueError(UNLIKE)
        numbers = self._as_array([*chain.from_iterable(blocks)])
        # not -1: a model that knows no class yet has no numbers
        return numbers.reshape(len(blocks), len(blocks[0]), numbers.shape[1])

    def _converted(self) -> dict[Method | None, Floats]:
        """Return the arrays of all methods with equally many outputs about each observation.

        Those made of lists are parts of one: to convert many small lists takes longer.
        """
        n, rows = len(self.run.seqs), list[Row]()
        parts: dict[Method | None, slice] = {}
        whole: dict[Method | None, Floats] = {}
        if isinstance(self.run.prediction, np.ndarray):
            whole[None] = self._in_columns(self.run.prediction)
        else:
            parts[None] = slice(0, n)
            rows += self.run.prediction
        for method, blocks in self.run.outputs.items():
            if isinstance(blocks, np.ndarray):
                whole[method] = self._in_columns(blocks)
            elif None not in blocks and len({*map(len, cast(list[list[Row]], blocks))}) == 1:
                begin = len(rows)
                rows += chain.from_iterable(cast(list[list[Row]], blocks))
                parts[method] = slice(begin, len(rows))
        if parts:
            numbers = self._as_array(rows)
            for method_, part in parts.items():
                shape = n, (part.stop - part.start) // n, numbers.shape[1]
                whole[method_] = numbers[part].reshape(shape if method_ else (n, shape[2]))
        return whole

    def _in_columns(self, numbers: Floats) -> Floats:
        """Return outputs with their labels as the last axis, as compiled functions take them."""
        together = np.ascontiguousarray(numbers, np.float64)
        if self.run.classes is None:
            together = together[..., None]
        if together.shape[-1] != len({*self.labels}):
            raise ValueError(UNLIKE)
        return together

    def _as_array(self, rows: list[Row]) -> Floats:
        """Return rows as an array, shape (rows, labels)."""
        try:
            numbers = np.array(rows, np.float64)
        except (TypeError, ValueError):
            raise ValueError(UNLIKE) from None
        if numbers.ndim != (1 if self.run.classes is None else 2):
            raise ValueError(UNLIKE)
        return self._in_columns(numbers)


def _listed(items: Any) -> list[Any]:
    return items.tolist() if isinstance(items, np.ndarray) else items or []


def increments_in(
    answered: Answered, method: Method, indices: list[int], loss: Loss, errors: Errors
) -> dict[int, float]:
    """Return increments by index in the run; add an error for an observation that has none."""
    found: dict[int, float] = {}
    for _, group in groupby(indices, answered.sizes(method).__getitem__):
        together = list(group)
        try:
            made = _together(answered, method, together, loss)
        except MemoryError:
            raise
        except Exception as error:  # a user's loss may raise anything
            if len(together) == 1:
                errors.setdefault(together[0], error)
                continue
            for i in together:
                found |= increments_in(answered, method, [i], loss, errors)
            continue
        for i, increment in zip(together, made, strict=True):
            if is_moderate(increment):
                found[i] = increment
                continue
            large = f"the {method} increment is not finite or too large to square: {increment}"
            errors.setdefault(i, ValueError(large))
    return found


def _together(answered: Answered, method: Method, indices: list[int], loss: Loss) -> list[float]:
    run, increments = answered.run, increments_of(method)
    predictions, blocks = answered.predictions(indices), answered.blocks(method, indices)
    ys = [cast(Target, run.y[i]) for i in indices]  # None only for a method that needs none
    made: list[float] = increments(loss, ys, answered.labels, predictions, blocks).tolist()
    return made


def signed_in(answered: Answered, method: Method, indices: list[int]) -> dict[int, float]:
    """Return the numbers whose sizes are the increments of observations, by index in the run.

    Classes are in the same order as those of curves, whichever of them the model knew first.
    """
    found: dict[int, float] = {}
    columns = [*map(answered.labels.index, in_order(answered.labels))]
    for _, group in groupby(indices, answered.sizes(method).__getitem__):
        together = list(group)
        numbers = signed_of(method)(answered.blocks(method, together)[:, :, columns])
        found |= zip(together, numbers.tolist(), strict=True)
    return found


def axis_of(points: list[Value], *, categorical: bool) -> Axis:
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

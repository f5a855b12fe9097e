"""Losses: pure functions of one label and one model output.

Classification losses take class → probability, regression losses take a number. The user's own
loss is any such function.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from fluxplain.evaluate import Label, Output, Table
from fluxplain.evaluate.compiled import plain
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels
from fluxplain.explain import loss_kernels as kernels
from fluxplain.explain.river_losses import Metric, is_river, loss_of

Target = Label | float
"""A label: a class, or a number."""

Loss = Callable[[Target, Output], float]

AnyLoss = str | Loss | Metric | type[Metric]
"""The name of a loss, a function of (label, output), or a metric of River or its class."""

_loss = plain(kernels.loss)

MOST_ROOMS = 4.0
"""A probability's deviation is at most so many times half of its distance to 0 or 1."""

MOST_MOVED = 20
"""Most probabilities of an output that are moved."""

MOST_TOLD = 5
"""Most classes of a model that an error names."""

TWO = 2.0
"""The exponent of Brier's squares; see :func:`~fluxplain.explain.loss_kernels.loss`."""


def cross_entropy(y: Target, output: Output) -> float:
    """Return ``-log p(y)``, with the probability clipped to [1e-15, 1 - 1e-15]."""
    return _of_class(kernels.CROSS_ENTROPY, y, _probabilities(output, "cross_entropy"))


def zero_one(y: Target, output: Output) -> float:
    """Return 0.0 if ``y`` is predicted, else 1.0.

    The predicted class is the most probable one, of equals the first. Without probabilities nothing
    is predicted. A number is compared directly.
    """
    if isinstance(output, dict):
        return _of_class(kernels.ZERO_ONE, y, output)
    return float(output != y)


def predicted_class(probabilities: dict[Label, float]) -> Label | None:
    """Return the most probable class, of equals the first, as River does; None without classes."""
    return max(probabilities, key=probabilities.__getitem__) if probabilities else None


def brier(y: Target, output: Output) -> float:
    """Return the sum over classes of (probability - indicator)², in [0, 2] (Brier, 1950)."""
    return _of_class(kernels.BRIER, y, _probabilities(output, "brier"))


def absolute_error(y: Target, output: Output) -> float:
    """Return ``|output - y|``."""
    return _loss(kernels.ABSOLUTE_ERROR, [_number(output, "absolute_error")], -1, float(y), TWO)


def squared_error(y: Target, output: Output) -> float:
    """Return ``(output - y)²``."""
    return _loss(kernels.SQUARED_ERROR, [_number(output, "squared_error")], -1, float(y), TWO)


LOSSES: dict[str, Loss] = {
    loss.__name__: loss for loss in (cross_entropy, zero_one, brier, absolute_error, squared_error)
}


_KINDS = {id(loss): kind for kind, loss in enumerate(LOSSES.values())}
"""In the order of the kernels' numbers."""


class CompiledLoss(NamedTuple):
    """A loss of this module with labels, for kernels.

    ``labels`` are the places of the labels among the classes, -1 for an unknown one, and ``ys``
    their numbers: those of each block of outputs, or one for all. ``two`` is 2.0: as a constant,
    the compiler would square differently from Python.
    """

    kind: int
    labels: Places
    ys: Floats
    two: float = TWO


def compiled_loss(loss: Loss, ys: Sequence[Target], labels: Labels) -> CompiledLoss | None:
    """Return the loss for kernels; None for one that is not compiled, or does not fit."""
    kind = _kind(loss, labels)
    return None if kind is None else _compiled(kind, tuple(ys), labels)


@lru_cache(maxsize=4)  # methods and features take turns with the same labels
def _compiled(kind: int, ys: tuple[Target, ...], labels: Labels) -> CompiledLoss:
    if kind >= kernels.ABSOLUTE_ERROR:
        # None would become NaN as an array
        return CompiledLoss(kind, np.full(len(ys), -1), np.array([float(y) for y in ys]))
    columns = {label: place for place, label in enumerate(labels)}
    places = np.array([columns.get(_label(y), -1) for y in ys])
    return CompiledLoss(kind, places, np.zeros(len(ys)))


def losses_on(loss: Loss, ys: Sequence[Target], labels: Labels, blocks: Floats) -> Floats:
    """Return the loss on each output, shape (blocks, outputs), by calling the function.

    ``ys`` has the label of each block, or one for all; ``blocks`` has the shape (blocks, outputs,
    labels).
    """
    each = ys if len(ys) > 1 else [*ys] * len(blocks)
    # a user's loss may return NumPy numbers or booleans
    given = [
        [float(loss(y, output)) for output in Table(labels, block).outputs()]
        for y, block in zip(each, blocks, strict=True)
    ]
    return np.array(given, np.float64).reshape(blocks.shape[:2])


@np.errstate(all="ignore")  # what is not finite is left out
def excesses_of(
    loss: Loss, ys: Sequence[Target], labels: Labels, blocks: Floats, losses: Floats
) -> Floats:
    """Return the excess of a loss of one's own on each output, shape (blocks, outputs).

    ``blocks`` have the outputs and, after them, their variances; ``losses`` are those on the
    outputs. The excess is half of the second differences of the loss, so of second order, for
    losses with kinks on average over many labels. It is 0 where the loss refuses a moved output,
    and for a loss with the attribute ``is_curved = False``. See :func:`~.loss_kernels.excess`.
    """
    found, outputs = np.zeros(losses.shape), losses.shape[1]
    which = blocks[:, outputs:].any(axis=2)
    if not getattr(loss, "is_curved", True) or not which.any():
        return found
    numbers, deviations = blocks[:, :outputs][which], np.sqrt(blocks[:, outputs:][which])
    distances = distances_of(numbers, deviations, labels)
    places, classes = np.nonzero(distances)
    given = np.full((*distances.shape, 2), np.nan)
    each = ys if len(ys) > 1 else [*ys] * len(blocks)
    labels_of = [each[i] for i in np.nonzero(which)[0].tolist()]
    moved = moved_outputs(numbers[places], classes, distances[places, classes])
    on = iter(Table(labels, moved.reshape(-1, len(labels))).outputs())
    for place, c in zip(places.tolist(), classes.tolist(), strict=True):
        given[place, c] = [_loss_or_nan(loss, labels_of[place], next(on)) for _ in range(2)]
    differences = given.sum(axis=2) - 2.0 * losses[which][:, None]
    terms = np.where(distances > 0.0, differences * (deviations / distances) ** 2, 0.0)
    # where each of n probabilities moves all, n of them move too much
    n = np.count_nonzero(distances, axis=1)
    excesses = np.add.accumulate(terms, axis=1)[:, -1] / 2.0 * np.where(n > 1, 1.0 - 1.0 / n, 1.0)
    found[which] = np.where(np.isfinite(excesses), excesses, 0.0)
    return found


def distances_of(numbers: Floats, deviations: Floats, labels: Labels) -> Floats:
    """Return how far to move each number of some outputs, shape (outputs, numbers); 0 for not.

    A deviation; of a probability, at most half of the way to 0 or 1. Numbers that vary by more than
    probabilities can are left where they are, and of many those that vary least. Of two
    probabilities, one moves both.
    """
    if labels == (None,):
        return deviations
    room = np.clip(np.minimum(numbers, 1.0 - numbers) / 2.0, 0.0, None)
    distances = np.where(deviations <= MOST_ROOMS * room, np.minimum(deviations, room), 0.0)
    rest = np.argsort(-deviations, axis=1, kind="stable")[:, MOST_MOVED:]
    np.put_along_axis(distances, rest, 0.0, axis=1)
    moving = distances > 0.0
    is_one_enough = np.count_nonzero(moving, axis=1, keepdims=True) == 2
    distances[is_one_enough & (np.cumsum(moving, axis=1) > 1)] = 0.0
    return distances


def moved_outputs(numbers: Floats, classes: Places, distances: Floats) -> Floats:
    """Return outputs with one number moved up, and down, shape (outputs, 2, numbers).

    If there are several numbers, they are probabilities: the others fall and rise in proportion, so
    that a sum of 1 stays.

    Examples
    --------
    >>> moved_outputs(np.array([[0.5, 0.5]]), np.array([0]), np.array([0.25]))
    array([[[0.75, 0.25],
            [0.25, 0.75]]])
    """
    rows = np.arange(len(numbers))
    own = numbers[rows, classes][:, None]
    by = distances[:, None] * np.array([1.0, -1.0])
    moved: Floats = numbers[:, None] * (1.0 - by / (1.0 - own))[:, :, None]
    moved[rows, :, classes] = own + by
    return moved


def _loss_or_nan(loss: Loss, y: Target, output: Output) -> float:
    try:
        return float(loss(y, output))
    except Exception:  # it took the outputs of the model, and was not made for ours
        return math.nan


def _kind(loss: Loss, labels: Labels) -> int | None:
    kind = _KINDS.get(id(loss))
    fits = kind is not None and (kind >= kernels.ABSOLUTE_ERROR) == (labels == (None,))
    return kind if fits else None


def get_loss(loss: AnyLoss) -> Loss:
    """Return the loss of that name or of that metric of River, or the function itself.

    Raises
    ------
    ValueError
        If no loss has that name, or the metric is no mean of losses of single records.

    Examples
    --------
    >>> get_loss("brier") is brier
    True
    >>> from river import metrics
    >>> get_loss(metrics.MSE()) is squared_error
    True
    """
    if is_river(loss):
        loss = loss_of(loss)
    if callable(loss):
        return cast(Loss, loss)
    try:
        return LOSSES[cast(str, loss)]
    except (KeyError, TypeError):  # TypeError: not even hashable
        raise ValueError(
            f"unknown loss {loss!r}: use one of {', '.join(LOSSES)}, a metric of River, or a "
            "function of (label, output)"
        ) from None


def loss_for(model: object, loss: AnyLoss | None) -> Loss:
    """Return a loss as :func:`get_loss` does; for None the one that suits the model.

    That is the squared error for a regressor of River or scikit-learn, and the cross-entropy for
    every other model.
    """
    if loss is not None:
        return get_loss(loss)
    return squared_error if _is_regressor(model) else cross_entropy


def _is_regressor(model: object) -> bool:
    from river.base import Estimator  # noqa: PLC0415  slow to load

    from fluxplain.evaluate import model_kind  # noqa: PLC0415  loads River

    kind = model_kind(model)
    if kind != "unknown":
        return kind == "regressor"
    # River's wrappers of models also seem to have tags, whose method raises
    if not hasattr(model, "__sklearn_tags__") or isinstance(model, Estimator):
        return False
    from sklearn.base import is_regressor  # noqa: PLC0415  optional

    return bool(is_regressor(model))


def check_label(loss: Loss, y: Target | None, labels: Labels) -> None:
    """Raise ``ValueError`` for a label that no class can be, ``TypeError`` for None.

    Their loss would be wrong.

    ``labels`` are the classes that the model has told, if any. A new class is none of them, but of
    the same kind: text or no text. Losses of users may take any label, and need none.

    Examples
    --------
    >>> check_label(cross_entropy, "yes", (False, True))
    Traceback (most recent call last):
        ...
    ValueError: the label is 'yes', but the model's classes are False, True
    """
    if id(loss) not in _KINDS:
        return
    if y is None:
        raise TypeError("the label is None, but the loss needs one")
    classes = [label for label in labels if label is not None]
    if classes and not any(isinstance(each, str) == isinstance(y, str) for each in classes):
        told = ", ".join(map(repr, classes[:MOST_TOLD]))
        raise ValueError(f"the label is {y!r}, but the model's classes are {told}")


def _of_class(kind: int, y: Target, probabilities: dict[Label, float]) -> float:
    label = [*probabilities].index(_label(y)) if y in probabilities else -1
    return _loss(kind, [*probabilities.values()], label, 0.0, TWO)


def _probabilities(output: Output, loss: str) -> dict[Label, float]:
    if isinstance(output, dict):
        return output
    raise TypeError(
        f"{loss} needs class probabilities, but the model gave the number {output!r}: "
        "use absolute_error or squared_error"
    )


def _number(output: Output, loss: str) -> float:
    if isinstance(output, dict):
        raise TypeError(
            f"{loss} needs a number, but the model gave class probabilities: "
            "use cross_entropy, zero_one or brier"
        )
    return output


def _label(y: Target) -> Label:
    return y  # type: ignore[return-value]  # a float label finds no class, and costs as much

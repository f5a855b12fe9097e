"""Losses: pure functions of one label and one model output.

Classification losses take class → probability, regression losses take a number. The user's own
loss is any such function.
"""

from collections.abc import Callable, Sequence

import numpy as np

from fluxplain.evaluate import Label, Output, Table
from fluxplain.evaluate.compiled import plain
from fluxplain.evaluate.encoding import Floats
from fluxplain.evaluate.table import Labels
from fluxplain.explain import kernels

Target = Label | float
"""A label: a class, or a number."""

Loss = Callable[[Target, Output], float]

_surprise = plain(kernels.surprise)


def cross_entropy(y: Target, output: Output) -> float:
    """Return ``-log p(y)``, with the probability clipped to [1e-15, 1 - 1e-15]."""
    return _surprise(_probabilities(output, "cross_entropy").get(_label(y), 0.0))


def zero_one(y: Target, output: Output) -> float:
    """Return 0.0 if ``y`` is predicted, else 1.0.

    The predicted class is the most probable one, of equals the first. Without probabilities nothing
    is predicted. A number is compared directly.
    """
    if isinstance(output, dict):
        return float(not output or predicted_class(output) != y)
    return float(output != y)


def predicted_class(probabilities: dict[Label, float]) -> Label | None:
    """Return the most probable class, of equals the first, as River does; None without classes."""
    return max(probabilities, key=probabilities.__getitem__) if probabilities else None


def brier(y: Target, output: Output) -> float:
    """Return the sum over classes of (probability - indicator)², in [0, 2] (Brier, 1950)."""
    probabilities = _probabilities(output, "brier")
    label = _label(y)
    total = (1.0 - probabilities.get(label, 0.0)) ** 2
    for other, p in probabilities.items():
        if other != label:
            total += p * p
    return total


def absolute_error(y: Target, output: Output) -> float:
    """Return ``|output - y|``."""
    return abs(_number(output, "absolute_error") - float(y))


def squared_error(y: Target, output: Output) -> float:
    """Return ``(output - y)²``."""
    difference = _number(output, "squared_error") - float(y)
    return difference * difference


LOSSES: dict[str, Loss] = {
    loss.__name__: loss for loss in (cross_entropy, zero_one, brier, absolute_error, squared_error)
}


_KINDS = {
    id(cross_entropy): kernels.CROSS_ENTROPY,
    id(zero_one): kernels.ZERO_ONE,
    id(brier): kernels.BRIER,
    id(absolute_error): kernels.ABSOLUTE_ERROR,
    id(squared_error): kernels.SQUARED_ERROR,
}


def losses_on(loss: Loss, ys: Sequence[Target], labels: Labels, blocks: Floats) -> Floats:
    """Return the loss on each output, shape (blocks, outputs).

    The losses of this module are compiled. ``ys`` has the label of each block, or one for all;
    ``blocks`` has the shape (blocks, outputs, labels).
    """
    kind = _kind(loss, labels)
    if kind is None:
        each = ys if len(ys) > 1 else [*ys] * len(blocks)
        # a user's loss may return NumPy numbers or booleans
        given = [
            [float(loss(y, output)) for output in Table(labels, block).outputs()]
            for y, block in zip(each, blocks, strict=True)
        ]
        return np.array(given, np.float64).reshape(blocks.shape[:2])
    is_number = kind >= kernels.ABSOLUTE_ERROR
    columns = {} if is_number else {label: place for place, label in enumerate(labels)}
    own = np.array([columns.get(_label(y), -1) for y in ys])
    numbers = np.array([float(y) if is_number else 0.0 for y in ys])
    if len(ys) < len(blocks):
        own, numbers = own.repeat(len(blocks)), numbers.repeat(len(blocks))
    return kernels.losses(kind, own, numbers, 2.0, blocks)


def _kind(loss: Loss, labels: Labels) -> int | None:
    kind = _KINDS.get(id(loss))
    fits = kind is not None and (kind >= kernels.ABSOLUTE_ERROR) == (labels == (None,))
    return kind if fits else None


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the function itself.

    Raises
    ------
    ValueError
        If no loss has that name.

    Examples
    --------
    >>> get_loss("brier") is brier
    True
    """
    if callable(loss):
        return loss
    try:
        return LOSSES[loss]
    except KeyError:
        raise ValueError(
            f"unknown loss {loss!r}: use one of {', '.join(LOSSES)}, or a function of "
            "(label, output)"
        ) from None


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

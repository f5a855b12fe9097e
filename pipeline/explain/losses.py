"""Losses: pure functions of one label and one model output.

Classification losses take class → probability, regression losses take a number. The user's own
loss is any such function.
"""

from collections.abc import Callable, Sequence

import numpy as np

from pipeline.evaluate import Label, Output, Table
from pipeline.evaluate.compiled import plain
from pipeline.evaluate.inputs import Floats
from pipeline.explain import kernels
from pipeline.explain.kernels import Places
from pipeline.explain.outputs import predicted_class

Target = Label | float
"""What is predicted: a class, or a number."""

Loss = Callable[[Target, Output], float]

_surprise = plain(kernels.surprise)


def cross_entropy(y: Target, output: Output) -> float:
    """Return ``-log p(y)``, with the probability clipped to [1e-15, 1 - 1e-15].

    Examples
    --------
    >>> round(cross_entropy("a", {"a": 0.5, "b": 0.5}), 4)
    0.6931
    >>> round(cross_entropy("c", {"a": 0.5, "b": 0.5}), 4)
    34.5388
    """
    return _surprise(_probabilities(output, "cross_entropy").get(_label(y), 0.0))


def zero_one(y: Target, output: Output) -> float:
    """Return 0.0 if ``y`` is predicted, else 1.0.

    The predicted class is the most probable one, the first of equals. No probabilities at all
    predict nothing. A number is compared as it is.

    Examples
    --------
    >>> zero_one(1, {0: 0.2, 1: 0.8}), zero_one(1, {}), zero_one(1, 1.0)
    (0.0, 1.0, 0.0)
    """
    if isinstance(output, dict):
        return float(not output or predicted_class(output) != y)
    return float(output != y)


def brier(y: Target, output: Output) -> float:
    """Return the sum over classes of (probability - indicator)², in [0, 2] (Brier, 1950).

    Examples
    --------
    >>> brier("a", {"a": 0.5, "b": 0.5}), brier("a", {})
    (0.5, 1.0)
    """
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


def compiled_loss(
    loss: Loss, y: Target, labels: tuple[Label | None, ...]
) -> tuple[int, int, float] | None:
    """Return what :func:`kernels.losses` takes for a loss and a label; None if it has no such loss.

    Examples
    --------
    >>> compiled_loss(brier, "b", ("a", "b")), compiled_loss(brier, 1.0, (None,))
    ((2, 1, 0.0), None)
    """
    kind = _kind(loss, labels)
    if kind is None:
        return None
    if kind >= kernels.ABSOLUTE_ERROR:
        return kind, -1, float(y)
    return kind, labels.index(_label(y)) if y in labels else -1, 0.0


def compiled_losses(
    loss: Loss, ys: Sequence[Target], labels: tuple[Label | None, ...]
) -> tuple[int, Places, Floats] | None:
    """Return what :func:`kernels.increments_of_run` takes; see :func:`compiled_loss`.

    Examples
    --------
    >>> compiled_losses(brier, ["b", "c"], ("a", "b"))
    (2, array([ 1, -1]), array([0., 0.]))
    """
    kind = _kind(loss, labels)
    if kind is None:
        return None
    if kind >= kernels.ABSOLUTE_ERROR:
        return kind, np.full(len(ys), -1), np.array([float(y) for y in ys])
    columns = {label: place for place, label in enumerate(labels)}
    return kind, np.array([columns.get(_label(y), -1) for y in ys]), np.zeros(len(ys))


def _kind(loss: Loss, labels: tuple[Label | None, ...]) -> int | None:
    kind = _KINDS.get(id(loss))
    fits = kind is not None and (kind >= kernels.ABSOLUTE_ERROR) == (labels == (None,))
    return kind if fits else None


def each_loss(loss: Loss, y: Target, outputs: Sequence[Output]) -> Floats:
    """Return the loss on each output.

    Examples
    --------
    >>> each_loss(brier, "a", [{"a": 0.5, "b": 0.5}, {"a": 1.0}]).tolist()
    [0.5, 0.0]
    """
    # a user's loss may give numpy numbers or truth values
    return np.array([float(loss(y, output)) for output in outputs])


def losses_on(loss: Loss, y: Target, answers: Sequence[Output] | Table) -> Floats:
    """Return the loss on each answer, given in either of two forms.

    Examples
    --------
    >>> losses_on(squared_error, 1.0, Table((None,), np.array([[1.0], [3.0]]))).tolist()
    [0.0, 4.0]
    """
    if isinstance(answers, Table):
        kind = compiled_loss(loss, y, answers.labels)
        if kind:
            return kernels.losses(*kind, 2.0, answers.numbers)
        answers = answers.outputs()
    return each_loss(loss, y, answers)


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

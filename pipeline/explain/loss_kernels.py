"""Inner loops over losses; see :mod:`fluxplain.evaluate.compiled`."""

import math
from collections.abc import Sequence

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places

PROBABILITY_FLOOR = 1e-15
"""The ε of the cross-entropy: probabilities are clipped to [ε, 1 - ε], as River's LogLoss does."""

CROSS_ENTROPY, ZERO_ONE, BRIER, ABSOLUTE_ERROR, SQUARED_ERROR = range(5)


@compiled
def surprise(p: float) -> float:
    """Return the cross-entropy of a label that had the probability ``p``."""
    return -math.log(min(max(p, PROBABILITY_FLOOR), 1.0 - PROBABILITY_FLOOR))


@compiled
def loss(kind: int, numbers: Sequence[float] | Floats, label: int, y: float, two: float) -> float:
    """Return the loss on one output, the probabilities of the classes or a single number.

    ``label`` is the place of the label among the classes, -1 if the model does not know it, and
    ``y`` its number. ``two`` is 2.0: as a constant, the compiler would square differently from
    Python.
    """
    p = numbers[label] if label >= 0 else 0.0
    if kind == CROSS_ENTROPY:
        return surprise(p)
    if kind == ZERO_ONE:
        most = 0
        for c in range(1, len(numbers)):
            if numbers[c] > numbers[most]:
                most = c
        return 1.0 if len(numbers) == 0 or most != label else 0.0
    if kind == BRIER:
        total = math.pow(1.0 - p, two)
        for c in range(len(numbers)):
            if c != label:
                total += numbers[c] * numbers[c]
        return total
    difference = numbers[0] - y
    return difference * difference if kind == SQUARED_ERROR else abs(difference)


@compiled
def losses(kind: int, labels: Places, ys: Floats, two: float, blocks: Floats) -> Floats:
    """Return the :func:`loss` on each output, shape (blocks, outputs).

    ``blocks`` has the shape (blocks, outputs, classes); there is one label and number per block, or
    one for all.
    """
    given = np.empty(blocks.shape[:2])
    for block in range(blocks.shape[0]):
        y = block if len(labels) > 1 else 0
        for row in range(blocks.shape[1]):
            given[block, row] = loss(kind, blocks[block, row], labels[y], ys[y], two)
    return given


@compiled
def running_mean(values: Sequence[float] | Floats) -> float:
    """Return the running mean, updated one value at a time; 0 without values."""
    mean = 0.0
    for i in range(len(values)):
        mean += (values[i] - mean) / (i + 1)
    return mean


@compiled
def growths(before: Floats, losses: Floats) -> Floats:
    """Return the mean growth of the loss when a feature is replaced (iPFI, Algorithm 1).

    ``before`` are the losses on the observations themselves, shape (blocks or 1,); ``losses`` those
    on the inputs in which the feature is replaced, shape (blocks, inputs).
    """
    increments = np.empty(losses.shape[0])
    for i in range(losses.shape[0]):
        increments[i] = running_mean(losses[i]) - before[i if len(before) > 1 else 0]
    return increments


@compiled
def loss_growths(  # noqa: PLR0917  compiled functions take arrays
    kind: int, labels: Places, ys: Floats, two: float, predictions: Floats, blocks: Floats
) -> Floats:
    """Return the growths of a loss; ``predictions`` has the shape (blocks or 1, classes)."""
    itself = np.empty((predictions.shape[0], 1, predictions.shape[1]))
    itself[:, 0] = predictions
    before = losses(kind, labels, ys, two, itself)
    return growths(before[:, 0], losses(kind, labels, ys, two, blocks))


@compiled
def excess(
    kind: int,
    numbers: Sequence[float] | Floats,
    variances: Sequence[float] | Floats,
    label: int,
    y: float,
) -> float:
    """Return how much larger the loss on an estimated output is expected to be than on the true.

    ``variances`` are those of the numbers. Exact for Brier and the squared error, of second order
    for the cross-entropy and, on average over many labels, for the absolute error. 0 for the 0/1
    loss, which is not continuous.
    """
    if kind == SQUARED_ERROR:
        return variances[0]
    if kind == BRIER:
        total = 0.0
        for c in range(len(variances)):
            total += variances[c]
        return total
    if kind == CROSS_ENTROPY and label >= 0:
        p = numbers[label]
        if PROBABILITY_FLOOR < p < 1.0 - PROBABILITY_FLOOR:
            return 0.5 * variances[label] / p / p
    if kind == ABSOLUTE_ERROR:  # the mean of the losses a standard deviation above and below
        more: float = math.sqrt(variances[0]) - abs(numbers[0] - y)
        return more if 0.0 < more < math.inf else 0.0
    return 0.0


@compiled
def loss_falls(kind: int, labels: Places, ys: Floats, two: float, blocks: Floats) -> Floats:
    """Return how much the loss on the first output of each block exceeds that on the second.

    If a block has four rows, the last two are the variances of the first two, whose :func:`excess`
    does not count.
    """
    given = losses(kind, labels, ys, two, blocks[:, :2])
    if blocks.shape[1] == 4:
        for block in range(blocks.shape[0]):
            of = block if len(labels) > 1 else 0
            for row in range(2):
                numbers, variances = blocks[block, row], blocks[block, 2 + row]
                given[block, row] -= excess(kind, numbers, variances, labels[of], ys[of])
    return given[:, 0] - given[:, 1]

"""The inner loops over the answers to one observation's questions."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.evaluate.compiled import compiled
from pipeline.evaluate.inputs import Floats

Places = NDArray[np.intp]
"""Positions: of features among the columns of the inputs, for instance."""

Flags = NDArray[np.bool_]

PROBABILITY_FLOOR = 1e-15
"""The ε of the cross-entropy: probabilities are clipped to [ε, 1 - ε], as River's LogLoss does."""

CROSS_ENTROPY, ZERO_ONE, BRIER, ABSOLUTE_ERROR, SQUARED_ERROR = range(5)


@compiled
def replace_one(rows: Floats, begin: int, columns: Places, values: Floats) -> None:
    """Replace one feature in each input.

    Parameters
    ----------
    rows
        The observation in each row, shape (inputs, columns).
    begin
        The first of features · m inputs.
    columns
        The column of each feature.
    values
        Of each feature m values, shape (features, m).
    """
    m = values.shape[1]
    for i in range(columns.shape[0]):
        for j in range(m):
            rows[begin + i * m + j, columns[i]] = values[i, j]


@compiled
def replace_drawn(  # noqa: PLR0917  compiled functions take arrays, not objects
    rows: Floats, begin: int, columns: Places, stored: Floats, chosen: Places, starts: Places
) -> bool:
    """Replace one player in each input by its values in some of the stored observations.

    Parameters
    ----------
    rows, begin, columns
        See :func:`replace_one`.
    stored
        Numbers of stored observations, NaN for what is none; shape (observations, features).
    chosen
        The m observations that supply the values.
    starts
        Where the features of each player begin among the columns, and where the last one's end.

    Returns
    -------
    Whether these are numbers.
    """
    m = chosen.shape[0]
    for i in range(starts.shape[0] - 1):
        for j in range(m):
            for k in range(starts[i], starts[i + 1]):
                value = stored[chosen[j], k]
                if math.isnan(value):
                    return False
                rows[begin + i * m + j, columns[k]] = value
    return True


@compiled
def replace_hidden(  # noqa: PLR0917  compiled functions take arrays, not objects
    rows: Floats,
    begin: int,
    columns: Places,
    stored: Floats,
    chosen: Places,
    starts: Places,
    places: Places,
) -> bool:
    """Replace the players that are not revealed yet: all but one, then all but two, …

    Parameters
    ----------
    rows, begin, columns, stored, chosen, starts
        See :func:`replace_drawn`; but of (n - 1) · m inputs.
    places
        Which n of the players, in the order in which they are revealed.

    Returns
    -------
    Whether these are numbers.
    """
    m, n = chosen.shape[0], places.shape[0]
    for revealed in range(1, n):
        for j in range(m):
            for i in range(revealed, n):
                for k in range(starts[places[i]], starts[places[i] + 1]):
                    value = stored[chosen[j], k]
                    if math.isnan(value):
                        return False
                    rows[begin + (revealed - 1) * m + j, columns[k]] = value
    return True


@compiled
def surprise(p: float) -> float:
    """Return the cross-entropy of a label that had the probability ``p``."""
    return -math.log(min(max(p, PROBABILITY_FLOOR), 1.0 - PROBABILITY_FLOOR))


@compiled
def losses(kind: int, own: int, y: float, two: float, numbers: Floats) -> Floats:
    """Return the loss on each output, as the functions of :mod:`pipeline.explain.losses` give it.

    Parameters
    ----------
    kind
        One of those above.
    own
        Column of the label; -1 if the model does not know it.
    y
        The number to predict.
    two
        2.0: the compiler must not know it, or it would square in another way than Python.
    numbers
        Probabilities, or numbers in one column; shape (outputs, classes).
    """
    rows, classes = numbers.shape
    given = np.empty(rows)
    for row in range(rows):
        p = numbers[row, own] if own >= 0 else 0.0
        if kind == CROSS_ENTROPY:
            given[row] = surprise(p)
        elif kind == ZERO_ONE:
            most = 0
            for c in range(1, classes):
                if numbers[row, c] > numbers[row, most]:
                    most = c
            given[row] = 1.0 if classes == 0 or most != own else 0.0
        elif kind == BRIER:
            total = math.pow(1.0 - p, two)
            for c in range(classes):
                if c != own:
                    total += numbers[row, c] * numbers[row, c]
            given[row] = total
        else:
            difference = numbers[row, 0] - y
            squared = difference * difference
            given[row] = squared if kind == SQUARED_ERROR else abs(difference)
    return given


@compiled
def running_mean(values: Sequence[float] | Floats) -> float:
    """Return the mean, built up one value at a time; 0 of none."""
    mean = 0.0
    for i in range(len(values)):
        mean += (values[i] - mean) / (i + 1)
    return mean


@compiled
def growths(losses: Floats, features: int) -> Floats:
    """Return how much the mean loss grows when each feature is replaced (iPFI, Algorithm 1).

    Parameters
    ----------
    losses
        On the observation, then on M inputs for each feature.
    features
        How many there are.
    """
    m = (losses.shape[0] - 1) // features
    increments = np.empty(features)
    for i in range(features):
        increments[i] = running_mean(losses[1 + i * m : 1 + (i + 1) * m]) - losses[0]
    return increments


@compiled
def restricted(mean: Floats, numbers: Floats, m: int) -> Floats:
    """Return what the model says while more and more features are revealed (iSAGE, Algorithm 1).

    Parameters
    ----------
    mean
        The mean prediction: what it says when none is.
    numbers
        Its outputs on the observation, then on m inputs for each number of revealed features.
    """
    steps = (numbers.shape[0] - 1) // m
    outputs = np.empty((steps + 2, numbers.shape[1]))
    for c in range(numbers.shape[1]):
        outputs[0, c] = mean[c]
        for i in range(steps):
            value = numbers[1 + i * m, c]
            for j in range(1, m):
                value += 1.0 / (j + 1) * (numbers[1 + i * m + j, c] - value)
            outputs[1 + i, c] = value
        outputs[steps + 1, c] = numbers[0, c]
    return outputs


@compiled
def falls(losses: Floats, places: Places, features: int) -> Floats:
    """Return how much the loss falls when each feature is revealed (iSAGE, Algorithm 1, line 16).

    Parameters
    ----------
    losses
        Before the first is revealed, then after each.
    places
        Which feature each is; the others are null players.
    features
        How many there are.
    """
    increments = np.full(features, losses[-1] - losses[-1])
    for i in range(places.shape[0]):
        increments[places[i]] = losses[i] - losses[i + 1]
    return increments


@compiled
def increments_of_run(  # noqa: PLR0917  compiled functions take arrays, not objects
    kind: int, own: Places, y: Floats, two: float, numbers: Floats, replaced: bool
) -> Floats:
    """Return the increments of one feature for several observations.

    Parameters
    ----------
    kind, own, y, two
        See :func:`losses`; the label of each observation.
    numbers
        The outputs, shape (observations, outputs, classes).
    replaced
        Whether they are those on the observation and with the feature replaced (iPFI), or those
        before and after it is revealed (iSAGE).
    """
    increments = np.empty(numbers.shape[0])
    for i in range(numbers.shape[0]):
        given = losses(kind, own[i], y[i], two, numbers[i])
        increments[i] = growths(given, 1)[0] if replaced else given[0] - given[1]
    return increments


@compiled
def moved(value: float, variance: float, w: float, v: float) -> tuple[float, float]:
    """Return an exponential mean and its variance after the value ``v`` of weight ``w``."""
    distance = v - value
    return value + w * distance, (1.0 - w) * (variance + w * distance * distance)


@compiled
def advanced(weight: float, squares: float, alpha: float) -> tuple[float, float]:
    """Return the sum of the smoothing's weights, and of their squares, after one more value."""
    keep = 1.0 - alpha
    return keep * weight + alpha, keep * keep * squares + alpha * alpha


@compiled
def smooth_run(  # noqa: PLR0917  compiled functions take arrays, not objects
    increments: Floats,
    alpha: float,
    debias: bool,
    value: float,
    variance: float,
    weight: float,
    squares: float,
) -> tuple[float, float, float, float]:
    """Return an exponential mean, its variance and its weights after several increments."""
    for i in range(increments.shape[0]):
        sum_of_weights, squares = advanced(weight, squares, alpha)
        if debias:
            weight = sum_of_weights
        value, variance = moved(value, variance, alpha / weight, increments[i])
    return value, variance, weight, squares


@compiled
def smooth(values: Floats, variances: Floats, w: float, increments: Floats) -> None:
    """Move many exponential means, each by its increment."""
    for i in range(values.shape[0]):
        values[i], variances[i] = moved(values[i], variances[i], w, increments[i])


@compiled
def explain_replaced(  # noqa: PLR0917  compiled functions take arrays, not objects
    kind: int,
    own: int,
    y: float,
    two: float,
    numbers: Floats,
    values: Floats,
    variances: Floats,
    w: float,
    increments: Floats,
) -> None:
    """Fill in the increments of iPFI from the model's outputs, and smooth them; see the parts."""
    increments[:] = growths(losses(kind, own, y, two, numbers), values.shape[0])
    smooth(values, variances, w, increments)


@compiled
def explain_revealed(  # noqa: PLR0917  compiled functions take arrays, not objects
    kind: int,
    own: int,
    y: float,
    two: float,
    numbers: Floats,
    mean: Floats,
    mean_weight: float,
    m: int,
    places: Places,
    values: Floats,
    variances: Floats,
    w: float,
    increments: Floats,
) -> None:
    """Fill in the increments of iSAGE from the model's outputs, and smooth them; see the parts."""
    for c in range(mean.shape[0]):
        mean[c] += mean_weight * (numbers[0, c] - mean[c])
    given = losses(kind, own, y, two, restricted(mean, numbers, m))
    increments[:] = falls(given, places, values.shape[0])
    smooth(values, variances, w, increments)


@compiled
def place_of(ordered: Floats, n: int, value: float, after: bool) -> int:
    """Return where a value belongs among the first n numbers, before or after its equals."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        is_above = not value < ordered[middle] if after else ordered[middle] < value
        if is_above:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def offer(  # noqa: PLR0917  compiled functions take arrays, not objects
    values: Floats, enters: Flags, ordered: Floats, by_age: Floats, counts: Places, oldest: Places
) -> None:
    """Take the newest value of each feature, in place of its oldest once the storage is full.

    Parameters
    ----------
    values, enters
        Of each feature the value, and whether it enters.
    ordered, by_age
        What is stored, in increasing order and in a ring; shape (features, size).
    counts, oldest
        Of each feature how many values are stored, and where the oldest is in the ring.
    """
    size = ordered.shape[1]
    for i in range(values.shape[0]):
        if not enters[i]:
            continue
        row, n, ring = ordered[i], counts[i], counts[i]
        if n == size:
            n, ring = n - 1, oldest[i]
            oldest[i] = (ring + 1) % size
            for k in range(place_of(row, size, by_age[i, ring], False), n):
                row[k] = row[k + 1]
        by_age[i, ring] = values[i]
        counts[i] = n + 1
        place = place_of(row, n, values[i], True)
        for k in range(n, place, -1):
            row[k] = row[k - 1]
        row[place] = values[i]


@compiled
def quantile(ordered: Sequence[float] | Floats, q: float) -> float:
    """Return the ``q``-quantile (0 to 1) of numbers in increasing order, interpolated linearly."""
    position = q * (len(ordered) - 1)
    below = int(position)
    low: float = ordered[below]
    if below + 1 < len(ordered):
        low += (position - below) * (ordered[below + 1] - low)
    return low


@compiled
def equidistant(low: float, high: float, points: Floats) -> None:
    """Fill in points from ``low`` to ``high``."""
    step = (high - low) / (points.shape[0] - 1)
    for k in range(points.shape[0]):
        points[k] = low + k * step


@compiled
def grids(ordered: Floats, counts: Places, points: Floats) -> None:
    """Fill in each feature's points between its 5 % and its 95 % quantile (iPDP, Section 3.2)."""
    for i in range(points.shape[0]):
        row = ordered[i, : counts[i]]
        if counts[i] > 0:
            equidistant(quantile(row, 0.05), quantile(row, 0.95), points[i])


@compiled
def middle(values: Floats) -> float:
    """Return the mean's distance from the first: exactly 0 if all values are equal."""
    total = 0.0
    for i in range(len(values)):
        total += values[i] - values[0]
    return total / len(values)


@compiled
def mean_of(values: Floats) -> float:
    """Return the mean, exactly that value if all are equal; 0 of none."""
    return values[0] + middle(values) if len(values) > 0 else 0.0


@compiled
def deviation(curve: Floats) -> float:
    """Return the standard deviation of the values, exactly 0 if all are equal."""
    n = len(curve)
    if n < 2:
        return 0.0
    mean, total = middle(curve), 0.0
    for i in range(n):
        distance = curve[i] - curve[0] - mean
        total += distance * distance
    return math.sqrt(total / (n - 1))


@compiled
def projection(curve: Floats, ice: Floats) -> float:
    """Return the product of the derivatives of a curve's deviation, by its points, with ``ice``."""
    scale = deviation(curve) * (len(curve) - 1)
    total = 0.0
    if scale > 0.0:
        mean = middle(curve)
        for i in range(len(curve)):
            total += (curve[i] - curve[0] - mean) / scale * ice[i]
    return total


@compiled
def are_moderate(numbers: Floats, largest: float) -> bool:
    """Return whether all numbers are finite and not above the largest, whatever their sign."""
    for row in range(numbers.shape[0]):
        for c in range(numbers.shape[1]):
            if not -largest <= numbers[row, c] <= largest:
                return False
    return True


WEIGHT, SQUARES, VALUE, PROJECTION, VARIANCE = range(5)
"""What is kept of each curve: the sum of its smoothing's weights and of their squares, its
importance, and the exponential mean of its projections with its variance."""


@compiled
def move_curves(  # noqa: PLR0917  compiled functions take arrays, not objects
    which: Places,
    points: Floats,
    outputs: Floats,
    largest: float,
    shown: Places,
    alpha: float,
    debias: bool,
    grid: Floats,
    effects: Floats,
    kept: Floats,
    n: Places,
    increments: Floats,
) -> bool:
    """Move curves towards the ICE curves of observations (iPDP, Algorithm 1, lines 5 to 10).

    Parameters
    ----------
    which
        The curves that move, one after the other.
    points, outputs
        Their evaluation points, shape (moving, points), and the outputs there, shape
        (moving · points, classes).
    largest
        What is above it does not fit.
    shown
        Of each curve the classes that count, then -1; shape (curves, classes).
    alpha, debias
        The smoothing.
    grid, effects, kept
        What moves; shapes (curves, points), (curves, points, classes) and (curves, 5).
    n
        Of each curve how often it has moved.
    increments
        Of each move the importance of the ICE curve.

    Returns
    -------
    Whether the outputs fit; if not, nothing has changed.
    """
    if not are_moderate(outputs, largest):
        return False
    ice = outputs.reshape((points.shape[0], points.shape[1], outputs.shape[1]))
    classes = effects.shape[2]
    per_class = np.empty((3, classes))
    for i in range(which.shape[0]):
        curve = which[i]
        weight, squares = advanced(kept[curve, WEIGHT], kept[curve, SQUARES], alpha)
        kept[curve, WEIGHT], kept[curve, SQUARES] = weight, squares
        w = alpha / weight if debias else alpha
        for k in range(points.shape[1]):
            grid[curve, k] += w * (points[i, k] - grid[curve, k])
            for c in range(classes):
                effects[curve, k, c] += w * (ice[i, k, c] - effects[curve, k, c])
        m = 0
        while m < classes and shown[curve, m] >= 0:
            effect, own = effects[curve, :, shown[curve, m]], ice[i, :, shown[curve, m]]
            per_class[0, m] = deviation(effect)
            per_class[1, m] = projection(effect, own)
            per_class[2, m] = deviation(own)
            m += 1
        kept[curve, VALUE] = mean_of(per_class[0, :m])
        kept[curve, PROJECTION], kept[curve, VARIANCE] = moved(
            kept[curve, PROJECTION],
            kept[curve, VARIANCE],
            alpha / weight,
            mean_of(per_class[1, :m]),
        )
        increments[i] = mean_of(per_class[2, :m])
        n[curve] += 1
    return True

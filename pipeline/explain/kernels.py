"""Inner loops of the explanations; see :mod:`fluxplain.evaluate.compiled`."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.explain.dependence import follow, rates

Flags = NDArray[np.bool_]


@compiled
def spread(rows: Floats, numbers: Floats) -> None:
    """Copy a row into each of several: for a few, NumPy takes longer."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            rows[row, column] = numbers[column]


@compiled
def replace_drawn(  # noqa: PLR0917  compiled functions take arrays
    rows: Floats, columns: Places, stored: Floats, chosen: Places, starts: Places, which: Places
) -> None:
    """Replace one player in each input by its values in the m chosen observations.

    ``rows`` has the observation in each row, shape (players · m, columns), ``columns`` the column
    of each feature, and ``stored`` the shape (observations, features). The features of each player
    begin at ``starts``, and those of the last one end at its last; ``which`` are the players.
    """
    m = chosen.shape[0]
    for i in range(which.shape[0]):
        for j in range(m):
            for k in range(starts[which[i]], starts[which[i] + 1]):
                rows[i * m + j, columns[k]] = stored[chosen[j], k]


@compiled
def replace_hidden(  # noqa: PLR0917  compiled functions take arrays
    rows: Floats,
    columns: Places,
    stored: Floats,
    chosen: Places,
    starts: Places,
    places: Places,
    levels: Places,
) -> None:
    """Replace the players that are not revealed yet in each m of the inputs; see `replace_drawn`.

    ``rows`` has the shape (levels · m, columns), ``places`` the players in the order in which they
    are revealed, and ``levels`` how many of them are.
    """
    m, n = chosen.shape[0], places.shape[0]
    for i in range(levels.shape[0]):
        for j in range(m):
            for hidden in range(levels[i], n):
                for k in range(starts[places[hidden]], starts[places[hidden] + 1]):
                    rows[i * m + j, columns[k]] = stored[chosen[j], k]


@compiled
def put_points(rows: Floats, columns: Places, sizes: Places, codes: Floats) -> None:
    """Replace one feature in each input by an evaluation point.

    ``rows`` has the observation in each row, shape (points of all features, columns), and
    ``columns`` the column of each feature; its ``codes`` follow those of the feature before.
    """
    row = 0
    for i in range(columns.shape[0]):
        for _ in range(sizes[i]):
            rows[row, columns[i]] = codes[row]
            row += 1


@compiled
def changing(
    stored: Floats, numbers: Floats, columns: Places, starts: Places, places: Places
) -> Places:
    """Return those players whose values differ from the observation's in any stored one.

    All of them if none does. ``numbers`` is the observation, ``columns`` the column of each
    feature, ``stored`` has the shape (observations, features), and ``places`` are the players.
    """
    found, n = np.empty_like(places), 0
    for player in places:
        is_able = False
        for k in range(starts[player], starts[player + 1]):
            for i in range(stored.shape[0]):
                if stored[i, k] != numbers[columns[k]]:
                    is_able = True
                    break
        if is_able:
            found[n] = player
            n += 1
    return found[:n] if n > 0 else places


@compiled
def revealed(  # noqa: PLR0917  compiled functions take arrays
    mean: Floats,
    prediction: Floats,
    numbers: Floats,
    m: int,
    share: float,
    places: Places,
    players: int,
) -> Floats:
    """Return the outputs before and after each player is revealed (iSAGE, Algorithm 1).

    ``mean`` is the output when none is, ``prediction`` when all are, and ``numbers`` are those on m
    inputs for each number of revealed players in between; arbitrary where the model was not
    evaluated. ``places`` are the players in the order in which they are revealed; the others are
    null players.

    Returns the shape (players, 2, classes) if ``share`` is 0. Else two more rows are the variances
    of these outputs: between them ``share`` of the sample variance of the m, at both ends 0.
    """
    n, classes = places.shape[0], prediction.shape[0]
    steps, spreads = np.empty((n + 1, classes)), np.zeros((n + 1, classes))
    steps[0], steps[n] = mean, prediction
    for i in range(1, n):
        for c in range(classes):
            value, squares = numbers[(i - 1) * m, c], 0.0
            for j in range(1, m):
                distance = numbers[(i - 1) * m + j, c] - value
                value += 1.0 / (j + 1) * distance
                squares += distance * (numbers[(i - 1) * m + j, c] - value)
            steps[i, c] = value
            spreads[i, c] = share * squares / max(m - 1, 1)
    blocks = np.zeros((players, 4 if share > 0.0 else 2, classes))
    for player in range(players):
        blocks[player, 0] = blocks[player, 1] = prediction
    for i in range(n):
        player = places[i]
        blocks[player, 0], blocks[player, 1] = steps[i], steps[i + 1]
        if share > 0.0:
            blocks[player, 2], blocks[player, 3] = spreads[i], spreads[i + 1]
    return blocks


@compiled
def moved(value: float, variance: float, w: float, v: float) -> tuple[float, float]:
    """Return an exponential mean and its variance after the value ``v`` of weight ``w``."""
    distance = v - value
    return value + w * distance, (1.0 - w) * (variance + w * distance * distance)


@compiled
def approach(mean: Floats, values: Floats, w: float) -> None:
    """Move a mean, shape (classes,), towards the first row of the values, whose weight is ``w``."""
    for c in range(mean.shape[0]):
        mean[c] += w * (values[0, c] - mean[c])


@compiled
def advanced(weight: float, squares: float, alpha: float) -> tuple[float, float]:
    """Return the sum of the smoothing's weights, and of their squares, after one more value."""
    keep = 1.0 - alpha
    return keep * weight + alpha, keep * keep * squares + alpha * alpha


@compiled
def smooth(  # noqa: PLR0917  compiled functions take arrays
    increments: Floats,
    alphas: Floats,
    debias: bool,
    reach: int,
    before: int,
    values: Floats,
    variances: Floats,
    weights: Floats,
    squares: Floats,
    followed: Floats,
) -> None:
    """Move exponential means by their increments, shape (times, players).

    The means, their variances, the sums of the weights and of their squares, and what their
    standard errors need, move; all have the shape (alphas, players), the last (alphas, players, 6).
    ``before`` is how often they have moved, ``reach`` that of :mod:`.dependence`.
    """
    for t in range(increments.shape[0]):
        n = before + t + 1
        centre, product = rates(reach, n)
        for a in range(alphas.shape[0]):
            span = min(1.0 / alphas[a], reach)
            for i in range(increments.shape[1]):
                weight, squares[a, i] = advanced(weights[a, i], squares[a, i], alphas[a])
                if debias:
                    weights[a, i] = weight
                values[a, i], variances[a, i] = moved(
                    values[a, i], variances[a, i], alphas[a] / weights[a, i], increments[t, i]
                )
                follow(followed[a, i], increments[t, i], span, centre, product)


@compiled
def place_of(ordered: Floats, n: int, value: float, after: bool) -> int:
    """Return the position of a value among the first n ordered numbers, before or after equals."""
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
def offer(  # noqa: PLR0917  arrays
    values: Floats,
    slots: Places,
    seen: int,
    ordered: Floats,
    kept: Floats,
    entered: Places,
    counts: Places,
    oldest: Places,
    extremes: Floats,
) -> None:
    """Store the newest value of each feature, replacing another one once the storage is full.

    ``ordered`` and ``kept`` are the stored values in increasing order and in slots, ``entered``
    when they came, shape (features, size), and ``counts`` how many; the first ones fill the slots
    in order. ``slots`` are where the new ones go, -1 for one that does not enter, and ``seen`` is
    now. ``oldest`` are the next slots in turn. ``extremes``, shape (features, 2), are the smallest
    and the largest value of all.
    """
    size = ordered.shape[1]
    for i in range(values.shape[0]):
        extremes[i, 0] = min(extremes[i, 0], values[i])
        extremes[i, 1] = max(extremes[i, 1], values[i])
        slot, n = slots[i], counts[i]
        if slot < 0:
            continue
        entered[i, slot] = seen
        oldest[i] = (oldest[i] + 1) % size
        row = ordered[i]
        if n == size:
            n = n - 1
            for k in range(place_of(row, size, kept[i, slot], False), n):
                row[k] = row[k + 1]
        kept[i, slot] = values[i]
        counts[i] = n + 1
        place = place_of(row, n, values[i], True)
        for k in range(n, place, -1):
            row[k] = row[k - 1]
        row[place] = values[i]


@compiled
def quantile(ordered: Sequence[float] | Floats, q: float) -> float:
    """Return the ``q``-quantile (0 to 1) of numbers in increasing order, interpolated linearly.

    Its median is about that quantile of the distribution, whatever that is (Hyndman, Fan 1996,
    "Sample Quantiles in Statistical Packages", definition 8). NumPy's default makes ranges too
    narrow.
    """
    n = len(ordered)
    position = min(max(q * (n + 1.0 / 3.0) - 2.0 / 3.0, 0.0), n - 1.0)
    below = int(position)
    low: float = ordered[below]
    if below + 1 < n:
        low += (position - below) * (ordered[below + 1] - low)
    return low


@compiled
def quantiles(ordered: Floats, counts: Places, levels: Floats, points: Floats) -> None:
    """Fill in each feature's quantiles of some levels, if it has any value."""
    for i in range(points.shape[0]):
        if counts[i] > 0:
            for k in range(levels.shape[0]):
                points[i, k] = quantile(ordered[i, : counts[i]], levels[k])


@compiled
def widening(correlations: float, span: int, window: int) -> float:
    """Return the standard deviation of values over that of ``window`` neighbours, at most 2.

    ``correlations`` is the sum of the autocorrelations, over lags of about the ``span``. They are
    taken to fall exponentially: by ``exp(-x)`` within the window.
    """
    if correlations <= 0.0:
        return 1.0
    x = max(window * (1.0 / correlations - 1.0 / span), 1e-3)
    among = 2.0 * (x - 1.0 + math.exp(-x)) / (x * x)
    return 1.0 / math.sqrt(max(1.0 - among, 0.25))


@compiled
def quantile_ranges(  # noqa: PLR0917  compiled functions take arrays
    ordered: Floats,
    counts: Places,
    low: float,
    high: float,
    correlations: Floats,
    span: int,
    window: int,
    extremes: Floats,
    points: Floats,
) -> None:
    """Fill in equidistant points between two of each feature's quantiles, if it has any value.

    Their range grows by the :func:`widening`, but not beyond the ``extremes``, shape (features, 2).
    """
    n = points.shape[1]
    for i in range(points.shape[0]):
        if counts[i] > 0:
            first = quantile(ordered[i, : counts[i]], low)
            last = quantile(ordered[i, : counts[i]], high)
            more = 0.5 * (widening(correlations[i], span, window) - 1.0) * (last - first)
            first = max(first - more, extremes[i, 0])
            step = (min(last + more, extremes[i, 1]) - first) / (n - 1)
            for k in range(n):
                points[i, k] = k * step + first


@compiled
def are_moderate(numbers: Floats, largest: float) -> bool:
    """Return whether all absolute values are finite and at most ``largest``."""
    for row in range(numbers.shape[0]):
        for c in range(numbers.shape[1]):
            if not -largest <= numbers[row, c] <= largest:
                return False
    return True

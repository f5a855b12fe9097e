"""Shapley values of a linear model: in closed form, behind a sigmoid from all sets of players."""

import numpy as np

from fluxplain.evaluate.attribution import Attribution, set_sizes, set_weights, shapley_values
from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.sigmoid import sigmoid
from fluxplain.evaluate.table import Table

MOST_SETS = 500_000
"""Sets of players that are added up for all inputs together, which takes some milliseconds: 12
players have 4,096 for each input."""


def linear_attribution(
    answers: Table, terms: Floats, own: Floats, intercept: float, players: Places
) -> Attribution | None:
    """Return the Shapley values of a linear model's output; None if the sets are too many.

    Parameters
    ----------
    answers
        Outputs on the background; of a classifier the probabilities of False and True.
    terms, own
        What each value adds in the background, shape (inputs, columns), and in the observation,
        shape (columns,).
    intercept
        What is added to the terms.
    players
        The player of each column, -1 for none.
    """
    gains = np.zeros((len(terms), int(players.max(initial=-1)) + 1))
    for column in np.flatnonzero(players >= 0).tolist():
        gains[:, players[column]] += own[column] - terms[:, column]
    labels, base = answers.labels, answers.numbers.mean(axis=0)
    if len(labels) == 1:
        return Attribution(labels, base, gains.mean(axis=0)[:, None])
    most = int(np.count_nonzero(gains, axis=1).max(initial=0))
    if len(gains) << min(most, 62) > MOST_SETS:
        return None
    found = sigmoid_values(terms.sum(axis=1) + intercept, gains)
    return Attribution(labels, base, np.stack((-found, found), axis=1))


@compiled
def sigmoid_values(sums: Floats, gains: Floats) -> Floats:
    """Return the mean Shapley values of a sigmoid of sums, shape (players,).

    ``sums`` are those of the background, shape (inputs,), ``gains`` what each player's values add
    to them, shape (inputs, players). Players that add nothing take no part.
    """
    found = np.zeros(gains.shape[1])
    for i in range(len(sums)):
        able = np.flatnonzero(gains[i])
        sizes, weights = set_sizes(len(able)), set_weights(len(able))
        outputs = sigmoids(sums[i], gains[i][able])
        found[able] += shapley_values(outputs, sizes, weights) / len(sums)
    return found


@compiled
def sigmoids(total: float, gains: Floats) -> Floats:
    """Return the sigmoid of a sum with each set of gains added, shape (2 ** gains,)."""
    totals = np.full(1 << len(gains), total)
    for place in range(len(gains)):
        size = 1 << place
        for chosen in range(size):
            totals[size + chosen] = totals[chosen] + gains[place]
    for chosen in range(len(totals)):
        totals[chosen] = sigmoid(totals[chosen])
    return totals

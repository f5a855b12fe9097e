"""Exact Shapley values of an output, where the structure of the model gives them."""

from typing import NamedTuple

import numpy as np

from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places
from fluxplain.evaluate.table import Labels


class Attribution(NamedTuple):
    """Shapley values of the output on an observation, against a background of other inputs.

    The value of a set of players is the mean output on inputs in which these have the observation's
    values, and the others those of one input of the background (interventional Shapley values).

    Attributes
    ----------
    labels
        Labels of the outputs.
    base
        Mean output on the background, shape (labels,).
    contributions
        What each player adds, shape (players, labels). With the base they sum to the output.
    """

    labels: Labels
    base: Floats
    contributions: Floats


@compiled
def set_weights(n: int) -> Floats:
    """Return the weight of a set of s players in a Shapley value of n, shape (n,).

    It is s! (n - s - 1)! / n!.
    """
    weights = np.empty(n)
    for s in range(n):
        weights[s] = 1.0 / n if s == 0 else weights[s - 1] * s / (n - s)
    return weights


@compiled
def set_sizes(n: int) -> Places:
    """Return the size of each set of n players; the bits of its place are its members."""
    sizes = np.zeros(1 << n, np.intp)
    for chosen in range(1, 1 << n):
        sizes[chosen] = sizes[chosen & (chosen - 1)] + 1
    return sizes


@compiled
def shapley_values(values: Floats, sizes: Places, weights: Floats) -> Floats:
    """Return the Shapley values of n players from the value of each set, shape (2 ** n,)."""
    n = len(weights)
    found = np.zeros(n)
    for player in range(n):
        mark = 1 << player
        for chosen in range(1 << n):
            if not chosen & mark:
                gain = values[chosen | mark] - values[chosen]
                found[player] += weights[sizes[chosen]] * gain
    return found

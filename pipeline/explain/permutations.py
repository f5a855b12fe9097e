"""In which order iSAGE and SAGE reveal players, and the inputs that follow from it."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fluxplain.evaluate import Observed
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.explain import kernels
from fluxplain.explain.method import copies
from fluxplain.explain.players import Players


class Draw(NamedTuple):
    """What chance has chosen for an observation.

    Attributes
    ----------
    places
        The players that can change an input, in the order in which they are revealed.
    levels
        How many of them are revealed in the inputs that are asked: some of 1, 2, … but not all,
        which is the observation itself.
    m
        How many inputs there are for each of these numbers.
    """

    places: Places
    levels: Places
    m: int


def hidden_rows(
    players: Players, observed: Observed, stored: Floats, chosen: Sequence[int], draw: Draw
) -> Floats:
    """Return inputs in which the players not yet revealed have their values in stored observations.

    Parameters
    ----------
    players
        All of them.
    observed
        The observation.
    stored
        Shape (observations, features), with the players' features.
    chosen
        The m observations that supply the values.
    draw
        In which order the players are revealed, and at which levels is asked.

    Returns
    -------
    Shape (levels · m, columns).
    """
    rows = copies(observed, len(draw.levels) * draw.m)
    columns = columns_of(observed.features, players.features)
    supply = np.array(chosen, np.intp)
    kernels.replace_hidden(rows, columns, stored, supply, players.starts, draw.places, draw.levels)
    return rows


def changing(players: Players, order: Sequence[int], observed: Observed, stored: Floats) -> Places:
    """Return the players of an order whose values differ somewhere in the stored observations.

    All of them if none does: somebody must still carry what the model knows beyond its mean.

    Parameters
    ----------
    players
        All of them.
    order
        In which they are revealed.
    observed
        The observation.
    stored
        Shape (observations, features), with the players' features.

    References
    ----------
    iSAGE, Algorithm 1, line 3, and Algorithm 5, line 4.
    """
    own = observed.numbers[columns_of(observed.features, players.features)]
    differs = (stored != own).any(axis=0)
    able = np.logical_or.reduceat(differs, players.starts[:-1])
    places = np.array(order, np.intp)
    return places[able[places]] if able.any() else places


def permuted(n: int, rng: random.Random) -> list[int]:
    """Return the places from 0 to n - 1 in a random order.

    It is ``rng.sample(range(n), n)``, with the same draws and less around them.

    Examples
    --------
    >>> permuted(5, random.Random(1)) == random.Random(1).sample(range(5), 5)
    True
    """
    pool, bits, order = list(range(n)), rng.getrandbits, []
    for left in range(n, 0, -1):
        length = left.bit_length()
        place = bits(length)
        while place >= left:
            place = bits(length)
        order.append(pool[place])
        pool[place] = pool[left - 1]
    return order

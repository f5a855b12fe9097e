"""The order in which iSAGE and SAGE reveal players, and the resulting inputs."""

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
    """The random draw for one observation.

    Attributes
    ----------
    places
        The players that can change an input, in the order in which they are revealed.
    levels
        The numbers of revealed players in the inputs: some of 1, 2, …, but not all players, which
        would be the observation itself.
    m
        Number of inputs per level.
    """

    places: Places
    levels: Places
    m: int


def hidden_rows(
    players: Players, observed: Observed, stored: Floats, chosen: Sequence[int], draw: Draw
) -> Floats:
    """Return inputs, shape (levels · m, columns), whose hidden players have stored values.

    ``stored`` has the shape (observations, features); the m ``chosen`` observations supply the
    values.
    """
    rows = copies(observed, len(draw.levels) * draw.m)
    columns = columns_of(observed.features, players.features)
    supply = np.array(chosen, np.intp)
    kernels.replace_hidden(rows, columns, stored, supply, players.starts, draw.places, draw.levels)
    return rows


def changing(players: Players, order: Sequence[int], observed: Observed, stored: Floats) -> Places:
    """Return the players, in order, whose values differ somewhere in the stored observations.

    All of them if none does: the difference between output and mean must be attributed to some.
    ``stored`` has the shape (observations, features).

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
    """Return 0 to n - 1 in a random order: ``rng.sample(range(n), n)``, with less overhead.

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

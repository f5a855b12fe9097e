"""In which order iSAGE and SAGE reveal players, and what stands for those not yet revealed."""

import random
from collections.abc import Sequence

import numpy as np

from pipeline.evaluate import Observation
from pipeline.evaluate.inputs import Floats, NoNumberError
from pipeline.explain import kernels
from pipeline.explain.importance import InnerSamples, draws
from pipeline.explain.players import Players
from pipeline.explain.questions import Replaced, Row, columns_of
from pipeline.explain.sampling.imputers import Sample
from pipeline.explain.storage import Reservoir


class SAGEDraw:
    """The observation, and what chance has chosen for it.

    Parameters
    ----------
    players
        What is explained.
    places
        Which of them can change an input, in the order in which they are revealed; none while
        warming up.
    sample
        Where replacement values come from.
    chosen
        The m observations of it that supply the features that are not revealed.
    """

    __slots__ = ("chosen", "places", "players", "sample", "size")

    def __init__(
        self,
        players: Players,
        places: Sequence[int],
        sample: Sample,
        chosen: Sequence[int],
    ) -> None:
        self.players = players
        self.sample = sample
        self.chosen = chosen
        self.places = np.array(places, np.intp)
        self.size = 1 + max(len(places) - 1, 0) * len(chosen)

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the places."""
        return tuple([self.players.names[place] for place in self.places.tolist()])

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        places = self.places.tolist()
        chosen = [self.sample.rows[place] for place in self.chosen]
        hidden = [
            {feature: draw[feature] for feature in self.players.of(places[revealed:])}
            for revealed in range(1, len(places))
            for draw in chosen
        ]
        return [{}, *hidden]

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        if self.places.size:
            stored, chosen = self.sample.numbers, np.array(self.chosen, np.intp)
            columns, starts = columns_of(features, self.players.features), self.players.starts
            if stored is None or not kernels.replace_hidden(
                rows, begin + 1, columns, stored, chosen, starts, self.places
            ):
                raise NoNumberError("a stored observation has a value that is no number")


class ConditionalDraw(SAGEDraw):
    """The same, with new values of the features that are not revealed at each step.

    Parameters
    ----------
    hidden
        For each revealed player but the last, m times the values of those not yet revealed.
    """

    __slots__ = ("_hidden",)

    def __init__(
        self,
        players: Players,
        places: Sequence[int],
        sample: Sample,
        chosen: Sequence[int],
        hidden: list[Row],
    ) -> None:
        super().__init__(players, places, sample, chosen)
        self._hidden = Replaced(hidden)

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        return self._hidden.replacements()

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        self._hidden.fill(features, rows, begin)


def draw_permutation(
    players: Players,
    x: Observation,
    reservoir: Reservoir,
    inner_samples: InnerSamples,
    rng: random.Random,
) -> SAGEDraw:
    """Choose the order in which players are revealed, and the m draws that supply the others.

    References
    ----------
    iSAGE, Algorithm 1, lines 3 and 11, and Algorithm 5, lines 4 and 11.
    """
    rows = reservoir.rows
    permutation = permuted(len(players), rng)
    chosen = draws(len(rows), inner_samples, rng)
    first, places = rows[0], []
    for place in permutation:
        for feature in players.members[place]:
            value = x[feature]
            if first[feature] != value or any(row[feature] != value for row in rows):
                places.append(place)
                break
    # with null players only, somebody must still carry what the model knows beyond its mean
    return SAGEDraw(players, places or permutation, reservoir, chosen)


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

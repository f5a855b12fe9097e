"""iSHAP: how much each feature moves the output, as the mean size of its Shapley values.

Lundberg et al. (2020), "From local explanations to global understanding with explainable AI for
trees", mean |SHAP|; here of a model that learns, from few draws of each record.
"""

import math
from typing import NamedTuple

import numpy as np

from fluxplain.evaluate import Observed, Table
from fluxplain.evaluate.compiled import compiled
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain.imputers import Replacement, draws
from fluxplain.explain.method import Answers, OutputMethod, Question
from fluxplain.explain.randoms import permuted
from fluxplain.explain.shapley import able_players
from fluxplain.explain.shapley_kernels import add_gains, put_chains


class Chains(NamedTuple):
    """The ``orders`` in which players are revealed, shape (2 · m, players).

    Each of the m drawn observations has one and its reverse. ``hidden`` are the inputs before the
    first player is revealed, one for each drawn observation.
    """

    orders: Places
    hidden: int


class SHAP(OutputMethod, Replacement):
    """Asks about inputs in which one player more is revealed each time, in random orders.

    ``inner_samples`` are the observations drawn, m. It needs no label.
    """

    def ask(self, observed: Observed) -> Question | None:
        """Return the inputs of two orders for each draw; None while warming up."""
        stored = self.stored(observed)
        if stored is None:
            return None
        players, columns = self.players, columns_of(observed.features, self.players.features)
        able = able_players(players, stored, observed.numbers[columns])
        m = int(self.inner_samples)
        drawn = stored[draws(len(stored), m, self.rng)]
        places = np.array([permuted(len(able), self.rng) for _ in range(m)], np.intp)
        orders = able[np.stack((places, places[:, ::-1]), axis=1).reshape(2 * m, len(able))]

        def put(rows: Floats) -> None:
            rows[:m, columns] = drawn
            put_chains(rows[m:], columns, drawn.repeat(2, axis=0), players.starts, orders)

        return Question(m + 2 * m * max(len(able) - 1, 0), put, Chains(orders, m))

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:
        """Return each player's Shapley value, one row of outputs.

        A mean of m draws varies around the value by about 1 / m of the variance of the values
        themselves, as the draws are observations, too. So it is divided by sqrt(1 + 1 / m): then
        its size is right on average for an additive effect that is normally distributed.
        """
        chains: Chains = question.about
        labels, m = table.labels, chains.hidden
        numbers, own = np.ascontiguousarray(table.numbers), aligned(prediction, labels)[0]
        gains = np.zeros((2 * m, len(self.players), len(labels)))
        add_gains(own, numbers[:m].repeat(2, axis=0), numbers[m:], chains.orders, gains)
        values = gains.mean(axis=0) / math.sqrt(1.0 + 1.0 / m)
        return Answers(self.names, labels, values[self.asked, None, :])

    @staticmethod
    def moves(
        labels: Labels,
        predictions: Floats,  # noqa: ARG004  the blocks are differences
        blocks: Floats,
    ) -> Floats:
        """Return the size of the Shapley values; with classes, half of their sum over all."""
        return sizes(np.ascontiguousarray(blocks), 1.0 if labels == (None,) else 0.5)

    @staticmethod
    def signed(blocks: Floats) -> Floats:
        """Return each Shapley value with its sign; its absolute value is at most the size.

        With classes it is that of the mean number of the class, from 0 for the first one to 1 for
        the last one: with two classes of the probability of the second one.
        """
        return signs(np.ascontiguousarray(blocks))


@compiled
def sizes(blocks: Floats, share: float) -> Floats:
    """Return a share of the sum of each player's absolute numbers, shape (players, 1, labels)."""
    found = np.zeros(len(blocks))
    for player in range(len(blocks)):
        for c in range(blocks.shape[2]):
            found[player] += abs(blocks[player, 0, c])
        found[player] *= share
    return found


@compiled
def signs(blocks: Floats) -> Floats:
    """Return the Shapley value of each player's mean class number; without classes, its value."""
    found, last = np.zeros(len(blocks)), blocks.shape[2] - 1
    for player in range(len(blocks)):
        for c in range(last + 1):
            found[player] += blocks[player, 0, c] * (c / last if last else 1.0)
    return found

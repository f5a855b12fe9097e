"""Interactions: how much of the output two features cause only together.

Liu, Owen (2006), "Estimating mean dimensionality of analysis of variance decompositions", superset
importance; Fruth, Roustant, Kuhnt (2014), "Total interaction index: a variance-based sensitivity
index for second-order interaction screening". Here the model learns, with one draw a record.
"""

import math
from typing import Any, Self

import numpy as np

from fluxplain.evaluate import Observed, Table
from fluxplain.evaluate.encoding import Floats, Places, columns_of
from fluxplain.evaluate.table import Labels, aligned
from fluxplain.explain.imputers import Replacement
from fluxplain.explain.method import Answers, Given, OutputMethod, Question
from fluxplain.explain.randoms import below, permuted
from fluxplain.explain.shap import sizes

ROUNDING = 1e-14
"""A difference of at most this share of its terms is 0: it comes from their rounding."""


class Interaction(OutputMethod, Replacement):
    """Asks about pairs of players, with one, the other, or both replaced by one stored observation.

    Each record divides the players into pairs at random, so that all pairs are asked about in turn.
    If their number is odd, one player has no partner. No label is needed.

    Let f be the output, z a stored observation, and j and k a pair. A quarter of the squared
    difference f(x) - f(x with zⱼ) - f(x with zₖ) + f(x with zⱼ, zₖ) has the expectation Υ²ⱼₖ: for
    independent features, the variance of all terms of the output's functional ANOVA with both j and
    k. It is 0 for each record if the output is a sum of terms without j and terms without k. A
    player's increment is that of its pair, divided by the pair's probability, so its mean is the
    sum of Υ²ⱼₖ over all k.
    """

    @classmethod
    def configured(cls, given: Given, **settings: Any) -> Self:
        """Return the method with the settings of its table."""
        return super().configured(given, inner_samples=1, **settings)

    def ask(self, observed: Observed) -> Question | None:
        """Return three inputs for each pair with an asked player; None while warming up."""
        stored = self.stored(observed)
        if stored is None:
            return None
        drawn = stored[below(len(stored), self.rng)]
        n = len(self.players)
        pairs = np.array(permuted(n, self.rng), np.intp)[: n - n % 2].reshape(-1, 2)
        is_asked = np.zeros(n, bool)
        is_asked[self.asked] = True
        pairs = pairs[is_asked[pairs].any(axis=1)]
        columns = columns_of(observed.features, self.players.features)
        player_of = np.repeat(np.arange(n), np.diff(self.players.starts))
        is_first, is_second = (player_of == pairs[:, member, None] for member in (0, 1))
        replaced = np.stack((is_first, is_second, is_first | is_second), axis=1)
        replaced = replaced.reshape(3 * len(pairs), len(columns))

        def put(rows: Floats) -> None:
            rows[:, columns] = np.where(replaced, drawn, rows[:, columns])

        return Question(3 * len(pairs), put, pairs)

    def answer(self, question: Question, prediction: Table, table: Table) -> Answers:
        """Return half of each asked player's difference over the root of its pair's probability.

        The point is its partner's index; without a partner its own index, with the answer 0.
        """
        pairs: Places = question.about
        labels, n = table.labels, len(self.players)
        own = aligned(prediction, labels)[0]
        first, second, both = table.numbers.reshape(len(pairs), 3, len(labels)).swapaxes(0, 1)
        differences = own - first - second + both
        terms = abs(own) + abs(first) + abs(second) + abs(both)
        differences[abs(differences) <= ROUNDING * terms] = 0.0
        blocks, partners = np.zeros((n, 1, len(labels))), np.arange(n, dtype=np.float64)
        others = n - 1 + n % 2  # inverse of the probability of a pair
        for player, partner in (pairs.T, pairs.T[::-1]):
            blocks[player, 0] = differences * (math.sqrt(others) / 2.0)
            partners[player] = partner
        return Answers(self.names, labels, blocks[self.asked], partners[self.asked, None])

    @staticmethod
    def moves(
        labels: Labels,
        predictions: Floats,  # noqa: ARG004  the blocks are differences
        blocks: Floats,
    ) -> Floats:
        """Return the squares of the differences; with classes, half of their sum over all."""
        return sizes(np.ascontiguousarray(blocks * blocks), 1.0 if labels == (None,) else 0.5)

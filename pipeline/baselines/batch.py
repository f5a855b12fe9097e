"""The explained batch: labelled observations, also the source of replacement values."""

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fluxplain.evaluate import Encoding, Evaluator, Observation, Observed
from fluxplain.evaluate.encoding import Floats, columns_of
from fluxplain.explain.importance import check_observation
from fluxplain.explain.losses import Loss, Target, get_loss
from fluxplain.explain.players import Players


class Batch:
    """Labelled observations, and a model's loss on them.

    Parameters
    ----------
    xs, ys, evaluator
        See :mod:`fluxplain.baselines`.
    players
        What to explain.
    loss
        Name of a loss, or a function of (label, output).

    Attributes
    ----------
    observed
        The observations, all in one encoding.
    stored
        The values of the players' features, shape (observations, features).

    Raises
    ------
    ValueError
        If an argument is out of its range; the message names it.
    """

    def __init__(
        self,
        xs: Sequence[Observation],
        ys: Sequence[Target],
        players: Players,
        *,
        loss: str | Loss,
        evaluator: Evaluator,
    ) -> None:
        if len(xs) != len(ys):
            raise ValueError(f"there are {len(xs)} observations (xs), but {len(ys)} labels (ys)")
        if len(xs) < 2:
            raise ValueError(f"xs has {len(xs)} observations, but at least 2 are needed")
        self.players = players
        self.loss = get_loss(loss)
        self.evaluator = evaluator
        self.ys = ys
        encoding = Encoding()
        for x in xs:
            encoding.learn(x)  # before encoding, so that all are encoded alike
        self.observed = [encoding.observe(x) for x in xs]
        for observed in self.observed:
            check_observation(observed, players.features)
        self.stored: Floats = np.array(
            [
                observed.numbers[columns_of(observed.features, players.features)]
                for observed in self.observed
            ]
        )

    def __len__(self) -> int:
        return len(self.observed)

    def __iter__(self) -> Iterator[tuple[Observed, Target]]:
        return zip(self.observed, self.ys, strict=True)


Explain = Callable[[Batch, random.Random], dict[str, float]]
"""Batch, source of random numbers → importance of each feature."""

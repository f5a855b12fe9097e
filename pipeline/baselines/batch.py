"""What is explained at once: labelled observations, also the source of replacement values."""

import random
from collections.abc import Callable, Iterator, Sequence

from pipeline.evaluate import Evaluator, Observation
from pipeline.explain.importance import check_observation
from pipeline.explain.losses import Loss, Target, get_loss
from pipeline.explain.players import Players
from pipeline.explain.questions import Observed
from pipeline.explain.storage import UniformReservoir


class Batch:
    """Labelled observations, and a model's loss on them.

    Parameters
    ----------
    xs
        The observations, at least 2; each has every explained feature.
    ys
        Their labels.
    players
        What to explain.
    loss
        Name of a loss, or a function of (label, output).
    evaluator
        How the model is asked.

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
        self.observed = [Observed(x) for x in xs]
        self.ys = ys
        # it holds them all, in their order, so it draws no random number
        self.reservoir = UniformReservoir(len(xs), random.Random(0))
        for observed in self.observed:
            check_observation(observed, players.features)
            self.reservoir.update(observed.x, observed.some(players.features))

    def __len__(self) -> int:
        return len(self.observed)

    def __iter__(self) -> Iterator[tuple[Observed, Target]]:
        return zip(self.observed, self.ys, strict=True)


Explain = Callable[[Batch, random.Random], dict[str, float]]
"""Batch, source of random numbers → importance of each feature."""

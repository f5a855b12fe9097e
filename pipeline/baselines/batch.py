"""The explained batch: labelled observations, also the source of replacement values."""

from collections.abc import Iterator, Sequence

import numpy as np

from fluxplain.evaluate import Encoding, Evaluator, Observation, Observed, as_observation
from fluxplain.evaluate.encoding import Floats, columns_of
from fluxplain.explain.explainers import check_observation
from fluxplain.explain.losses import AnyLoss, Target, get_loss
from fluxplain.explain.players import Players


class Batch:
    """Labelled observations, and how a model's loss on them is evaluated.

    ``observed`` are all in one encoding; ``stored`` has the values of the players' features, shape
    (observations, features).
    """

    def __init__(
        self,
        xs: Sequence[Observation],
        ys: Sequence[Target],
        players: Players,
        *,
        loss: AnyLoss,
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
        xs = [as_observation(x) for x in xs]
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

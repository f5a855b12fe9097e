"""Which inputs iPFI asks a model about."""

import random
from collections.abc import Collection, Sequence

import numpy as np

from pipeline.evaluate import Observation
from pipeline.evaluate.inputs import Floats, NoNumberError
from pipeline.explain import kernels
from pipeline.explain.importance import InnerSamples, draws
from pipeline.explain.players import Players
from pipeline.explain.questions import Question, Replaced, Row, columns_of
from pipeline.explain.sampling.imputers import Mixture, Sample, check_imputer, conditional
from pipeline.explain.storage import Reservoir


class PFIQuestion:
    """The observation, and M inputs for each player in turn with its values replaced.

    Parameters
    ----------
    players
        What is replaced.
    sample
        Where replacement values come from.
    chosen
        The M observations of it that supply the values; none if nothing is asked.
    """

    __slots__ = ("chosen", "players", "sample", "size")

    def __init__(self, players: Players, sample: Sample, chosen: Sequence[int]) -> None:
        self.players = players
        self.sample = sample
        self.chosen = chosen
        self.size = 1 + len(players) * len(chosen) if chosen else 0

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        chosen = [self.sample.rows[place] for place in self.chosen]
        changed = [
            {feature: draw[feature] for feature in members}
            for members in self.players.members
            for draw in chosen
        ]
        return [{}, *changed] if changed else []

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        if self.chosen:
            stored, chosen = self.sample.numbers, np.array(self.chosen, np.intp)
            columns = columns_of(features, self.players.features)
            if stored is None or not kernels.replace_drawn(
                rows, begin + 1, columns, stored, chosen, self.players.starts
            ):
                raise NoNumberError("a stored observation has a value that is no number")


class PFISampler:
    """Chooses the inputs on which iPFI asks the model.

    Owns the reservoir. One stored observation supplies the replacement values of a draw, unless
    the imputer is another one. The features of a group are replaced together: by one stored
    observation, each by a separate one, or each given the features outside the group.

    Parameters
    ----------
    players
        What to explain.
    reservoir
        Past observations, whose features replace others unless the imputer is observational.
    imputer
        One of :data:`~pipeline.explain.sampling.imputers.IMPUTERS`.
    categorical
        Which features are categorical, for the observational imputer.
    warm_up
        How many observations the reservoir must hold before anything is asked.
    inner_samples
        Draws per observation, M; ``"all"`` takes each stored observation once.
    rng
        Source of its random numbers.

    References
    ----------
    iPFI, Algorithm 1, lines 2, 3 and 5; observational draws as in iSAGE, Algorithms 3 and 4.
    """

    def __init__(
        self,
        players: Players,
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        warm_up: int,
        inner_samples: InnerSamples,
        rng: random.Random,
    ) -> None:
        self.players = players
        self.reservoir = reservoir
        self.imputer = check_imputer(imputer, inner_samples)
        self.warm_up = warm_up
        self.inner_samples = inner_samples
        self._rng = rng
        self._conditional = conditional(imputer, players.features, reservoir, rng, categorical)

    def question(self, x: Observation) -> Question:
        """Return what to ask about this observation; nothing while warming up."""
        players, n = self.players, len(self.reservoir.rows)
        if n < self.warm_up:
            return PFIQuestion(players, self.reservoir, ())
        chosen = draws(n, self.inner_samples, self._rng)
        if self._conditional is not None:
            m, imputer = len(chosen), self._conditional
            return Replaced([row for each in players.members for row in imputer.draws(x, each, m)])
        if self.imputer == "product":
            mixture = Mixture(players.features, self.reservoir, len(chosen), self._rng)
            return PFIQuestion(players, mixture, range(len(chosen)))
        return PFIQuestion(players, self.reservoir, chosen)

    def replacements(self, x: Observation) -> list[Row]:
        """Return what to replace: M entries for each player in turn, none while warming up."""
        return self.question(x).replacements()[1:]

    def update(self, x: Observation, numbers: Floats | None = None) -> None:
        """Offer the observation to the reservoir, after it was explained.

        Parameters
        ----------
        numbers
            The values of the features, if all are numbers and inputs are to be filled with them.
        """
        if self._conditional is not None:
            self._conditional.update(x)
        self.reservoir.update(x, numbers)

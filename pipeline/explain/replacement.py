"""Base of the methods of iPFI and iSAGE: stored observations supply replacement values."""

import random
from collections.abc import Collection, Sequence
from typing import Any, Self

from fluxplain.evaluate import Encoding, Observed, Table
from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.imputers import InnerSamples, check_imputer, conditional
from fluxplain.explain.method import Given
from fluxplain.explain.parameter_checks import check_warm_up
from fluxplain.explain.players import Players
from fluxplain.explain.storage import Reservoir, make_reservoir


class Replacement:
    """A method that replaces the values of features, with its reservoir.

    Parameters
    ----------
    players
        What to explain.
    reservoir
        Past observations, whose values replace others unless the imputer is observational.
    imputer
        One of :data:`~fluxplain.explain.imputers.IMPUTERS`.
    categorical
        Which features are categorical, for the observational imputer.
    warm_up
        Number of stored observations before the first question.
    inner_samples
        Draws per observation; ``"all"`` takes each stored observation once.
    rng
        Source of random numbers.
    asked
        Names of the players to ask about; by default all.
    """

    needs_label = True

    def __init__(
        self,
        players: Players,
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        warm_up: int | None,
        inner_samples: InnerSamples,
        rng: random.Random,
        asked: Collection[str] | None = None,
    ) -> None:
        self.players = players
        self.reservoir = reservoir
        self.imputer = check_imputer(imputer, inner_samples)
        self.warm_up = check_warm_up(warm_up, reservoir.size)
        self.inner_samples = inner_samples
        self.rng = rng
        self.conditional = conditional(imputer, players.features, reservoir, rng, categorical)
        self.names = players.names if asked is None else players.chosen(asked)

    @classmethod
    def configured(
        cls, given: Given, *, reservoir_size: int, sampler: str = "geometric", **settings: Any
    ) -> Self:
        """Return the method with the settings of its table."""
        rng = given.rng_of("")
        return cls(
            given.players,
            reservoir=make_reservoir(sampler, reservoir_size, rng),
            categorical=given.categorical,
            rng=rng,
            asked=given.asked,
            **settings,
        )

    def prepare(self, encoding: Encoding) -> None:
        """Encode the stored observations."""
        self.reservoir.numbers(encoding, self.players.features)

    def stored(self, observed: Observed) -> Floats | None:
        """Return the stored observations, shape (observations, features); None while warming up."""
        stored = self.reservoir.numbers(observed.encoding, self.players.features)
        return None if len(stored) < self.warm_up else stored

    def see(self, prediction: Table) -> None:
        """Take the model's output on the observation itself."""

    def store(self, observed: Observed) -> None:
        """Keep the observation as a source of replacements."""
        if self.conditional is not None:
            self.conditional.update(observed.x)
        self.reservoir.update(observed)

    def go_on(self, before: Sequence[Self]) -> None:
        """Take over the samples of another method; all have drawn the same ones."""
        if before:
            names = self.names
            vars(self).update(vars(before[0]))
            self.names = names

    def forget_model(self) -> None:
        """Forget the outputs of the former model."""

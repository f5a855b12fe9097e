"""Which inputs iSAGE asks a model about."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pipeline.evaluate import Observation, Output, Value
from pipeline.evaluate.inputs import Floats
from pipeline.explain.importance import InnerSamples
from pipeline.explain.outputs import mean_output
from pipeline.explain.players import Players
from pipeline.explain.sampling.imputers import Mixture, check_imputer, conditional
from pipeline.explain.sampling.permutation import ConditionalDraw, SAGEDraw, draw_permutation
from pipeline.explain.smoothing import OutputMean
from pipeline.explain.storage import Reservoir


@dataclass(frozen=True, slots=True)
class SAGEQuestion:
    """The inputs to ask for one observation.

    Attributes
    ----------
    order
        The players that can change an input, in the order in which they are revealed.
    revealed
        How many of them are revealed in the inputs that are asked: 1, 2, … but not all of them,
        which is the observation itself.
    replacements
        For each of these numbers in turn, m inputs in which the players not yet revealed are
        replaced.
    """

    order: tuple[str, ...]
    revealed: tuple[int, ...]
    replacements: list[dict[str, Value]]

    @property
    def draws(self) -> int:
        """How many inputs there are of each kind, m; 0 if there are none."""
        return len(self.replacements) // max(len(self.revealed), 1)

    def about(self, names: Collection[str]) -> "SAGEQuestion":
        """Return what must be asked for some of the players: what is before and after each."""
        places = [i for i, name in enumerate(self.order) if name in names]
        wanted = {i + after for i in places for after in (0, 1)}
        m = self.draws
        return SAGEQuestion(
            self.order,
            tuple(n for n in self.revealed if n in wanted),
            [
                replacement
                for i, n in enumerate(self.revealed)
                if n in wanted
                for replacement in self.replacements[i * m : (i + 1) * m]
            ],
        )


class SAGESampler:
    """Chooses the inputs on which iSAGE asks the model, and averages the answers.

    Owns the reservoir and the mean prediction. Interventional draws of an observation supply the
    replaced features along the whole permutation: each restricted output has the distribution that
    Algorithm 1 gives it, and differences of neighbours have less variance than with new draws.
    Observational draws are made anew each time, since they depend on what is revealed.

    A player whose features have the observation's values everywhere in the reservoir cannot change
    an input, so it is a null player: it takes no part in the permutation and its contribution is 0.

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
    alpha
        Smoothing of the mean prediction, in (0, 1].
    warm_up
        How many observations the reservoir must hold before anything is asked.
    inner_samples
        Draws per observation, m.
    rng
        Source of its random numbers.

    References
    ----------
    iSAGE, Algorithms 1 and 2; 3 and 4 if observational.
    """

    def __init__(
        self,
        players: Players,
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        alpha: float,
        warm_up: int,
        inner_samples: InnerSamples,
        rng: random.Random,
    ) -> None:
        self.players = players
        self.reservoir = reservoir
        self.imputer = check_imputer(imputer, inner_samples)
        self.mean_prediction = OutputMean(alpha)
        self.warm_up = warm_up
        self.inner_samples = inner_samples
        self._rng = rng
        self._conditional = conditional(imputer, players.features, reservoir, rng, categorical)

    def draw(self, x: Observation) -> SAGEDraw:
        """Choose what to ask for this observation."""
        players, reservoir = self.players, self.reservoir
        if len(reservoir.rows) < self.warm_up:
            return SAGEDraw(players, (), reservoir, ())
        draw = draw_permutation(players, x, reservoir, self.inner_samples, self._rng)
        places, m = draw.places.tolist(), len(draw.chosen)
        if self._conditional is not None:
            hidden = [
                values
                for revealed in range(1, len(places))
                for values in self._conditional.draws(x, players.of(places[revealed:]), m)
            ]
            return ConditionalDraw(players, places, reservoir, draw.chosen, hidden)
        if self.imputer == "product":
            mixture = Mixture(players.features, reservoir, m, self._rng)
            return SAGEDraw(players, places, mixture, range(m))
        return draw

    def question(self, x: Observation) -> SAGEQuestion | None:
        """Return what to ask for this observation; None while warming up."""
        draw = self.draw(x)
        order = draw.order
        if not order:
            return None
        return SAGEQuestion(order, tuple(range(1, len(order))), draw.replacements()[1:])

    def answers(
        self, question: SAGEQuestion, prediction: Output, outputs: Sequence[Output]
    ) -> dict[str, tuple[Output, Output]]:
        """Return for each player the restricted outputs before and after it is revealed.

        Players that the question is not about are left out. Call :meth:`update_mean` with the
        prediction first, as Algorithm 1 does.
        """
        order = question.order
        restricted = self.restricted(len(order), question.revealed, prediction, outputs)
        pairs = dict.fromkeys(self.players.names, (prediction, prediction))
        for i, name in enumerate(order):
            if i in restricted and i + 1 in restricted:
                pairs[name] = (restricted[i], restricted[i + 1])
            else:
                del pairs[name]
        return pairs

    def restricted(
        self, n: int, revealed: Sequence[int], prediction: Output, outputs: Sequence[Output]
    ) -> dict[int, Output]:
        """Return what the model says when none, some, and all n players are revealed."""
        return restricted(n, revealed, self.mean_prediction.value, prediction, outputs)

    def update_mean(self, prediction: Output) -> None:
        """Take the model's output on the observation into the mean prediction."""
        self.mean_prediction.update(prediction)

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


def restricted(
    n: int, revealed: Sequence[int], mean: Output, prediction: Output, outputs: Sequence[Output]
) -> dict[int, Output]:
    """Return what the model says when none, some, and all n players are revealed.

    Parameters
    ----------
    revealed
        The numbers of revealed players that it was asked about.
    mean
        What it says when none is.
    prediction
        What it says when all are.
    outputs
        What it says of m inputs for each number in ``revealed``.
    """
    m = len(outputs) // max(len(revealed), 1)
    some = {k: mean_output(outputs[i * m : (i + 1) * m]) for i, k in enumerate(revealed)}
    return {0: mean, **some, n: prediction}

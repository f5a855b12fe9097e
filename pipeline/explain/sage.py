"""iSAGE: each feature's share in the model's loss reduction, as a Shapley value.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams".
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    Value,
    evaluator_for,
)
from pipeline.explain.importance import (
    ImportanceExplainer,
    InnerSamples,
    check_features,
    check_inner_samples,
    draws,
)
from pipeline.explain.losses import Loss, Target, get_loss
from pipeline.explain.outputs import mean_output
from pipeline.explain.pfi import check_warm_up
from pipeline.explain.smoothing import OutputMean
from pipeline.explain.storage import GeometricReservoir, Reservoir
from pipeline.explain.together import explain_together

IMPUTERS = ("interventional",)

DEFAULT_INNER_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class SAGEQuestion:
    """The inputs to ask for one observation.

    Attributes
    ----------
    order
        The features that can change an input, in the order in which they are revealed.
    revealed
        How many of them are revealed in the inputs that are asked: 1, 2, … but not all of them,
        which is the observation itself.
    replacements
        For each of these numbers in turn, m inputs in which the features not yet revealed are
        replaced.
    """

    order: tuple[str, ...]
    revealed: tuple[int, ...]
    replacements: list[dict[str, Value]]

    @property
    def draws(self) -> int:
        """How many inputs there are of each kind, m; 0 if there are none."""
        return len(self.replacements) // max(len(self.revealed), 1)

    def about(self, features: Collection[str]) -> "SAGEQuestion":
        """Return what must be asked for some of the features: what is before and after each."""
        places = [i for i, feature in enumerate(self.order) if feature in features]
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

    Owns the reservoir and the mean prediction. The m draws of an observation supply the replaced
    features along the whole permutation: each restricted output has the distribution that
    Algorithm 1 gives it, and differences of neighbours have less variance than with new draws.

    A feature that has the observation's value everywhere in the reservoir cannot change an input,
    so it is a null player: it takes no part in the permutation and its contribution is 0.

    References
    ----------
    iSAGE, Algorithms 1 and 2.
    """

    def __init__(
        self,
        features: Sequence[str],
        *,
        reservoir: Reservoir,
        alpha: float,
        warm_up: int,
        inner_samples: InnerSamples,
        rng: random.Random,
    ) -> None:
        self.features = check_features(features)
        self.reservoir = reservoir
        self.mean_prediction = OutputMean(alpha)
        self.warm_up = warm_up
        self.inner_samples = check_inner_samples(inner_samples)
        self._rng = rng

    def question(self, x: Observation) -> SAGEQuestion | None:
        """Return what to ask for this observation; None while warming up."""
        rows = self.reservoir.rows
        if len(rows) < self.warm_up:
            return None
        permutation = self._rng.sample(self.features, len(self.features))
        chosen = draws(rows, self.inner_samples, self._rng)
        players = [
            feature for feature in permutation if any(row[feature] != x[feature] for row in rows)
        ]
        # with null players only, somebody must still carry what the model knows beyond its mean
        order = tuple(players or permutation)
        counts = range(1, len(order))
        return SAGEQuestion(
            order,
            tuple(counts),
            [{feature: draw[feature] for feature in order[n:]} for n in counts for draw in chosen],
        )

    def answers(
        self, question: SAGEQuestion, prediction: Output, outputs: Sequence[Output]
    ) -> dict[str, tuple[Output, Output]]:
        """Return for each feature the restricted outputs before and after it is revealed.

        Features that the question is not about are left out. Call :meth:`update_mean` with the
        prediction first, as Algorithm 1 does.
        """
        m = question.draws
        restricted = {0: self.mean_prediction.value, len(question.order): prediction}
        for i, n in enumerate(question.revealed):
            restricted[n] = mean_output(outputs[i * m : (i + 1) * m])
        pairs = dict.fromkeys(self.features, (prediction, prediction))
        for i, feature in enumerate(question.order):
            if i in restricted and i + 1 in restricted:
                pairs[feature] = (restricted[i], restricted[i + 1])
            else:
                del pairs[feature]
        return pairs

    def update_mean(self, prediction: Output) -> None:
        """Take the model's output on the observation into the mean prediction."""
        self.mean_prediction.update(prediction)

    def update(self, x: Observation) -> None:
        """Offer the observation to the reservoir, after it was explained."""
        self.reservoir.update(x)


def sage_increment(loss: Loss, y: Target, before: Output, after: Output) -> float:
    """Return Δ_t: how much the loss falls when the feature is revealed.

    References
    ----------
    iSAGE, Algorithm 1, line 16.

    Examples
    --------
    >>> from pipeline.explain.losses import squared_error
    >>> sage_increment(squared_error, 1.0, 3.0, 2.0)
    3.0
    """
    return float(loss(y, before)) - float(loss(y, after))


class IncrementalSAGE(ImportanceExplainer):
    """Incremental SAGE values of a model that learns.

    The increments of one observation sum to the loss of the mean prediction minus the loss of the
    model (efficiency).

    Few inner samples bias iSAGE: the loss of a mean of m outputs is too large by about
    Var(output | revealed features) / m. See the README for what the default leaves.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    features
        Names of the features to explain.
    imputer
        How features are hidden: ``"interventional"`` draws them from past observations.
    loss
        ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``,
        ``"squared_error"``, or a function of (label, output).
    alpha
        Smoothing of the values and of the mean prediction, in (0, 1].
    reservoir_size
        How many past observations (favouring recent ones) hidden features are drawn from.
    warm_up
        Observations to store before the first explanation, at least 1 and at most
        ``reservoir_size``, which is the default.
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"`` takes each
        stored observation once: the exact expectation over the reservoir.
    debias
        Divide by the sum of the smoothing's weights.
    seed
        Seed of its random numbers; None for another one each time.
    evaluator
        How the model is asked: ``"hoeffding"``, ``"linear"``, ``"batch"``, ``"generic"``, or
        ``"auto"``, the first of these that fits; or an evaluator of your own.

    Raises
    ------
    ValueError
        For an argument out of its range; the message names it.
    TypeError
        If the model cannot be asked.

    References
    ----------
    iSAGE, Section 3.1, Algorithm 1 and Definition 3; Algorithm 2 for the reservoir.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``, so ``a`` gets all of the improvement:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> sage = IncrementalSAGE(
    ...     Double(), ["a", "b"], loss="absolute_error", reservoir_size=4, seed=1
    ... )
    >>> for a in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0):
    ...     values = sage.explain_one({"a": a, "b": 7.0}, 2.0 * a)
    >>> {feature: round(value, 2) for feature, value in values.items()}
    {'a': 4.5, 'b': 0.0}
    """

    def __init__(
        self,
        model: object,
        features: Sequence[str],
        *,
        imputer: str = "interventional",
        loss: str | Loss = "cross_entropy",
        alpha: float = 0.001,
        reservoir_size: int = 100,
        warm_up: int | None = None,
        inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        if imputer not in IMPUTERS:
            raise ValueError(f"unknown imputer {imputer!r}: use one of {', '.join(IMPUTERS)}")
        super().__init__(features, alpha=alpha, debias=debias)
        rng = random.Random(seed)
        self.loss = get_loss(loss)
        self.evaluator = (
            evaluator_for(model, evaluator) if isinstance(evaluator, str) else evaluator
        )
        self._sampler = SAGESampler(
            self.features,
            reservoir=GeometricReservoir(reservoir_size, rng),
            alpha=alpha,
            warm_up=check_warm_up(warm_up, reservoir_size),
            inner_samples=inner_samples,
            rng=rng,
        )

    @property
    def mean_prediction(self) -> Output:
        """What the model says when it knows no feature: its smoothed mean output."""
        value = self._sampler.mean_prediction.value
        return dict(value) if isinstance(value, dict) else value

    def explain_one(self, x: Observation, y: Target) -> dict[str, float]:
        """Take one observation, before the model learns it, and return the current estimates.

        Parameters
        ----------
        x
            Feature → value; every explained feature must be there.
        y
            The label.
        """
        [values] = explain_together([self], x, y)
        return values

    def ask(self, x: Observation) -> tuple[SAGEQuestion | None, list[dict[str, Value]]]:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        self._check(x)
        question = self._sampler.question(x)
        return question, [{}, *(question.replacements if question else ())]

    def take(
        self,
        x: Observation,  # noqa: ARG002
        y: Any,
        asked: SAGEQuestion | None,
        outputs: Sequence[Output],
    ) -> None:
        """Take the answers."""
        prediction = outputs[0]
        self._sampler.update_mean(prediction)
        if asked is None:
            return
        pairs = self._sampler.answers(asked, prediction, outputs[1:])
        # what is before one feature is after another
        restricted = {id(output): output for pair in pairs.values() for output in pair}
        losses = {key: float(self.loss(y, output)) for key, output in restricted.items()}
        self._smooth(
            {
                feature: losses[id(before)] - losses[id(after)]
                for feature, (before, after) in pairs.items()
            }
        )

    def store(self, x: Observation) -> None:
        """Keep the observation."""
        self._sampler.update(x)

"""iSAGE: each feature's share in the model's loss reduction, as a Shapley value.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams".
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    Value,
    evaluator_for,
)
from pipeline.evaluate.inputs import Floats, NoNumberError
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.importance import (
    ImportanceExplainer,
    InnerSamples,
    check_features,
    check_observation,
    draws,
)
from pipeline.explain.imputers import Mixture, Sample, check_imputer, conditional
from pipeline.explain.losses import Loss, Target, compiled_loss, each_loss, get_loss
from pipeline.explain.outputs import mean_output
from pipeline.explain.pfi import check_warm_up
from pipeline.explain.questions import Observed, Replaced, Row, columns_of
from pipeline.explain.smoothing import OutputMean
from pipeline.explain.storage import GeometricReservoir, Reservoir
from pipeline.explain.together import explain_together

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


class SAGEDraw:
    """The observation, and what chance has chosen for it.

    Parameters
    ----------
    features
        What is explained.
    places
        Which of them can change an input, in the order in which they are revealed; none while
        warming up.
    sample
        Where replacement values come from.
    chosen
        The m observations of it that supply the features that are not revealed.
    """

    __slots__ = ("chosen", "features", "places", "sample", "size")

    def __init__(
        self,
        features: tuple[str, ...],
        places: Sequence[int],
        sample: Sample,
        chosen: Sequence[int],
    ) -> None:
        self.features = features
        self.sample = sample
        self.chosen = chosen
        self.places = np.array(places, np.intp)
        self.size = 1 + max(len(places) - 1, 0) * len(chosen)

    @property
    def order(self) -> tuple[str, ...]:
        """The names of the places."""
        return tuple([self.features[place] for place in self.places.tolist()])

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        order = self.order
        chosen = [self.sample.rows[place] for place in self.chosen]
        hidden = [
            {feature: draw[feature] for feature in order[revealed:]}
            for revealed in range(1, len(order))
            for draw in chosen
        ]
        return [{}, *hidden]

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        if self.places.size:
            stored, chosen = self.sample.numbers, np.array(self.chosen, np.intp)
            columns = columns_of(features, self.features)
            if stored is None or not kernels.replace_hidden(
                rows, begin + 1, columns, stored, chosen, self.places
            ):
                raise NoNumberError("a stored observation has a value that is no number")


class ConditionalDraw(SAGEDraw):
    """The same, with new values of the features that are not revealed at each step.

    Parameters
    ----------
    hidden
        For each revealed feature but the last, m times the values of those not yet revealed.
    """

    __slots__ = ("_hidden",)

    def __init__(
        self,
        features: tuple[str, ...],
        places: Sequence[int],
        sample: Sample,
        chosen: Sequence[int],
        hidden: list[Row],
    ) -> None:
        super().__init__(features, places, sample, chosen)
        self._hidden = Replaced(hidden)

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        return self._hidden.replacements()

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        self._hidden.fill(features, rows, begin)


class SAGESampler:
    """Chooses the inputs on which iSAGE asks the model, and averages the answers.

    Owns the reservoir and the mean prediction. Interventional draws of an observation supply the
    replaced features along the whole permutation: each restricted output has the distribution that
    Algorithm 1 gives it, and differences of neighbours have less variance than with new draws.
    Observational draws are made anew each time, since they depend on what is revealed.

    A feature that has the observation's value everywhere in the reservoir cannot change an input,
    so it is a null player: it takes no part in the permutation and its contribution is 0.

    Parameters
    ----------
    features
        Names of the features to explain.
    reservoir
        Past observations, whose features replace others unless the imputer is observational.
    imputer
        One of :data:`~pipeline.explain.imputers.IMPUTERS`.
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
        features: Sequence[str],
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        alpha: float,
        warm_up: int,
        inner_samples: InnerSamples,
        rng: random.Random,
    ) -> None:
        self.features = check_features(features)
        self.reservoir = reservoir
        self.imputer = check_imputer(imputer, inner_samples)
        self.mean_prediction = OutputMean(alpha)
        self.warm_up = warm_up
        self.inner_samples = inner_samples
        self._rng = rng
        self._conditional = conditional(imputer, self.features, reservoir, rng, categorical)

    def draw(self, x: Observation) -> SAGEDraw:
        """Choose what to ask for this observation."""
        features, reservoir = self.features, self.reservoir
        if len(reservoir.rows) < self.warm_up:
            return SAGEDraw(features, (), reservoir, ())
        draw = draw_permutation(features, x, reservoir, self.inner_samples, self._rng)
        places, m = draw.places.tolist(), len(draw.chosen)
        if self._conditional is not None:
            order = draw.order
            hidden = [
                values
                for revealed in range(1, len(order))
                for values in self._conditional.draws(x, order[revealed:], m)
            ]
            return ConditionalDraw(features, places, reservoir, draw.chosen, hidden)
        if self.imputer == "product":
            mixture = Mixture(features, reservoir, m, self._rng)
            return SAGEDraw(features, places, mixture, range(m))
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
        """Return for each feature the restricted outputs before and after it is revealed.

        Features that the question is not about are left out. Call :meth:`update_mean` with the
        prediction first, as Algorithm 1 does.
        """
        order = question.order
        restricted = self.restricted(len(order), question.revealed, prediction, outputs)
        pairs = dict.fromkeys(self.features, (prediction, prediction))
        for i, feature in enumerate(order):
            if i in restricted and i + 1 in restricted:
                pairs[feature] = (restricted[i], restricted[i + 1])
            else:
                del pairs[feature]
        return pairs

    def restricted(
        self, n: int, revealed: Sequence[int], prediction: Output, outputs: Sequence[Output]
    ) -> dict[int, Output]:
        """Return what the model says when none, some, and all n features are revealed."""
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


def draw_permutation(
    features: tuple[str, ...],
    x: Observation,
    reservoir: Reservoir,
    inner_samples: InnerSamples,
    rng: random.Random,
) -> SAGEDraw:
    """Choose the order in which features are revealed, and the m draws that supply the others.

    References
    ----------
    iSAGE, Algorithm 1, lines 3 and 11, and Algorithm 5, lines 4 and 11.
    """
    rows = reservoir.rows
    permutation = permuted(len(features), rng)
    chosen = draws(len(rows), inner_samples, rng)
    first, players = rows[0], []
    for place in permutation:
        feature = features[place]
        value = x[feature]
        if first[feature] != value or any(row[feature] != value for row in rows):
            players.append(place)
    # with null players only, somebody must still carry what the model knows beyond its mean
    return SAGEDraw(features, players or permutation, reservoir, chosen)


def restricted(
    n: int, revealed: Sequence[int], mean: Output, prediction: Output, outputs: Sequence[Output]
) -> dict[int, Output]:
    """Return what the model says when none, some, and all n features are revealed.

    Parameters
    ----------
    revealed
        The numbers of revealed features that it was asked about.
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
        What hides features: ``"interventional"`` takes the values of all of them from one past
        observation, ``"product"`` those of each from a separate one, ``"observational"`` draws
        such as go with the revealed features.
    categorical
        Which features are categorical, for ``"observational"``. By default those whose first value
        is text or a truth value.
    loss
        ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``,
        ``"squared_error"``, or a function of (label, output).
    alpha
        Smoothing of the values and of the mean prediction, in (0, 1].
    reservoir_size
        How many past observations (favouring recent ones) hidden features are drawn from; for
        ``"observational"`` how many values each leaf of a feature's tree holds.
    warm_up
        Observations to store before the first explanation, at least 1 and at most
        ``reservoir_size``, which is the default.
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"``, for
        ``"interventional"`` only, takes each stored observation once: the exact expectation over
        the reservoir.
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
    iSAGE, Section 3.1, Algorithm 1 and Definition 3; Algorithm 2 for the reservoir,
    Section 3.2.2 and Algorithms 3 and 4 for observational draws.

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
        categorical: Collection[str] | None = None,
        loss: str | Loss = "cross_entropy",
        alpha: float = 0.001,
        reservoir_size: int = 100,
        warm_up: int | None = None,
        inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        super().__init__(features, alpha=alpha, debias=debias)
        rng = random.Random(seed)
        self.loss = get_loss(loss)
        self.evaluator = (
            evaluator_for(model, evaluator) if isinstance(evaluator, str) else evaluator
        )
        self._sampler = SAGESampler(
            self.features,
            reservoir=GeometricReservoir(reservoir_size, rng),
            imputer=imputer,
            categorical=categorical,
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

    def ask(self, observed: Observed) -> SAGEDraw:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        check_observation(observed, self.features)
        return self._sampler.draw(observed.x)

    def take(self, y: Any, question: SAGEDraw, answers: Sequence[Output] | Table) -> None:
        """Take the answers."""
        if not isinstance(answers, Table):
            self._take_outputs(y, question, answers)
            return
        loss, mean = compiled_loss(self.loss, y, answers.labels), None
        if loss and question.places.size:
            mean = self._sampler.mean_prediction.advance(answers.labels)
        if not loss or not mean:
            self._take_outputs(y, question, answers.outputs())
            return
        means = self._means
        kernels.explain_revealed(
            *loss,
            2.0,
            answers.numbers,
            *mean,
            len(question.chosen),
            question.places,
            means.values,
            means.variances,
            means.advance(),
            self._increments,
        )

    def _take_outputs(self, y: Any, question: SAGEDraw, outputs: Sequence[Output]) -> None:
        prediction, *others = outputs
        self._sampler.update_mean(prediction)
        if question.places.size:
            n = question.places.size
            restricted = self._sampler.restricted(n, range(1, n), prediction, others)
            losses = each_loss(self.loss, y, list(restricted.values()))
            self._smooth(kernels.falls(losses, question.places, len(self.features)))

    def store(self, observed: Observed) -> None:
        """Keep the observation."""
        self._sampler.update(observed.x, observed.some(self.features))

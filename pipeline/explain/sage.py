"""iSAGE: each feature's share in the model's loss reduction, as a Shapley value.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams".
"""

import random
from collections.abc import Collection, Sequence
from typing import Any

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    as_evaluator,
)
from pipeline.evaluate.table import Table
from pipeline.explain import kernels
from pipeline.explain.checks import check_warm_up
from pipeline.explain.importance import Alpha, ImportanceExplainer, InnerSamples, check_observation
from pipeline.explain.losses import Loss, Target, compiled_loss, each_loss, get_loss
from pipeline.explain.players import Features
from pipeline.explain.questions import Observed
from pipeline.explain.sampling.permutation import SAGEDraw
from pipeline.explain.sampling.sage import SAGESampler
from pipeline.explain.storage import GeometricReservoir
from pipeline.explain.together import explain_together

DEFAULT_INNER_SAMPLES = 5


class IncrementalSAGE(ImportanceExplainer):
    """Incremental SAGE values of a model that learns.

    The increments of one observation sum to the loss of the mean prediction minus the loss of the
    model (efficiency).

    Few inner samples bias iSAGE: the loss of a mean of m outputs is too large by about
    Var(output | revealed features) / m. "How to read the explanations" in the documentation says
    what the default leaves.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    features
        Names of the features to explain. A mapping among them, such as
        ``{"place": ["lat", "lon"]}``, has groups of features that are explained as one.
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
        Smoothing of the values and of the mean prediction, in (0, 1]; of several rates the values
        are those with the first, which also smooths the mean prediction, and ``at(rate)`` has those
        with another one, of the same answers.
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
        features: Features,
        *,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        loss: str | Loss = "cross_entropy",
        alpha: Alpha = 0.001,
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
        self.evaluator = as_evaluator(model, evaluator)
        self._sampler = SAGESampler(
            self.players,
            reservoir=GeometricReservoir(reservoir_size, rng),
            imputer=imputer,
            categorical=categorical,
            alpha=self.alpha,
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
        check_observation(observed, self.players.features)
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
        self._smooth_others()

    def _take_outputs(self, y: Any, question: SAGEDraw, outputs: Sequence[Output]) -> None:
        prediction, *others = outputs
        self._sampler.update_mean(prediction)
        if question.places.size:
            n = question.places.size
            restricted = self._sampler.restricted(n, range(1, n), prediction, others)
            losses = each_loss(self.loss, y, list(restricted.values()))
            self._smooth(kernels.falls(losses, question.places, len(self.players)))

    def store(self, observed: Observed) -> None:
        """Keep the observation."""
        self._sampler.update(observed.x, observed.some(self.players.features))

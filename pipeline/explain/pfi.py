"""iPFI: how much the loss grows when a feature's value is replaced by another one.

Fumagalli, Muschalik, Hüllermeier, Hammer (2022), "Incremental Permutation Feature Importance
(iPFI): Towards Online Explanations on Data Streams".
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
from pipeline.explain.questions import Observed, Question
from pipeline.explain.sampling.pfi import PFISampler
from pipeline.explain.storage import make_reservoir
from pipeline.explain.together import explain_together


class IncrementalPFI(ImportanceExplainer):
    """Incremental permutation feature importance of a model that learns.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    features
        Names of the features to explain. A mapping among them, such as
        ``{"place": ["lat", "lon"]}``, has groups of features that are explained as one.
    imputer
        What replaces a feature: ``"interventional"`` takes the values of all features from one
        past observation, ``"product"`` those of each from a separate one, ``"observational"``
        draws such as go with the observation's other features (conditional importance).
    categorical
        Which features are categorical, for ``"observational"``. By default those whose first value
        is text or a truth value.
    loss
        ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``,
        ``"squared_error"``, or a function of (label, output).
    alpha
        Smoothing, in (0, 1]; of several rates the values are those with the first, and ``at(rate)``
        has those with another one, of the same answers.
    sampler
        ``"geometric"`` (favours recent observations), ``"uniform"`` or ``"window"`` (the last
        ones); for ``"observational"`` only the first.
    reservoir_size
        How many past observations replacement values are drawn from; for ``"observational"`` how
        many values each leaf of a feature's tree holds.
    warm_up
        Observations to store before the first explanation, at least 1 and at most
        ``reservoir_size``, which is the default.
    inner_samples
        Replacement draws per observation, M; ``"all"``, for ``"interventional"`` only, takes each
        stored observation once: the exact expectation over the reservoir, for ``reservoir_size``
        times the questions.
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
    iPFI, Section 3, Algorithm 1, for feature sets S as in Section 2; smoothing debiased as in iPDP,
    Algorithm 1. Observational replacement as in iSAGE, Section 3.2.2.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> pfi = IncrementalPFI(
    ...     Double(), ["a", "b"], loss="absolute_error", reservoir_size=2, seed=1
    ... )
    >>> for a in (1.0, 2.0, 3.0, 4.0):
    ...     values = pfi.explain_one({"a": a, "b": -a}, 2.0 * a)
    >>> {feature: round(value, 3) for feature, value in values.items()}
    {'a': 4.0, 'b': 0.0}
    """

    def __init__(
        self,
        model: object,
        features: Features,
        *,
        loss: str | Loss = "cross_entropy",
        alpha: Alpha = 0.001,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        sampler: str = "geometric",
        reservoir_size: int = 100,
        warm_up: int | None = None,
        inner_samples: InnerSamples = 1,
        debias: bool = True,
        seed: int | None = None,
        evaluator: Evaluator | str = "auto",
    ) -> None:
        super().__init__(features, alpha=alpha, debias=debias)
        rng = random.Random(seed)
        self.loss = get_loss(loss)
        self.evaluator = as_evaluator(model, evaluator)
        self._sampler = PFISampler(
            self.players,
            reservoir=make_reservoir(sampler, reservoir_size, rng),
            imputer=imputer,
            categorical=categorical,
            warm_up=check_warm_up(warm_up, reservoir_size),
            inner_samples=inner_samples,
            rng=rng,
        )

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

    def ask(self, observed: Observed) -> Question:
        """Return what to ask; see :func:`~pipeline.explain.explain_together`."""
        check_observation(observed, self.players.features)
        return self._sampler.question(observed.x)

    def take(self, y: Any, question: Question, answers: Sequence[Output] | Table) -> None:
        """Take the answers."""
        if not isinstance(answers, Table):
            losses = each_loss(self.loss, y, answers)
            self._smooth(kernels.growths(losses, len(self.players)))
            return
        loss, means = compiled_loss(self.loss, y, answers.labels), self._means
        if loss is None:
            self.take(y, question, answers.outputs())
            return
        kernels.explain_replaced(
            *loss,
            2.0,
            answers.numbers,
            means.values,
            means.variances,
            means.advance(),
            self._increments,
        )
        self._smooth_others()

    def store(self, observed: Observed) -> None:
        """Keep the observation."""
        self._sampler.update(observed.x, observed.some(self.players.features))

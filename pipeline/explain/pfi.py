"""iPFI: how much the loss grows when a feature's value is replaced by another one.

Fumagalli, Muschalik, Hüllermeier, Hammer (2022), "Incremental Permutation Feature Importance
(iPFI): Towards Online Explanations on Data Streams".
"""

import random
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from pipeline.evaluate import (
    Evaluator,
    Observation,
    Output,
    evaluator_for,
)
from pipeline.evaluate.compiled import plain
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
from pipeline.explain.questions import Observed, Question, Replaced, Row, columns_of
from pipeline.explain.storage import Reservoir, make_reservoir
from pipeline.explain.together import explain_together

_running_mean = plain(kernels.running_mean)


class PFIQuestion:
    """The observation, and M inputs for each feature in turn with its value replaced.

    Parameters
    ----------
    features
        What is replaced.
    sample
        Where replacement values come from.
    chosen
        The M observations of it that supply the values; none if nothing is asked.
    """

    __slots__ = ("chosen", "features", "sample", "size")

    def __init__(self, features: tuple[str, ...], sample: Sample, chosen: Sequence[int]) -> None:
        self.features = features
        self.sample = sample
        self.chosen = chosen
        self.size = 1 + len(features) * len(chosen) if chosen else 0

    def replacements(self) -> list[Row]:
        """Return what is replaced; see :class:`Question`."""
        chosen = [self.sample.rows[place] for place in self.chosen]
        changed = [{feature: draw[feature]} for feature in self.features for draw in chosen]
        return [{}, *changed] if changed else []

    def fill(self, features: tuple[str, ...], rows: Floats, begin: int) -> None:
        """Replace it in whole inputs; see :class:`Question`."""
        if self.chosen:
            stored, chosen = self.sample.numbers, np.array(self.chosen, np.intp)
            columns = columns_of(features, self.features)
            if stored is None or not kernels.replace_drawn(
                rows, begin + 1, columns, stored, chosen
            ):
                raise NoNumberError("a stored observation has a value that is no number")


class PFISampler:
    """Chooses the inputs on which iPFI asks the model.

    Owns the reservoir. One stored observation supplies the replacement values of a draw, unless
    the imputer is another one.

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
        features: Sequence[str],
        *,
        reservoir: Reservoir,
        imputer: str = "interventional",
        categorical: Collection[str] | None = None,
        warm_up: int,
        inner_samples: InnerSamples,
        rng: random.Random,
    ) -> None:
        self.features = check_features(features)
        self.reservoir = reservoir
        self.imputer = check_imputer(imputer, inner_samples)
        self.warm_up = warm_up
        self.inner_samples = inner_samples
        self._rng = rng
        self._conditional = conditional(imputer, self.features, reservoir, rng, categorical)

    def question(self, x: Observation) -> Question:
        """Return what to ask about this observation; nothing while warming up."""
        features, n = self.features, len(self.reservoir.rows)
        if n < self.warm_up:
            return PFIQuestion(features, self.reservoir, ())
        chosen = draws(n, self.inner_samples, self._rng)
        if self._conditional is not None:
            m, imputer = len(chosen), self._conditional
            return Replaced([row for f in features for row in imputer.draws(x, [f], m)])
        if self.imputer == "product":
            mixture = Mixture(features, self.reservoir, len(chosen), self._rng)
            return PFIQuestion(features, mixture, range(len(chosen)))
        return PFIQuestion(features, self.reservoir, chosen)

    def replacements(self, x: Observation) -> list[Row]:
        """Return what to replace: M entries for each feature in turn, none while warming up."""
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


def pfi_increment(loss: Loss, y: Target, prediction: Output, outputs: Sequence[Output]) -> float:
    """Return λ_t: the mean loss on the replaced inputs minus the loss on the observation.

    References
    ----------
    iPFI, Algorithm 1, line 3, averaged over M draws.

    Examples
    --------
    >>> from pipeline.explain.losses import absolute_error
    >>> pfi_increment(absolute_error, 1.0, 1.5, [3.0, 2.0])
    1.0
    """
    return mean_loss(loss, y, outputs) - float(loss(y, prediction))


def mean_loss(loss: Loss, y: Target, outputs: Sequence[Output]) -> float:
    """Return the mean loss over the draws: the first term of λ_t."""
    # a user's loss may give numpy numbers or truth values, which are no JSON
    return _running_mean([float(loss(y, output)) for output in outputs])


class IncrementalPFI(ImportanceExplainer):
    """Incremental permutation feature importance of a model that learns.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    features
        Names of the features to explain.
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
        Smoothing, in (0, 1].
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
    iPFI, Section 3, Algorithm 1; smoothing debiased as in iPDP, Algorithm 1. Observational
    replacement as in iSAGE, Section 3.2.2.

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
        features: Sequence[str],
        *,
        loss: str | Loss = "cross_entropy",
        alpha: float = 0.001,
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
        self.evaluator = (
            evaluator_for(model, evaluator) if isinstance(evaluator, str) else evaluator
        )
        self._sampler = PFISampler(
            self.features,
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
        check_observation(observed, self.features)
        return self._sampler.question(observed.x)

    def take(self, y: Any, question: Question, answers: Sequence[Output] | Table) -> None:
        """Take the answers."""
        if not isinstance(answers, Table):
            losses = each_loss(self.loss, y, answers)
            self._smooth(kernels.growths(losses, len(self.features)))
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

    def store(self, observed: Observed) -> None:
        """Keep the observation."""
        self._sampler.update(observed.x, observed.some(self.features))


def check_warm_up(warm_up: int | None, reservoir_size: int) -> int:
    """Return how many stored observations an explanation needs; by default a full reservoir.

    Raises
    ------
    ValueError
        If ``warm_up`` is not in [1, reservoir_size].
    """
    if warm_up is None:
        return reservoir_size
    if not 1 <= warm_up <= reservoir_size:
        raise ValueError(f"warm_up is {warm_up!r}, but must lie in [1, {reservoir_size}]")
    return warm_up

"""SAGE values of a batch, by random permutations of the features.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams", after Covert, Lundberg, Lee (2020), "Understanding Global
Feature Contributions With Additive Importance Measures".
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pipeline.baselines.batch import Batch
from pipeline.evaluate import Evaluator, Observation, Output, Table, as_evaluator
from pipeline.evaluate.inputs import Floats
from pipeline.explain import kernels
from pipeline.explain.importance import InnerSamples, check_inner_samples
from pipeline.explain.losses import Loss, Target, compiled_loss, each_loss
from pipeline.explain.outputs import mean_output
from pipeline.explain.players import Features, Players
from pipeline.explain.sage import DEFAULT_INNER_SAMPLES
from pipeline.explain.sampling.permutation import SAGEDraw, draw_permutation
from pipeline.explain.sampling.sage import restricted
from pipeline.explain.together import ask_model


def batch_sage(
    model: object,
    xs: Sequence[Observation],
    ys: Sequence[Target],
    features: Features,
    *,
    loss: str | Loss = "cross_entropy",
    inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
    seed: int | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, float]:
    """Return the interventional SAGE values of a batch.

    Each observation reveals the features in one random order. The values sum to the mean loss of
    the mean prediction minus the mean loss of the model (efficiency). The model is asked
    N·(2 + (features - 1)·m) times, for N observations and m inner samples.

    Few inner samples bias SAGE as they do iSAGE: the loss of a mean of m outputs is too large by
    about Var(output | revealed features) / m.

    Parameters
    ----------
    model
        Any object with ``predict_proba_one`` (used when there) or ``predict_one``. It is asked,
        never changed.
    xs
        The observations, N of at least 2; every explained feature must be there.
    ys
        Their labels.
    features
        Names of the features to explain. A mapping among them, such as
        ``{"place": ["lat", "lon"]}``, has groups of features that are explained as one.
    loss
        ``"cross_entropy"``, ``"zero_one"``, ``"brier"``, ``"absolute_error"``,
        ``"squared_error"``, or a function of (label, output).
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"`` takes each
        observation of the batch once: the exact expectation over it.
    seed
        Seed of its random numbers; None for another one each time.
    evaluator
        How the model is asked: ``"hoeffding"``, ``"linear"``, ``"batch"``, ``"generic"``, or
        ``"auto"``, the first of these that fits; or an evaluator of your own.

    Returns
    -------
    Feature → SAGE value, in units of the loss.

    Raises
    ------
    ValueError
        For an argument out of its range; the message names it.
    TypeError
        If the model cannot be asked.

    References
    ----------
    iSAGE, Definition 2 and Algorithm 5. As in iSAGE here, the m draws of an observation supply
    the hidden features along the whole permutation, and a feature that is constant in the batch
    takes no part in it.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``, so ``a`` gets all of the improvement:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> xs = [{"a": a, "b": 7.0} for a in (1.0, 2.0, 3.0, 4.0)]
    >>> batch_sage(Double(), xs, [2.0, 4.0, 6.0, 8.0], ["a", "b"], loss="absolute_error", seed=1)
    {'a': 2.0, 'b': 0.0}
    """
    check_inner_samples(inner_samples)
    batch = Batch(xs, ys, Players(features), loss=loss, evaluator=as_evaluator(model, evaluator))
    return permuted_sage(batch, random.Random(seed), inner_samples=inner_samples)


def permuted_sage(
    batch: Batch, rng: random.Random, *, inner_samples: InnerSamples
) -> dict[str, float]:
    """Return the SAGE values of a batch; see :func:`batch_sage`."""
    players = batch.players
    mean = mean_output([batch.evaluator(observed.x, [{}])[0] for observed in batch.observed])
    total = np.zeros(len(players))
    for observed, y in batch:
        draw = draw_permutation(players, observed.x, batch.reservoir, inner_samples, rng)
        answers = ask_model(batch.evaluator, [draw], observed)
        losses = _losses(batch.loss, y, mean, draw, answers)
        total += kernels.falls(losses, draw.places, len(players))
    return dict(zip(players.names, (total / len(batch)).tolist(), strict=True))


def _losses(
    loss: Loss, y: Target, mean: Output, draw: SAGEDraw, answers: Sequence[Output] | Table
) -> Floats:
    """Return the loss before a feature is revealed, and after each."""
    if isinstance(answers, Table):
        kind = compiled_loss(loss, y, answers.labels)
        shares: Mapping[Any, float] = mean if isinstance(mean, dict) else {None: mean}
        known = {**dict.fromkeys(answers.labels, 0.0), **shares}
        if kind and len(known) == len(answers.labels):
            marginal = np.array(list(known.values()))
            numbers = kernels.restricted(marginal, answers.numbers, len(draw.chosen))
            return kernels.losses(*kind, 2.0, numbers)
        answers = answers.outputs()
    prediction, *others = answers
    n = len(draw.places)
    outputs = restricted(n, range(1, n), mean, prediction, others)
    return each_loss(loss, y, list(outputs.values()))

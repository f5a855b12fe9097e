"""SAGE values of a batch, by random permutations of the features.

Muschalik, Fumagalli, Hammer, Hüllermeier (2023), "iSAGE: An Incremental Version of SAGE for
Online Explanation on Data Streams", after Covert, Lundberg, Lee (2020), "Understanding Global
Feature Contributions With Additive Importance Measures".
"""

import random
from collections.abc import Sequence

import numpy as np

from fluxplain.baselines.batch import Batch
from fluxplain.evaluate import Evaluator, Observation, as_evaluator
from fluxplain.evaluate.table import aligned
from fluxplain.explain import curve_kernels, kernels
from fluxplain.explain.imputers import InnerSamples, check_inner_samples, draws
from fluxplain.explain.losses import AnyLoss, Target, loss_for
from fluxplain.explain.method import ask_model
from fluxplain.explain.parameter_checks import ALL
from fluxplain.explain.players import Features, Players
from fluxplain.explain.randoms import permuted
from fluxplain.explain.sage import (
    DEFAULT_INNER_SAMPLES,
    SAGE,
    Draw,
    changing,
    hidden,
)


def batch_sage(
    model: object,
    xs: Sequence[Observation],
    ys: Sequence[Target],
    features: Features,
    *,
    loss: AnyLoss | None = None,
    inner_samples: InnerSamples = DEFAULT_INNER_SAMPLES,
    seed: int | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, float]:
    """Return the interventional SAGE values of a batch.

    Each observation reveals the features in one random order. The values sum to the mean loss of
    the mean prediction minus the mean loss of the model (efficiency). The model is evaluated
    N·(2 + (features - 1)·m) times, for N observations and m inner samples.

    The bias of few inner samples is taken off as in iSAGE; see
    :class:`~fluxplain.explain.IncrementalSAGE`.

    Parameters
    ----------
    model, xs, ys, features, loss, seed, evaluator
        See :mod:`fluxplain.baselines`, also for errors.
    inner_samples
        Draws per observation that a restricted output is the mean of, m; ``"all"`` takes each
        observation of the batch once: the exact expectation over it.

    Returns
    -------
    Feature → SAGE value, in units of the loss.

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
    asked = as_evaluator(model, evaluator)
    batch = Batch(xs, ys, Players(features), loss=loss_for(model, loss), evaluator=asked)
    return permuted_sage(batch, random.Random(seed), inner_samples=inner_samples)


def permuted_sage(
    batch: Batch, rng: random.Random, *, inner_samples: InnerSamples
) -> dict[str, float]:
    """Return the SAGE values of a batch; see :func:`batch_sage`."""
    players, loss = batch.players, batch.loss
    predictions = [ask_model(batch.evaluator, observed, [])[0] for observed in batch.observed]
    labels = tuple(dict.fromkeys(label for each in predictions for label in each.labels))
    outputs = np.concatenate([aligned(each, labels) for each in predictions])
    mean = np.array([curve_kernels.mean_of(column) for column in outputs.T])
    # all of them have no variance: the batch is the population
    share = 0.0 if inner_samples in {ALL, 1} else 1.0 / int(inner_samples)
    total = np.zeros(len(players))
    for place, (observed, y) in enumerate(batch):
        order = permuted(len(players), rng)
        chosen = draws(len(batch), inner_samples, rng)
        places = changing(players, order, observed, batch.stored)
        draw = Draw(places, np.arange(1, len(places)), len(chosen), share)
        question = hidden(players, observed, batch.stored, chosen, draw)
        _, [table] = ask_model(batch.evaluator, observed, [question])
        own, numbers = outputs[place], aligned(table, labels)
        blocks = kernels.revealed(mean, own, numbers, draw.m, draw.share, places, len(players))
        total += SAGE.increments(loss, [y], labels, own[None], blocks)
    return dict(zip(players.names, (total / len(batch)).tolist(), strict=True))

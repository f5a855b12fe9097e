"""PFI of a batch, by random permutations or exactly.

Fumagalli, Muschalik, Hüllermeier, Hammer (2022), "Incremental Permutation Feature Importance
(iPFI): Towards Online Explanations on Data Streams".
"""

import random
from collections.abc import Iterable, Sequence

import numpy as np

from fluxplain.baselines.batch import Batch
from fluxplain.evaluate import Evaluator, Observation, as_evaluator
from fluxplain.explain.losses import AnyLoss, Target, loss_for
from fluxplain.explain.method import ask_model
from fluxplain.explain.pfi import PFI, drawn
from fluxplain.explain.players import Features, Players
from fluxplain.explain.randoms import permuted

DEFAULT_PERMUTATIONS = 10
"""Number of permutations in the paper's experiments."""


def batch_pfi(
    model: object,
    xs: Sequence[Observation],
    ys: Sequence[Target],
    features: Features,
    *,
    loss: AnyLoss | None = None,
    permutations: int = DEFAULT_PERMUTATIONS,
    seed: int | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, float]:
    """Return how much the mean loss grows when a feature's values are permuted.

    The factor N/(N-1) compensates for observations that a permutation leaves in place, and makes
    the estimate unbiased. The model is evaluated N·(1 + M·features) times, for N observations
    and M permutations.

    Parameters
    ----------
    model, xs, ys, features, loss, seed, evaluator
        See :mod:`fluxplain.baselines`, also for errors.
    permutations
        How many random permutations are averaged, M, at least 1. Each permutes all features,
        one at a time.

    Returns
    -------
    Feature → importance, in units of the loss.

    References
    ----------
    iPFI, Section 2, Eq. 3.

    Examples
    --------
    The model doubles ``a`` and ignores ``b``:

    >>> class Double:
    ...     def predict_one(self, x):
    ...         return 2.0 * x["a"]
    >>> xs = [{"a": a, "b": -a} for a in (1.0, 2.0, 3.0, 4.0)]
    >>> ys = [2.0, 4.0, 6.0, 8.0]
    >>> pfi = batch_pfi(
    ...     Double(), xs, ys, ["a", "b"], loss="absolute_error", permutations=1000, seed=1
    ... )
    >>> {feature: round(value, 1) for feature, value in pfi.items()}
    {'a': 3.3, 'b': 0.0}
    """
    check_permutations(permutations)
    asked = as_evaluator(model, evaluator)
    batch = Batch(xs, ys, Players(features), loss=loss_for(model, loss), evaluator=asked)
    return permuted_pfi(batch, random.Random(seed), permutations=permutations)


def expected_pfi(
    model: object,
    xs: Sequence[Observation],
    ys: Sequence[Target],
    features: Features,
    *,
    loss: AnyLoss | None = None,
    evaluator: Evaluator | str = "auto",
) -> dict[str, float]:
    """Return how much the mean loss grows over all pairs of observations: the model reliance.

    It is the exact expectation of :func:`batch_pfi`, whose parameters and result it has. The model
    is evaluated N·(1 + (N-1)·features) times, for N observations.

    References
    ----------
    iPFI, Section 2, Expected PFI and Theorem 1; Fisher, Rudin, Dominici (2019), "All Models are
    Wrong, but Many are Useful", for the model reliance.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(predict_one=lambda x: 2.0 * x["a"])
    >>> xs = [{"a": a, "b": -a} for a in (1.0, 2.0, 3.0, 4.0)]
    >>> pfi = expected_pfi(model, xs, [2.0, 4.0, 6.0, 8.0], ["a", "b"], loss="absolute_error")
    >>> {feature: round(value, 2) for feature, value in pfi.items()}
    {'a': 3.33, 'b': 0.0}
    """
    asked = as_evaluator(model, evaluator)
    batch = Batch(xs, ys, Players(features), loss=loss_for(model, loss), evaluator=asked)
    n = len(batch)
    others = ([m for m in range(n) if m != i] for i in range(n))
    return _mean_growths(batch, others)


def permuted_pfi(batch: Batch, rng: random.Random, *, permutations: int) -> dict[str, float]:
    """Return the PFI of a batch; see :func:`batch_pfi`."""
    n = len(batch)
    orders = [permuted(n, rng) for _ in range(permutations)]
    growths = _mean_growths(batch, zip(*orders, strict=True))
    return {feature: growth * n / (n - 1) for feature, growth in growths.items()}


def check_permutations(permutations: int) -> int:
    """Return ``permutations``, or raise ``ValueError`` if it is below 1."""
    if permutations < 1:
        raise ValueError(f"permutations is {permutations!r}, but must be at least 1")
    return permutations


def _mean_growths(batch: Batch, chosen: Iterable[Sequence[int]]) -> dict[str, float]:
    """Return the mean growth of the loss.

    ``chosen`` holds, for each observation, those that supply the values of the replaced feature.
    """
    players = batch.players
    total = np.zeros(len(players))
    for (observed, y), which in zip(batch, chosen, strict=True):
        places = np.array(which, np.intp)
        question = drawn(players, observed, batch.stored, places, np.arange(len(players)))
        prediction, [table] = ask_model(batch.evaluator, observed, [question])
        labels, numbers, _ = table
        blocks = numbers.reshape(len(players), len(places), len(labels))
        total += PFI.increments(batch.loss, [y], labels, prediction.numbers, blocks)
    return dict(zip(players.names, (total / len(batch)).tolist(), strict=True))

"""A frozen forest that classifies the streams' records, and what its explanations are."""

from functools import cache
from typing import Any

import numpy as np
from river import forest

from fluxplain.evaluate import Encoding, evaluator_for
from fluxplain.evaluate.encoding import Floats, Inputs
from fluxplain.explain.loss_kernels import PROBABILITY_FLOOR
from fluxplain.forest.conversion import as_arrays
from tests.measure.coverage.streams import WEIGHTS, Records, records

SEED = 1_000_000
"""Of the records that the forest learns; those after it are of the truth."""

LEARNED = 5_000

KNOWN, DRAWS = 60_000, 50
"""Records whose mean is the truth, and inputs that a restricted output is the mean of."""


def classified(stream: str, n: int, seed: int) -> Records:
    """Return a stream's records; the label is whether its number is positive."""
    return [(x, y > 0.0) for x, y in records(stream, n, seed)]


@cache
def model() -> Any:
    """Return a forest of five trees that has learned independent records, and learns no more."""
    made = as_arrays(forest.ARFClassifier(n_models=5, seed=1))
    for x, y in classified("independent", LEARNED, SEED):
        made.learn_one(x, y)
    return made


def truths(stream: str) -> dict[str, dict[str, float]]:
    """Return method → feature → its expected value for the cross-entropy."""
    # whatever the correlation in time, a record has the distribution of independent ones
    return _truths(stream if stream.startswith("correlated") else "independent")


@cache
def _truths(stream: str) -> dict[str, dict[str, float]]:
    """Return the truths of a stream without correlation in time.

    The mean over many independent records of the stream's distribution. A squared error of a mean
    of draws is larger by a part of their variance, the cross-entropy about so, too: it is taken
    off as the explanations do, but here of ten times as many draws.
    """
    x, y = _drawn(stream, SEED + 1)
    others, _ = _drawn(stream, SEED + 2)
    own = _losses(_probabilities(x), y)
    found: dict[str, list[float]] = {"ipfi": [], "ipdp": []}
    for j in range(len(WEIGHTS)):
        replaced = x.copy()
        replaced[:, j] = others[:, j]
        found["ipfi"].append(float((_losses(_probabilities(replaced), y) - own).mean()))
        curve = []
        for point in np.linspace(-1.0, 1.0, 10) * 1.6448536269514722:
            replaced[:, j] = point
            curve.append(_probabilities(replaced).mean())
        found["ipdp"].append(float(np.std(curve, ddof=1)))
    found["isage"] = _shapley(x, y, others)
    return {method: dict(zip(WEIGHTS, each, strict=True)) for method, each in found.items()}


def _shapley(x: Floats, y: Floats, others: Floats) -> list[float]:
    """Return each feature's mean fall of the loss when it is revealed, in random orders."""
    rng, d = np.random.default_rng(SEED), x.shape[1]
    order = rng.permuted(np.tile(np.arange(d), (len(x), 1)), axis=1)
    mean = np.full(len(x), _probabilities(others).mean())
    before, found, hidden = _losses(mean, y), np.zeros(d), np.ones(x.shape, bool)
    for level in range(d):
        revealed = order[:, level]
        hidden[np.arange(len(x)), revealed] = False
        total, squares = np.zeros(len(x)), np.zeros(len(x))
        for _ in range(DRAWS if level < d - 1 else 1):
            p = _probabilities(np.where(hidden, rng.permutation(others), x))
            total, squares = total + p, squares + p * p
        draws = DRAWS if level < d - 1 else 1
        p = total / draws
        after = _losses(p, y)
        if draws > 1:
            variance = np.maximum(squares / draws - p * p, 0.0) / (draws - 1)
            right = np.clip(np.where(y, p, 1.0 - p), PROBABILITY_FLOOR, None)
            after -= np.where(right < 1.0, 0.5 * variance / right**2, 0.0)
        np.add.at(found, revealed, before - after)
        before = after
    return [float(each) for each in found / len(x)]


def _drawn(stream: str, seed: int) -> tuple[Floats, Floats]:
    rows = classified(stream, KNOWN, seed)
    return np.array([[*x.values()] for x, _ in rows]), np.array([y for _, y in rows], float)


def _probabilities(rows: Floats) -> Floats:
    """Return the model's probability of the positive class, shape (rows,)."""
    observed = Encoding().observe(dict(zip(WEIGHTS, rows[0].tolist(), strict=True)))
    table = evaluator_for(model())(Inputs(observed, np.ascontiguousarray(rows)))
    found: Floats = table.numbers[:, table.labels.index(True)]
    return found


def _losses(p: Floats, y: Floats) -> Floats:
    right = np.where(y, p, 1.0 - p)
    losses: Floats = -np.log(np.clip(right, PROBABILITY_FLOOR, 1.0 - PROBABILITY_FLOOR))
    return losses

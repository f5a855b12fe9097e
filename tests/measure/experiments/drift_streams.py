"""Streams whose drifts are known, and the models that learn them."""

import math
import random
from collections.abc import Iterator
from itertools import chain, count, islice
from typing import Any

from river import compose, forest, linear_model, optim, preprocessing, tree
from river.datasets import synth

from tests.measure.experiments.streams import VICPRICE_VARIES, Record, drifting, elec2, switched

Stream = Iterator[Record]

AGRAWAL_CATEGORICAL = ("elevel", "car", "zipcode")


def forest_of_five(seed: int) -> Any:
    return forest.ARFClassifier(n_models=5, seed=seed)


def adaptive_tree(seed: int) -> Any:
    """Return the Hoeffding Adaptive Tree of iPDP, Section 4.2."""
    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def logistic(seed: int) -> Any:
    """Return a logistic regression that follows by gradient descent; nothing of it is random."""
    return compose.Pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression(optimizer=optim.SGD(0.05))
    )


def agrawal(seed: int, concept: int = 1) -> Stream:
    return iter(synth.Agrawal(classification_function=concept, seed=seed))


def sudden(seed: int, at: int) -> Stream:
    """Return agrawal 1, and from there on 2: from salary and age to age and education level."""
    return chain(islice(agrawal(seed), at), agrawal(seed + 1, 2))


def gradual(seed: int, at: int, within: int) -> Stream:
    """Return agrawal 1, and ever more of 2, mostly within so many records from there on."""
    old, new = agrawal(seed), agrawal(seed + 1, 2)
    return drifting(old, new, at=at + within // 2, width=within // 2, seed=seed)


def exchanged(seed: int, at: int) -> Stream:
    """Return agrawal 1; from there on both relevant features swap values with irrelevant ones.

    The feature drift of iPFI, Section 4, Experiment B.
    """
    stream = agrawal(seed)
    pairs = (("salary", "loan"), ("age", "hvalue"))
    return chain(islice(stream, at), switched(stream, pairs))


def rich(seed: int, at: int) -> Stream:
    """Return agrawal 1; from there on only those who earn more than 90,000: a virtual drift."""
    stream = agrawal(seed)
    yield from islice(stream, at)
    yield from ((x, y) for x, y in stream if x["salary"] > 90_000)


def widened(seed: int, at: int) -> Stream:
    """Return agrawal 1; from there on salaries are up to a third higher, up to 200,000.

    The virtual drift of the authors' script for iPDP, Figure 2. The classes stay those of the
    salaries before.
    """
    stream, rng = agrawal(seed), random.Random(seed)
    yield from islice(stream, at)
    for x, y in stream:
        yield x | {"salary": int(rng.uniform(1.0, 1.3334) * x["salary"])}, y


def resampled(seed: int) -> Stream:
    """Return records of elec2 drawn with replacement: the same distribution throughout."""
    records, rng = elec2(), random.Random(seed)
    while True:
        x, y = rng.choice(records)
        yield dict(x), y


def electricity(seed: int, at: int) -> Stream:
    """Return elec2 so that ``vicprice`` begins to vary there; the seed is of others."""
    return islice(elec2(), VICPRICE_VARIES - at, None)


Side = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]
"""Means, variances and weights of two features: iPDP, Section 4.2.

The paper prints the variances 20 and 40; the authors' script takes them as standard deviations.
"""

BEFORE: Side = ((100.0, 200.0), (20.0, 40.0), (1.0, -0.5))
AFTER: Side = ((200.0, 100.0), (40.0, 20.0), (-0.5, 1.0))


def hyperplane(seed: int, at: int | None) -> Stream:
    """Return the hyperplane, which is another one from there on; for None it never is.

    The paper does not print the noise: mean 5 and standard deviation 1 are the script's.
    """
    rng = random.Random(seed)
    for t in count():
        means, variances, weights = BEFORE if at is None or t < at else AFTER
        x1, x2 = (rng.gauss(m, math.sqrt(v)) for m, v in zip(means, variances, strict=True))
        z = weights[0] * x1 + weights[1] * x2 + rng.gauss(5.0, 1.0)
        # 1 / (1 + exp(-z)) ≥ τ, with τ = 0.1
        yield {"x1": x1, "x2": x2}, int(z >= -math.log(9.0))


def rotating(seed: int, at: int, within: int) -> Stream:
    """Return two standard normal features; the one that decides gives way to the other, slowly."""
    rng = random.Random(seed)
    for t in count():
        turned = min(max((t - at) / within, 0.0), 1.0) * math.pi / 2
        weights = (math.cos(turned), math.sin(turned))
        x = {"x1": rng.gauss(0.0, 1.0), "x2": rng.gauss(0.0, 1.0)}
        z = weights[0] * x["x1"] + weights[1] * x["x2"] + rng.gauss(0.0, 0.5)
        yield x, int(z >= 0.0)

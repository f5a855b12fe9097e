"""Streams whose drifts are known, and the models that learn them."""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice
from typing import Any

from river import compose, forest, linear_model, naive_bayes, optim, preprocessing, tree
from river.datasets import synth

from tests.measure.experiments.streams import (
    HALF_HOURS,
    VICPRICE_VARIES,
    Record,
    drifting,
    elec2,
    switched,
    weather,
)

Stream = Iterator[Record]

AGRAWAL_CATEGORICAL = ("elevel", "car", "zipcode")


def forest_of_five(seed: int, at: int = 0) -> Any:
    return forest.ARFClassifier(n_models=5, seed=seed)


def adaptive_tree(seed: int, at: int = 0) -> Any:
    """Return the Hoeffding Adaptive Tree of iPDP, Section 4.2."""
    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def logistic(seed: int, at: int = 0) -> Any:
    """Return a logistic regression that follows by gradient descent; nothing of it is random."""
    return compose.Pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression(optimizer=optim.SGD(0.05))
    )


def bayes(seed: int, at: int = 0) -> Any:
    return naive_bayes.GaussianNB()


class Reversing:
    """Knows the probabilities of :func:`reversing`, also from the change on: it was replaced."""

    def __init__(self, seed: int, at: int) -> None:
        self._at, self._seen = at, 0

    def learn_one(self, x: dict[str, float], y: int) -> None:
        self._seen += 1

    def predict_proba_one(self, x: dict[str, float]) -> dict[int, float]:
        p = _probability(x, reversed_=self._seen >= self._at)
        return {0: 1.0 - p, 1: p}


def _probability(x: dict[str, float], *, reversed_: bool) -> float:
    return 1.0 / (1.0 + math.exp((2.0 if reversed_ else -2.0) * x["x1"] - x["x2"]))


def reversing(seed: int, at: int, correlation: float = 0.0) -> Stream:
    """Return two normal features; from there on the effect of the first one has the other sign.

    ``correlation`` is that of each with itself one record before.
    """
    rng, x = random.Random(seed), {"x1": 0.0, "x2": 0.0}
    own = math.sqrt(1.0 - correlation**2)
    for t in count():
        x = {feature: correlation * v + own * rng.gauss(0.0, 1.0) for feature, v in x.items()}
        yield x, int(rng.random() < _probability(x, reversed_=t >= at))


Concept = Callable[[int, int], Stream]
"""Seed, and number of the concept → a stream that does not change."""


def still(concept: Concept) -> Callable[[int, int], Stream]:
    """Return the stream of the first concept; where a drift would come is of others."""
    return lambda seed, at: concept(seed, 0)


def abrupt(concept: Concept) -> Callable[[int, int], Stream]:
    """Return the stream of the first concept, and from there on that of the second."""
    return lambda seed, at: chain(islice(concept(seed, 0), at), concept(seed + 1, 1))


def slow(concept: Concept, within: int) -> Callable[[int, int], Stream]:
    """Return the first concept, and ever more of the second, mostly within so many records."""
    return lambda seed, at: drifting(
        concept(seed, 0), concept(seed + 1, 1), at=at + within // 2, width=within // 2, seed=seed
    )


def _named(records: Iterable[tuple[dict[int, Any], Any]]) -> Stream:
    """Return records of River with names for features, from ``x1`` on."""
    return (({f"x{f + 1}": float(v) for f, v in x.items()}, int(y)) for x, y in records)


def sea(seed: int, concept: int) -> Stream:
    """Return SEA: the sum of two of three features is above 8, or above 9.5; a tenth is noise."""
    return _named(synth.SEA(3 * concept, noise=0.1, seed=seed))


def mixed(seed: int, concept: int) -> Stream:
    """Return Mixed, of two Boolean and two other features, or with the classes exchanged."""
    return _named(synth.Mixed(concept, seed=seed))


def sine(seed: int, concept: int) -> Stream:
    """Return SINE1, or SINE2: two features decide, two do not."""
    return _named(synth.Sine(2 * concept, seed=seed, has_noise=True))


def rbf(seed: int, concept: int) -> Stream:
    """Return two classes around ten centres in four dimensions, or around ten others."""
    model = 10 + concept
    return _named(synth.RandomRBF(model, seed, n_features=4, n_centroids=10))


def led(seed: int, concept: int) -> Stream:
    """Return the segments of a digit and three random bits, or these for the first segments."""
    rng = random.Random(seed)
    records = (
        (x | {f"x{f}": float(rng.randrange(2)) for f in (8, 9, 10)}, y)
        for x, y in _named(synth.LED(seed, noise_percentage=0.1))
    )
    return switched(records, [(f"x{f}", f"x{f + 7}") for f in (1, 2, 3)]) if concept else records


def autocorrelated(seed: int, concept: int) -> Stream:
    """Return four features, each correlated by 0.9 with itself one record before.

    The first one decides most, or the third. Concept 2 is the first one with a higher ``x1``,
    concept 3 with a higher ``x4``, on which nothing depends.
    """
    rng, x = random.Random(seed), dict.fromkeys(("x1", "x2", "x3", "x4"), 0.0)
    decides = "x3" if concept == 1 else "x1"
    raised = {2: {"x1": 2.0}, 3: {"x4": 1.0}}.get(concept, {})
    while True:
        x = {f: 0.9 * v + rng.gauss(0.0, math.sqrt(0.19)) for f, v in x.items()}
        seen = {f: v + raised.get(f, 0.0) for f, v in x.items()}
        z = 2.0 * seen[decides] + seen["x2"]
        yield seen, int(rng.random() < 1.0 / (1.0 + math.exp(-z)))


def raised(feature: int) -> Concept:
    """Return the concepts of which the second one has a higher first, or fourth, feature."""
    return lambda seed, concept: autocorrelated(seed, concept and (2 if feature == 1 else 3))


def bellevue(seed: int, at: int) -> Stream:
    """Return the weather in its order, from a day on that depends on the seed."""
    return islice(weather(), seed * 149 % 3_000, None)


def misread(seed: int, at: int) -> Stream:
    """Return the weather; from there on visibility and wind speed are exchanged."""
    stream = iter(bellevue(seed, at))
    return chain(islice(stream, at), switched(stream, [("feat_4", "feat_5")]))


def bellevue_resampled(seed: int, at: int) -> Stream:
    """Return days of the weather drawn with replacement: the same distribution throughout."""
    records, rng = weather(), random.Random(seed)
    return (rng.choice(records) for _ in count())


def days(seed: int, at: int) -> Stream:
    """Return whole days of elec2 drawn with replacement: they depend on each other, and no more.

    From the record on from which ``vicprice`` varies.
    """
    records, rng = elec2()[VICPRICE_VARIES:], random.Random(seed)
    while True:
        begin = HALF_HOURS * rng.randrange(len(records) // HALF_HOURS)
        yield from records[begin : begin + HALF_HOURS]


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
    """Return agrawal 1; from there on only those who earn more than 90,000: a virtual drift.

    They have no commission.
    """
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

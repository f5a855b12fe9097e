"""Feature removal: what the imputers make of dependent features."""

import itertools
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from river import linear_model

from fluxplain.evaluate import Encoding, Value
from fluxplain.explain import IncrementalPFI, IncrementalSAGE, explain_together
from fluxplain.explain.imputers import ObservationalImputer, mixed
from fluxplain.explain.method import inputs_of
from fluxplain.explain.players import Players
from fluxplain.explain.sage import SAGE
from fluxplain.explain.storage import GeometricReservoir
from tests.kit.support import Row, Scripted, pickled

FEATURES = ("a", "b", "c")
COPIED = 0.9
"""Chance that b is a; c is independent of both, and all are 0 or 1 alike."""

JOINT = {
    (a, b, c): 0.25 * (COPIED if a == b else 1.0 - COPIED)
    for a, b, c in itertools.product((0, 1), repeat=3)
}


def rule(a: float, c: float) -> float:
    return 3.0 * a + c


def observations(seed: int) -> Iterator[tuple[int, int, int]]:
    rng = random.Random(seed)
    points, chances = list(JOINT), list(JOINT.values())
    while True:
        yield rng.choices(points, chances)[0]


def expected(of: Callable[[tuple[int, ...]], float], given: dict[int, int]) -> float:
    """Return the expectation, given some of the coordinates, by enumeration."""
    matching = {x: p for x, p in JOINT.items() if all(x[i] == v for i, v in given.items())}
    return sum(p * of(x) for x, p in matching.items()) / sum(matching.values())


def output(x: tuple[int, ...]) -> float:
    return rule(x[0], x[2])


def spread(hidden: set[int], x: tuple[int, ...]) -> float:
    """Return the variance of the output when each hidden feature is drawn given the others."""
    known = {i: x[i] for i in range(3) if i not in hidden}
    total = 0.0
    for i in hidden:
        mean = expected(lambda z, i=i: z[i], known)  # type: ignore[misc]
        total += (3.0, 0.0, 1.0)[i] ** 2 * mean * (1.0 - mean)
    return total


def restricted_loss(known: set[int], spread_kept: float) -> float:
    """Return the expected squared error of E(output | known) plus a part of the draws' variance."""
    total = 0.0
    for x, p in JOINT.items():
        mean = expected(output, {i: x[i] for i in known})
        total += p * (mean - output(x)) ** 2
        if 0 < len(known) < 3:
            total += p * spread_kept * spread(set(range(3)) - known, x)
    return total


def shapley_values(spread_kept: float) -> dict[str, float]:
    """Return each feature's mean fall of the restricted loss over all orders."""
    falls: dict[str, list[float]] = {feature: [] for feature in FEATURES}
    for order in itertools.permutations(range(3)):
        for k, i in enumerate(order):
            before, after = set(order[:k]), set(order[: k + 1])
            falls[FEATURES[i]].append(
                restricted_loss(before, spread_kept) - restricted_loss(after, spread_kept)
            )
    return {feature: statistics.fmean(each) for feature, each in falls.items()}


def test_the_enumeration_gives_what_is_known() -> None:
    """Efficiency: the values sum to the variance of the output, 9/4 + 1/4."""
    assert sum(shapley_values(0.0).values()) == pytest.approx(2.5)
    assert shapley_values(0.0)["c"] == pytest.approx(0.25)
    # revealed first, b explains the share of corr(a, b)² = 0.8² of a's 9/4: else nothing
    assert shapley_values(0.0)["b"] == pytest.approx(0.8**2 * 2.25 / 2.0)


@pytest.mark.slow
@pytest.mark.parametrize("named", [pytest.param(False, marks=pytest.mark.slow), True])
def test_observational_isage_reaches_the_conditional_shapley_values(named: bool) -> None:
    """The mean of m draws from L values varies by s = (1/m + 1/L + 1/(2L-1)) · Var at most.

    (1/L for the values of a leaf, 1/(2L-1) for the weights of the branches.) That is what the
    restricted losses are too large by; the values lie between those of s = 1/m and of that.
    """

    def observed(x: tuple[int, int, int]) -> Row:
        values = dict(zip(FEATURES, x, strict=True))
        return {f: "ny"[v] if named else float(v) for f, v in values.items()}

    def answer(x: Any) -> float:
        return rule(x["a"] == "y", x["c"] == "y") if named else rule(x["a"], x["c"])

    m, size = 20, 200
    sage = IncrementalSAGE(
        Scripted(answer),
        FEATURES,
        imputer="observational",
        loss="squared_error",
        inner_samples=m,
        reservoir_size=size,
        warm_up=1,
        seed=1,
    )
    # what was explained before the trees have split, at about 1,000, fades to (1 - α)^6000 < 0.003
    for x in itertools.islice(observations(2), 7_000):
        sage.explain_one(observed(x), output(x))
    low, high = (shapley_values(s) for s in (1.0 / m, 1.0 / m + 1.0 / size + 1.0 / (2 * size - 1)))
    for feature, value in sage.values.items():
        tolerance = 4.0 * sage.std_errors[feature] + abs(high[feature] - low[feature])
        assert abs(value - low[feature]) < tolerance, feature
    # the cases can be told apart: an interventional b, which the model ignores, has nothing
    assert sage.values["b"] > 0.3 > 2.0 * sage.std_errors["b"]


def copies(n: int, seed: int = 1) -> Iterator[Row]:
    """Yield observations in which b is a, of two values, and c independent."""
    rng = random.Random(seed)
    for _ in range(n):
        a = float(rng.random() < 0.5)
        yield {"a": a, "b": a, "c": rng.random()}


@pytest.mark.parametrize("imputer", ["interventional", "product", "observational"])
def test_conditional_ipfi_of_a_feature_that_another_one_tells_is_zero(imputer: str) -> None:
    """The replaced a must be b, so nothing changes; drawn from the marginal, every other does."""
    pfi = IncrementalPFI(
        Scripted(lambda x: float(x["a"])),
        FEATURES,
        imputer=imputer,
        loss="absolute_error",
        reservoir_size=20,
        seed=1,
    )
    replaced = []
    for t, x in enumerate(copies(1_000)):
        pfi.explain_one(x, float(x["a"]))
        if t >= 500:
            replaced.append(pfi.increments["a"])
    if imputer == "observational":
        assert set(replaced) == {0.0}
    else:
        assert abs(statistics.fmean(replaced) - 0.5) < 4.0 * 0.5 / math.sqrt(500 / 2)
    assert pfi.values["b"] == pfi.values["c"] == 0.0


def test_a_product_of_features_takes_each_from_an_observation_of_its_own() -> None:
    """All pairs of four stored values are equally likely: χ² with 15 degrees of freedom."""
    stored = np.array([[t, -t] for t in range(4)], np.float64)
    n = 8_000
    counts = Counter(map(tuple, mixed(stored, n, random.Random(2)).tolist()))
    chi_squared = sum((counts[a, -b] - n / 16) ** 2 / (n / 16) for a in range(4) for b in range(4))
    assert chi_squared < 15 + 4.0 * math.sqrt(2.0 * 15)


@pytest.mark.parametrize("imputer", ["interventional", "product", "observational"])
def test_what_isage_asks_about_is_possible_unless_features_are_mixed(imputer: str) -> None:
    """With b = a, asking about another pair needs draws of each alone."""
    sampler = SAGE(
        Players(FEATURES),
        reservoir=GeometricReservoir(20, random.Random(1)),
        imputer=imputer,
        alpha=0.1,
        warm_up=1,
        inner_samples=4,
        rng=random.Random(1),
    )
    others = {"c": 0, "a": 0}  # known alone → inputs with another pair
    encoding = Encoding()
    for t, x in enumerate(copies(1_500)):
        observed = encoding.observe(x)
        question = sampler.ask(observed)
        if t >= 500 and question:
            order, levels, m, _ = question.about
            first = FEATURES[order[0]]
            if first in others and 1 in levels:
                for row in inputs_of(observed, [question]).dicts()[1 : 1 + m]:
                    others[first] += row["a"] != row["b"]
        sampler.store(observed)
    assert bool(others["a"]) == (imputer != "observational")
    assert bool(others["c"]) == (imputer != "interventional")


def test_features_beyond_the_explained_ones_are_known() -> None:
    """a alone is explained, and b tells it."""
    imputer = ObservationalImputer(["a"], size=20, rng=random.Random(1))
    for x in copies(1_000):
        imputer.update(x)
    for b in (0.0, 1.0):
        drawn = imputer.draws({"a": 0.0, "b": b, "c": 0.5}, ["a"], 20)
        assert drawn == [{"a": b}] * 20


@pytest.mark.parametrize(
    ("categorical", "kept"), [(None, {"text", "truth"}), (["number"], {"number", "text", "truth"})]
)
def test_text_and_truth_values_are_categories_by_default(
    categorical: list[str] | None, kept: set[str]
) -> None:
    x: Row = {"text": "u", "truth": True, "number": 1}
    imputer = ObservationalImputer(
        list(x), size=5, rng=random.Random(1), categorical=categorical and sorted(kept)
    )
    imputer.update(x)
    other: dict[str, Value] = {"text": "v", "truth": False, "number": "many"}
    for feature, value in other.items():
        if feature in kept:
            assert imputer.draws({**x, feature: value}, ["text"], 1) == [{"text": "u"}]
        else:
            with pytest.raises(ValueError, match=f"{feature} is 'many'"):
                imputer.draws({**x, feature: value}, ["text"], 1)


@pytest.mark.slow
def test_asking_together_with_others_changes_no_estimate_across_a_split_and_a_pickle() -> None:
    """Of a model of numbers, so that the inputs are filled as arrays."""
    model = linear_model.LinearRegression()
    options: dict[str, Any] = {"loss": "squared_error", "reservoir_size": 10, "seed": 1}
    explainers = [
        kind(model, FEATURES, imputer=imputer, **options)
        for kind in (IncrementalPFI, IncrementalSAGE)
        for imputer in ("product", "observational")
    ]
    for each in explainers[1:]:
        each.evaluator = explainers[0].evaluator
    alone = [pickled(each) for each in explainers]
    for each in alone:
        each.evaluator = explainers[0].evaluator
    for t, x in enumerate(copies(700)):
        y = 2.0 * float(x["a"]) + float(x["c"])
        together = explain_together(explainers, x, y)
        assert [each.explain_one(x, y) for each in alone] == together
        if t in {150, 450}:
            alone = [pickled(each) for each in alone]
            for each in alone:
                each.evaluator = explainers[0].evaluator
        model.learn_one(x, y)

"""iSAGE: the Shapley values that it converges to, and its variance."""

import itertools
import math
import random
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fluxplain.baselines import batch_sage
from fluxplain.explain import IncrementalSAGE
from fluxplain.explain.players import Players
from fluxplain.explain.smoothing import ExponentialMeans
from tests.kit.support import Linear, Row, Scripted
from tests.theory.bounds import assert_slope, mean_and_tolerance

Record = tuple[Row, float]
Game = Callable[[frozenset[str]], float]


def curved(x: Any) -> float:
    """The features interact, and each has a share of its own."""
    values = list(x.values())
    return float(sum(k * v for k, v in enumerate(values)) + values[0] * values[1] + values[-1] ** 2)


def population(features: Sequence[str], n: int) -> list[Record]:
    """Return the records of a small population, whose labels the model does not know exactly."""
    rng = random.Random(len(features))
    xs: list[Row] = [{f: rng.gauss(0, 1) for f in features} for _ in range(n)]
    return [(x, curved(x) + rng.gauss(0, 1)) for x in xs]


def shapley(players: Sequence[str], loss: Game) -> dict[str, float]:
    """Definition 1, by enumeration of all subsets; the worth of one is what it takes off the loss.

    With one or all features known, a loss does not depend on draws; in between it may.
    """
    d, values = len(players), {}
    for player in players:
        others = [p for p in players if p != player]
        values[player] = sum(
            (loss(frozenset(known)) - loss(frozenset((*known, player))))
            / (d * math.comb(d - 1, len(known)))
            for size in range(d)
            for known in itertools.combinations(others, size)
        )
    return values


def known_features(players: Players, known: frozenset[str]) -> frozenset[str]:
    """Return what is known with some players."""
    places = [i for i, name in enumerate(players.names) if name in known]
    return frozenset(players.of(places))


def exact_loss(
    records: list[Record], features: Sequence[str], known: frozenset[str], m: int | None = None
) -> float:
    """ν of the paper, of the mean output over m records that supply what is hidden; None: over all.

    If nothing is known, of the mean prediction.
    """
    hidden = [f for f in features if f not in known]
    losses = []
    for x, y in records:
        outputs = [curved({**x, **{f: other[f] for f in hidden}}) for other, _ in records]
        draws = itertools.product(outputs, repeat=m) if known and m is not None else [outputs]
        losses += [(statistics.fmean(some) - y) ** 2 for some in draws]
    return statistics.fmean(losses)


PLAYERS: dict[str, list[Any]] = {
    "3 features": ["0", "1", "2"],
    "6 features": ["0", "1", "2", "3", "4", "5"],
    "a group": [{"pair": ["0", "2"]}, "1", "3"],
}


@pytest.mark.parametrize(
    ("of", "m"),
    [
        ("3 features", 1),
        ("a group", 2),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("6 features", 1), ("3 features", 2), ("a group", 1))
        ),
    ],
)
def test_theorem_3_1_isage_converges_to_the_shapley_values(of: str, m: int) -> None:
    """The stream draws from a population of 6 records, so that all expectations are finite sums.

    Groups are players: their values are those of the quotient game, in which the features of a
    group are known together.

    With one inner sample, what iSAGE converges to are the Shapley values of the loss of one draw
    (Theorem 3.1 lets m grow). With two, the draws' variance is taken off: they are those of the
    loss of the expectation.

    α is so small that all n increments weigh the same. The mean prediction is then the mean of s
    independent predictions, the observation's among them: its loss is larger by
    (V[h] - 2 cov(h, y)) / s, which goes to the feature that is revealed first.

    Increments covary only if they share an observation, which the reservoir keeps for L steps on
    average. The means over blocks 25 times as long are all but independent: Student's t.
    """
    players = Players(PLAYERS[of])
    features, d = sorted(players.features), len(players)
    records, size, block, blocks = population(features, 6), 20, 500, 40
    n = block * blocks
    sage = IncrementalSAGE(
        Scripted(curved),
        PLAYERS[of],
        loss="squared_error",
        alpha=1e-9,
        reservoir_size=size,
        inner_samples=m,
        seed=1,
    )
    rng = random.Random(2)
    means = np.zeros((blocks, d))
    for t in range(-size, n):
        sage.explain_one(*rng.choice(records))
        if t >= 0:
            means[t // block] += np.array(list(sage.increments.values())) / block

    def exact(known: frozenset[str], m: int | None) -> float:
        return exact_loss(records, features, known_features(players, known), m)

    outputs, labels = [curved(x) for x, _ in records], [y for _, y in records]
    covariance = float(np.cov(outputs, labels, bias=True)[0, 1])
    inverses = sum(1.0 / s for s in range(size + 1, size + n + 1)) / n
    first = (statistics.pvariance(outputs) - 2.0 * covariance) * inverses / d
    one = shapley(players.names, lambda known: exact(known, 1))
    all_draws = shapley(players.names, lambda known: exact(known, None))
    values, others = (one, all_draws) if m == 1 else (all_draws, one)
    for i, name in enumerate(players.names):
        _, tolerance = mean_and_tolerance(means[:, i].tolist(), checks=d)
        assert abs(sage.values[name] - values[name] - first) < tolerance
        assert abs(values[name] - others[name]) > tolerance  # they can be told apart


@pytest.mark.parametrize("groups", [["0", "1", "2", "3"], ["0", {"pair": ["1", "3"]}, "2"]])
def test_batch_sage_with_all_inner_samples_has_the_shapley_values_as_its_expectation(
    groups: list[Any],
) -> None:
    """Only the orders of the players are random: seeds are independent samples."""
    players = Players(groups)
    features = sorted(players.features)
    records = population(features, 6)
    xs, ys = [x for x, _ in records], [y for _, y in records]
    samples = [
        batch_sage(
            Scripted(curved),
            xs,
            ys,
            groups,
            loss="squared_error",
            inner_samples="all",
            seed=seed,
        )
        for seed in range(400)
    ]
    exact = shapley(
        players.names,
        lambda known: exact_loss(records, features, known_features(players, known)),
    )
    for name in players.names:
        mean, tolerance = mean_and_tolerance([s[name] for s in samples], checks=len(players))
        assert abs(mean - exact[name]) < tolerance
        assert tolerance < 0.2 * max(exact.values())


V, W = 2.0, 1.0


def rademacher_increments() -> dict[str, list[float]]:
    """All equally likely increments of h = V a + W b, for a and b of -1 or 1, with ȳ = 0."""
    signs = (-1.0, 1.0)
    increments: dict[str, list[float]] = {"a": [], "b": []}
    for a, b, a_, b_ in itertools.product(signs, repeat=4):
        nothing = (V * a + W * b) ** 2
        only_a, only_b = (W * (b_ - b)) ** 2, (V * (a_ - a)) ** 2
        increments["a"] += [nothing - only_a, only_b]
        increments["b"] += [only_a, nothing - only_b]
    return increments


def test_theorem_3_2_the_variance_is_of_order_alpha() -> None:
    """It is V[Δ] α/(2-α), and so on a log scale a line of slope 1, for features of -1 or 1.

    Then the increments are sums of products of two signs, such as a_s a_r for the own and the drawn
    observation; different products are uncorrelated, so increments are, whatever the reservoir
    holds. (The mean prediction, near 0 by its small α of its own, adds less than 1e-3 of it.)

    The squared deviations of one long stream are averaged over blocks, 25 times as long as the
    longest memory 1/α, so that their means are all but independent: Student's t.
    """
    sage = IncrementalSAGE(
        Linear({"a": V, "b": W}),
        ["a", "b"],
        loss="squared_error",
        alpha=0.0005,
        reservoir_size=20,
        inner_samples=1,
        seed=1,
    )
    alphas, settle, block, blocks = (0.2, 0.1, 0.05, 0.025), 5_000, 1_000, 30
    smoothed = ExponentialMeans(2, alphas)
    known = rademacher_increments()
    means = [statistics.fmean(known[f]) for f in ("a", "b")]
    squares = np.zeros((len(alphas), blocks, 2))
    rng = random.Random(2)
    for t in range(settle + block * blocks):
        a, b = rng.choice((-1.0, 1.0)), rng.choice((-1.0, 1.0))
        sage.explain_one({"a": a, "b": b}, V * a + W * b)
        if sage.increments:
            smoothed.update(np.array([list(sage.increments.values())]))
            if t >= settle:
                squares[:, (t - settle) // block] += (smoothed.values - means) ** 2 / block
    for j, feature in enumerate(("a", "b")):
        measured = {}
        for i, alpha in enumerate(alphas):
            exact = statistics.pvariance(known[feature]) * alpha / (2.0 - alpha)
            measured[alpha] = mean_and_tolerance(squares[i, :, j].tolist(), checks=8)
            variance, tolerance = measured[alpha]
            assert abs(variance - exact) < tolerance + 1e-3 * exact
        assert_slope(measured, {alpha: alpha / (2.0 - alpha) for alpha in alphas})

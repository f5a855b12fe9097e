"""What reservoirs hold: the sampling probabilities of iPFI, Section 3.2, and their collisions."""

import random
from collections import Counter

import pytest

from fluxplain.evaluate import Encoding
from fluxplain.explain.storage import make_reservoir
from tests.theory.bounds import chi_squared, chi_squared_quantiles, hoeffding

REPETITIONS = 20_000
SIZE = 5


ENCODING = Encoding()
OBSERVATIONS = [ENCODING.observe({"t": t}) for t in range(5 * SIZE)]


def drawn(sampler: str, seen: int, rng: random.Random) -> int:
    """Return which of the observations 0, …, seen - 1 a reservoir of its own gives."""
    reservoir = make_reservoir(sampler, SIZE, rng)
    for observed in OBSERVATIONS[:seen]:
        reservoir.update(observed)
    return int(rng.choice(reservoir.rows)["t"])


def geometric(seen: int) -> list[float]:
    """p_{s,r}: those that filled the reservoir are as likely as each other."""
    p = 1.0 / SIZE
    return [p * (1.0 - p) ** (seen - max(r, SIZE - 1) - 1) for r in range(seen)]


def uniform(seen: int) -> list[float]:
    return [1.0 / seen] * seen


@pytest.mark.parametrize(("sampler", "shares"), [("geometric", geometric), ("uniform", uniform)])
@pytest.mark.parametrize("seen", [3 * SIZE, pytest.param(5 * SIZE, marks=pytest.mark.slow)])
def test_ages_follow_the_sampling_probabilities(sampler: str, shares: object, seen: int) -> None:
    """Pearson's χ² of independent draws; at 20,000 each cell expects 30 or more."""
    assert callable(shares)
    expected = [share * REPETITIONS for share in shares(seen)]
    assert sum(expected) == pytest.approx(REPETITIONS)
    assert min(expected) > 30.0
    rng = random.Random(1)
    counts = Counter(drawn(sampler, seen, rng) for _ in range(REPETITIONS))
    _, high = chi_squared_quantiles(seen - 1, checks=1)
    assert chi_squared([counts[r] for r in range(seen)], expected) < high


@pytest.mark.parametrize("beyond", [0, 2, pytest.param(20, marks=pytest.mark.slow)])
def test_lemma_1_two_geometric_draws_collide_as_often_as_it_says(beyond: int) -> None:
    """Of independent reservoirs: p/(2-p) (1 + (1-p)^(2(s-t0)+1)), with s - t0 = ``beyond``.

    The share of collisions is a mean of independent numbers in [0, 1], so Hoeffding's inequality
    holds. (1/L is what two draws from one reservoir would give: it is further away, unless nothing
    has been replaced yet.)
    """
    p = 1.0 / SIZE
    expected = p / (2.0 - p) * (1.0 + (1.0 - p) ** (2 * beyond + 1))
    rng = random.Random(2)
    seen = SIZE + beyond
    collisions = sum(
        drawn("geometric", seen, rng) == drawn("geometric", seen, rng) for _ in range(REPETITIONS)
    )
    tolerance = hoeffding(REPETITIONS, checks=1)
    assert abs(collisions / REPETITIONS - expected) < tolerance
    if beyond:
        assert abs(1.0 / SIZE - expected) > tolerance

"""PFI of a batch against its definition."""

import itertools
import math
import random
import statistics
from collections.abc import Mapping
from typing import Any

import pytest

from fluxplain.baselines import batch_pfi, expected_pfi
from fluxplain.explain import get_loss
from tests.kit.support import Linear, Row, Scripted

FEATURES = ["a", "b", "c"]


def curved(x: Mapping[str, Any]) -> float:
    return float(x["a"] ** 2 + 3.0 * x["a"] * x["b"] + (x["c"] == "u"))


def batch(n: int, seed: int = 1) -> tuple[list[Row], list[float]]:
    rng = random.Random(seed)
    xs: list[Row] = [
        {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "c": rng.choice("uv")} for _ in range(n)
    ]
    return xs, [curved(x) + rng.gauss(0, 0.5) for x in xs]


def permuted_growth(
    xs: list[Row], ys: list[float], feature: str, order: tuple[int, ...], loss: str
) -> float:
    """Eq. 2: the mean growth of the loss when values are taken in another order."""
    ell = get_loss(loss)
    return statistics.fmean(
        ell(y, curved({**x, feature: xs[m][feature]})) - ell(y, curved(x))
        for x, y, m in zip(xs, ys, order, strict=True)
    )


def test_each_permutation_gives_one_of_the_growths_that_permutations_can_give() -> None:
    xs, ys = batch(4)
    for feature in FEATURES:
        possible = sorted(
            4 / 3 * permuted_growth(xs, ys, feature, order, "squared_error")
            for order in itertools.permutations(range(4))
        )
        for seed in range(30):
            found = batch_pfi(
                Scripted(curved), xs, ys, FEATURES, loss="squared_error", permutations=1, seed=seed
            )[feature]
            assert min(abs(found - each) for each in possible) < 1e-9


def test_numbers_and_a_users_own_loss() -> None:
    xs = [{"a": float(t), "b": 1.0} for t in range(10)]
    ys = [0.0] * 10
    found = expected_pfi(Linear({"a": 1.0}), xs, ys, ["a", "b"], loss=lambda _, out: float(out))
    assert found == {"a": pytest.approx(0.0), "b": 0.0}


def test_what_a_model_cannot_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="not finite"):
        expected_pfi(
            Scripted(lambda x: math.inf), [{"a": 1.0}] * 2, [1.0] * 2, ["a"], loss="squared_error"
        )

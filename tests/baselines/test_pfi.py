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


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_expected_pfi_is_the_mean_over_all_pairs_of_different_observations(loss: str) -> None:
    xs, ys = batch(12)
    ell = get_loss(loss)
    found = expected_pfi(Scripted(curved), xs, ys, FEATURES, loss=loss)
    for feature in FEATURES:
        switched = [
            ell(ys[n], curved({**xs[n], feature: xs[m][feature]}))
            for n, m in itertools.permutations(range(12), 2)
        ]
        original = [ell(y, curved(x)) for x, y in zip(xs, ys, strict=True)]
        assert found[feature] == pytest.approx(
            statistics.fmean(switched) - statistics.fmean(original)
        )


def test_of_two_observations_a_permutation_switches_both_or_none() -> None:
    """Scaled by N/(N-1) = 2, one permutation gives twice the growth of the switch, or 0."""
    xs, ys = batch(2)
    seen = set()
    for seed in range(20):
        found = batch_pfi(
            Scripted(curved), xs, ys, ["a"], loss="squared_error", permutations=1, seed=seed
        )["a"]
        seen.add(round(found, 9))
    assert seen == {0.0, round(2.0 * permuted_growth(xs, ys, "a", (1, 0), "squared_error"), 9)}


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


def test_the_same_seed_gives_the_same_values() -> None:
    xs, ys = batch(20)
    first, same, other = (
        batch_pfi(Scripted(curved), xs, ys, FEATURES, loss="squared_error", seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == same != other


def test_numbers_and_a_users_own_loss() -> None:
    xs = [{"a": float(t), "b": 1.0} for t in range(10)]
    ys = [0.0] * 10
    found = expected_pfi(Linear({"a": 1.0}), xs, ys, ["a", "b"], loss=lambda _, out: float(out))  # type: ignore[arg-type]
    assert found == {"a": pytest.approx(0.0), "b": 0.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"permutations": 0}, "permutations is 0"),
        ({"features": []}, "features is empty"),
        ({"features": ["a", "z"]}, "lacks the feature 'z'"),
        ({"ys": [1.0]}, r"3 observations \(xs\), but 1 labels"),
        ({"xs": [{"a": 1.0}], "ys": [1.0]}, "at least 2"),
        ({"loss": "best"}, "unknown loss 'best'"),
        ({"evaluator": "best"}, "unknown evaluator 'best'"),
    ],
)
def test_an_argument_out_of_range_is_named(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "xs": [{"a": 1.0}] * 3,
        "ys": [1.0] * 3,
        "features": ["a"],
        "loss": "squared_error",
        **arguments,
    }
    with pytest.raises(ValueError, match=message):
        batch_pfi(Linear({"a": 1.0}), **given)


def test_what_a_model_cannot_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="not finite"):
        expected_pfi(
            Scripted(lambda x: math.inf), [{"a": 1.0}] * 2, [1.0] * 2, ["a"], loss="squared_error"
        )

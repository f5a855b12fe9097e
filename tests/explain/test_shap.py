"""iSHAP: the mean size of Shapley values, although each is known from few draws only."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from fluxplain.evaluate.encoding import Floats
from fluxplain.explain.losses import get_loss
from fluxplain.explain.output_reasons import IncrementalReasons
from fluxplain.explain.players import Features, Players
from fluxplain.explain.shap import SHAP
from fluxplain.explain.storage import GeometricReservoir
from tests.kit import support as kit
from tests.kit.answers import answers_of

Row = Mapping[str, Any]

LOSS = get_loss("squared_error")


def make(features: Features, m: int = 2, seed: int = 1, **settings: Any) -> SHAP:
    rng = random.Random(seed)
    given = {"warm_up": None, "inner_samples": m, "rng": rng, **settings}
    return SHAP(Players(features), reservoir=GeometricReservoir(20, rng), **given)


def increments(model: Any, method: SHAP, rows: list[Row]) -> Floats:
    """Return the increments of all observations, shape (observations, players)."""
    found = []
    for _, labels, blocks, _ in answers_of(model, method, rows):
        own = np.zeros((1, len(labels)))
        found.append(method.increments(LOSS, [], labels, own, np.asarray(blocks)))
    return np.array(found)


def rows_of(n: int, names: str = "abcd", seed: int = 1) -> list[Row]:
    return [dict(row) for row in kit.normal_rows(n, names, seed)]


FUNCTIONS: dict[str, Callable[[Row], float]] = {
    "additive": lambda x: 2.0 * x["a"] - x["b"],
    "effects that cancel": lambda x: 3.0 * x["a"] * x["b"] + x["c"],
    "steps": lambda x: float(x["a"] > 0.5) + 2.0 * (x["b"] + x["c"] > 1.0),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_mean_is_near_that_of_exact_values_and_of_a_feature_without_effect_0(name: str) -> None:
    """With three draws a product of two features counts a fifth too much, a step a sixth less."""
    model, rows = kit.Scripted(FUNCTIONS[name]), rows_of(620)
    exact = IncrementalReasons(model, list("abcd"), reservoir_size=20, alpha=1e-6, seed=2)
    for x in rows:
        exact.explain_one(x)
    expected = np.array(list(exact.values.values()))
    few, more = (increments(model, make(list("abcd"), m), rows).mean(axis=0) for m in (3, 20))
    assert few[3] == more[3] == 0.0, "it changes no output"
    assert few[:3] == pytest.approx(expected[:3], rel=0.3, abs=1e-12)
    assert more[:3] == pytest.approx(expected[:3], rel=0.08, abs=1e-12)


def test_some_players_get_the_increments_that_they_get_among_all() -> None:
    model, rows = kit.Scripted(FUNCTIONS["steps"]), rows_of(80)
    features: Features = ["a", {"both": ["b", "c"]}, "d"]
    whole = increments(model, make(features, 3), rows)
    part = increments(model, make(features, 3, asked=["both", "d"]), rows)
    assert whole[:, 1:].tolist() == part.tolist()


def blocks_of(*rows: list[float]) -> Floats:
    """Return Shapley values, a row of outputs for each player."""
    return np.array(rows)[:, None, :]


def test_the_sign_is_that_of_the_number_or_of_the_move_to_later_classes() -> None:
    assert SHAP.signed(blocks_of([2.5], [-1.0])).tolist() == [2.5, -1.0]
    assert SHAP.signed(blocks_of([-0.2, 0.2], [0.1, -0.1])).tolist() == [0.2, -0.1]
    of_three = blocks_of([-0.4, 0.4, 0.0], [-0.4, 0.0, 0.4], [0.2, -0.4, 0.2])
    assert SHAP.signed(of_three) == pytest.approx([0.2, 0.4, 0.0], abs=1e-12)
    sizes = SHAP.moves(("a", "b", "c"), np.zeros((1, 3)), of_three)
    assert (np.abs(SHAP.signed(of_three)) <= sizes).all()


def test_two_classes_count_once() -> None:
    def both(x: Row) -> Any:
        p = 0.5 + 0.4 * np.tanh(x["a"])
        return {"no": 1.0 - p, "yes": p}

    def yes(x: Row) -> float:
        return float(both(x)["yes"])

    rows = rows_of(80)
    of_classes = increments(kit.Scripted(both), make(list("abcd")), rows)
    of_number = increments(kit.Scripted(yes), make(list("abcd")), rows)
    assert of_classes == pytest.approx(of_number, abs=1e-12)

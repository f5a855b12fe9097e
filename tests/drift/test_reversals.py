"""Reversals of effects of any shape: found by the whole pipeline, and said."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.schemas import Change
from tests.kit.stages import local
from tests.kit.support import of_kind

AT, N = 600, 1_700

LEVELS = {"a": 1.0, "b": -1.0, "c": 0.0}

SHAPES: dict[str, Callable[[Any], float]] = {
    "line": lambda x: 0.7 * x,
    "valley": lambda x: x * x / 2.0,
    "wave": lambda x: math.sin(2.0 * x),
    "plateau": lambda x: float(abs(x) < 1.0),
    "categories": lambda x: LEVELS[x],
    "boolean": float,
}

KINDS: dict[str, Callable[[float], Any]] = {
    "categories": lambda x: "abc"[(x > -0.4) + (x > 0.4)],
    "boolean": lambda x: x > 0.0,
}
"""How a feature is made of a normal number."""


class Turning:
    """A model whose effect of x0 has the other sign from a record on; it says how many it saw."""

    def __init__(self, shape: str, at: int) -> None:
        self._shape, self._at, self._seen = SHAPES[shape], at, 0

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        self._seen += 1

    def predict_one(self, x: Mapping[str, Any]) -> float:
        sign = 1.0 if self._seen < self._at else -1.0
        return sign * self._shape(x["x0"]) + float(x["x1"])


def changes_of(shape: str, seed: int, at: int = AT) -> list[Change]:
    """Return the changes of iPDP on a stream whose labels follow the model."""
    rng = random.Random(seed)
    turned = Turning(shape, at)
    values = []
    for _ in range(N):
        x = {"x0": KINDS.get(shape, float)(rng.gauss(0.0, 1.0)), "x1": rng.gauss(0.0, 1.0)}
        y = turned.predict_one(x) + rng.gauss(0.0, 0.1)
        values.append({"x": x, "y": y})
        turned.learn_one(x, y)
    config = Config(
        features={
            "x0": "categorical" if shape in KINDS else "numeric",
            "x1": "numeric",
        },
        label={"type": "number"},
        model={"factory": f"{__name__}:Turning", "params": {"shape": shape, "at": at}},
        explain={"loss": "squared_error", "methods": ["ipdp"]},
        drift={"input": {"enabled": False}, "output": {"enabled": False}},
    )
    return [c for c in of_kind(local(config, values), Change) if c.method == "ipdp"]


@pytest.mark.parametrize("shape", SHAPES)
def test_an_effect_of_any_shape_that_reverses_is_found_soon(shape: str) -> None:
    """The importance and the loss stay the same."""
    noticed, confirmed = changes_of(shape, seed=3)
    assert (noticed.feature, noticed.signal, noticed.status) == ("x0", "trend", "noticed")
    assert AT < noticed.seq <= AT + 60
    assert noticed.detail.startswith("the effect of x0 seems to have reversed: ")
    assert confirmed.status == "confirmed"
    assert confirmed.detail.startswith("confirmed: the effect of x0 has reversed: ")


@pytest.mark.parametrize("shape", ["valley", "categories"])
def test_an_effect_that_stays_has_not_reversed(shape: str) -> None:
    assert [c for c in changes_of(shape, seed=4, at=N) if c.signal == "trend"] == []

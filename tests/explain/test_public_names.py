"""Explainers offer what users call, and nothing else."""

from typing import Any

import pytest
from river import linear_model

from fluxplain.explain import (
    IncrementalPairPDP,
    IncrementalPDP,
    IncrementalPFI,
    IncrementalReasons,
    IncrementalSAGE,
)

EVERY = {
    "alpha",
    "confidence",
    "evaluator",
    "explain_one",
    "model",
    "std_errors",
    "values",
    "variances",
}
OF_LOSSES = EVERY | {"at", "increments", "loss", "players"}
OF_CURVES = EVERY | {"increments"}

OFFERED: list[tuple[Any, set[str]]] = [
    (IncrementalPFI, OF_LOSSES),
    (IncrementalSAGE, OF_LOSSES | {"mean_prediction"}),
    (IncrementalPDP, OF_CURVES | {"curve_errors", "curves", "features", "ice", "trends"}),
    (IncrementalPairPDP, OF_CURVES | {"pairs", "surfaces"}),
    (IncrementalReasons, EVERY | {"players", "reasons"}),
]


@pytest.mark.parametrize(("of", "names"), OFFERED)
def test_an_explainer_offers_what_users_call(of: Any, names: set[str]) -> None:
    features: list[Any] = [("a", "b")] if of is IncrementalPairPDP else ["a", "b"]
    explainer = of(linear_model.LinearRegression(), features)
    assert {name for name in dir(explainer) if not name.startswith("_")} == names

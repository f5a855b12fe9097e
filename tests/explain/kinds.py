"""The explainers that the conformance suite takes, and what they explain."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fluxplain.baselines import IntervalPFI, SlidingWindowSAGE
from fluxplain.explain import IncrementalPDP, IncrementalPFI, IncrementalSAGE
from tests.kit.support import Row

SIZES = {IncrementalPDP: "storage_size", IntervalPFI: "interval", SlidingWindowSAGE: "window"}
"""Class → its argument for how many observations it keeps; else ``reservoir_size``."""


@dataclass(frozen=True)
class Kind:
    """A class of explainers with some of its options."""

    of: type[Any]
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "-".join([self.of.__name__, *map(str, self.options.values())])


IMPORTANCES = [
    Kind(of, options)
    for of in (IncrementalPFI, IncrementalSAGE)
    for options in ({}, {"imputer": "product"}, {"imputer": "observational"})
]
KINDS = [
    *IMPORTANCES,
    Kind(IncrementalPDP),
    Kind(IncrementalPDP, {"grid": "range", "window": 8, "ice": 3}),
    Kind(IncrementalPDP, {"grid": "quantiles", "storage": "age-weighted"}),
]
WINDOWS = [Kind(IntervalPFI), Kind(SlidingWindowSAGE, {"stride": 2})]
FEATURES = ["a", "b", "c"]


def make(
    kind: Kind,
    model: object,
    features: Any = FEATURES,
    *,
    loss: Any = "squared_error",
    seed: int | None = 1,
    size: int = 5,
    **options: Any,
) -> Any:
    """Return an explainer that is warm after a few observations."""
    options = {SIZES.get(kind.of, "reservoir_size"): size, **kind.options, **options, "seed": seed}
    if kind.of is not IncrementalPDP:
        options["loss"] = loss
    return kind.of(model, features, **options)


def explain(explainer: Any, x: Mapping[str, Any], y: Any) -> dict[str, float]:
    """Explain one observation, with its label if the explainer takes one."""
    is_pdp = isinstance(explainer, IncrementalPDP)
    values: dict[str, float] = explainer.explain_one(x) if is_pdp else explainer.explain_one(x, y)
    return values


def stream(n: int, seed: int = 1) -> list[tuple[Row, float]]:
    """Return observations of two numbers and one category, and a number that depends on them."""
    rng = random.Random(seed)
    records: list[tuple[Row, float]] = []
    for _ in range(n):
        x: Row = {"a": rng.gauss(0, 1), "b": rng.gauss(0, 1), "c": rng.choice(["u", "v", "w"])}
        records.append((x, known(x)))
    return records


def known(x: Mapping[str, Any]) -> float:
    return float(2.0 * x["a"] - x["b"] + (x["c"] == "u"))


class Known:
    """The rule behind :func:`stream`, with ``predict_one`` only."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return known(x)


class Greedy:
    """A model that changes the dictionary that it is asked about."""

    def predict_one(self, x: dict[str, Any]) -> float:
        answer = known(x)
        x.clear()
        return answer


NUMBERS = ("values", "variances", "std_errors", "increments")


def state(explainer: Any) -> list[object]:
    """Everything that a user can read."""
    names = (*NUMBERS, "trends", "curves", "ice", "surfaces", "mean_prediction")
    bound = explainer.confidence(0.1) if hasattr(explainer, "confidence") else None
    return [*(getattr(explainer, name, None) for name in names), bound]

"""Streams of five Gaussian features, and what a linear model's explanations are on them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from river import linear_model

from fluxplain.evaluate.encoding import Floats

WEIGHTS = {"a": 3.0, "b": -2.0, "c": 1.0, "d": 0.5, "e": 0.0}
"""Feature → weight; the model ignores the last one."""

NOISE = 0.5
"""Standard deviation of the labels around the model's output."""

STREAMS: Mapping[str, tuple[float, float]] = {
    "independent": (0.0, 0.0),
    "correlated .8": (0.8, 0.0),
    "AR .5": (0.0, 0.5),
    "AR .9": (0.0, 0.9),
    "AR .99": (0.0, 0.99),
}
"""Name → correlation between the features, and that of each with its last value."""

Records = list[tuple[dict[str, float], float]]


def linear(weights: Mapping[str, float] = WEIGHTS) -> Any:
    """Return the model, which learns nothing more."""
    model = linear_model.LinearRegression()
    zeros = dict.fromkeys(weights, 0.0)
    model.learn_one(zeros, 0.0)
    for feature, weight in weights.items():
        model._weights[feature] = weight
    return model


def records(stream: str, n: int, seed: int) -> Records:
    """Return n observations of standard normal features, and their labels."""
    rng, (between, in_time) = np.random.default_rng(seed), STREAMS[stream]
    drawn = rng.normal(size=(n, len(WEIGHTS))) @ np.linalg.cholesky(_covariance(between)).T
    x = drawn * math.sqrt(1.0 - in_time**2)
    x[0] = drawn[0]
    for i in range(1, n):
        x[i] += in_time * x[i - 1]
    ys = x @ np.array([*WEIGHTS.values()]) + NOISE * rng.normal(size=n)
    rows: list[list[float]] = x.tolist()
    return [
        (dict(zip(WEIGHTS, row, strict=True)), y) for row, y in zip(rows, ys.tolist(), strict=True)
    ]


def truths(stream: str, of_model: Mapping[str, float] = WEIGHTS) -> dict[str, dict[str, float]]:
    """Return method → feature → what the squared error, or the grid from 5 to 95 %, gives it."""
    weights = np.array([*of_model.values()])
    shapley = weights * (_covariance(STREAMS[stream][0]) @ weights)
    spread = float(np.std(np.linspace(-1.0, 1.0, 10), ddof=1)) * 1.6448536269514722
    each = {"ipfi": 2.0 * weights**2, "isage": shapley, "ipdp": np.abs(weights) * spread}
    return {method: dict(zip(WEIGHTS, v.tolist(), strict=True)) for method, v in each.items()}


def _covariance(between: float) -> Floats:
    found = np.full((len(WEIGHTS), len(WEIGHTS)), between)
    np.fill_diagonal(found, 1.0)
    return found

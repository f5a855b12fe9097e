"""A stream as the pipeline publishes it, made by hand: f1 gives way to f2 half way."""

import math
import random
from collections.abc import Iterator
from dataclasses import replace

from fluxplain.schemas import Change, Explanation, Prediction, Record
from fluxplain.schemas.change import Curve, change_id
from fluxplain.schemas.explanation import Ice
from fluxplain.schemas.methods import Method, Watched
from tests.kit import records as plain
from tests.kit.records import METHODS

STREAM = "fluxplain.features-0"


GRID: list[float] = [0.0, 0.25, 0.5, 0.75, 1.0]

EMIT_EVERY = 10


def name(i: int) -> str:
    return f"f{i}"


def records(
    n: int = 2000,
    *,
    features: int = 9,
    first: int = 0,
    half: int = 1000,
    stream: str = STREAM,
    alpha: float = 0.001,
) -> Iterator[Record]:
    """Yield what is published of so many observations, in the order in which it would come."""
    rng = random.Random(first + 1)
    for seq in range(first, first + n):
        yield _prediction(stream, seq, rng)
        if seq % EMIT_EVERY:
            continue
        for i in range(features):
            for method in METHODS:
                yield explanation(i, seq, half, rng, method=method, stream=stream, alpha=alpha)
        if seq == half + 300:
            for i, method in ((1, "ipfi"), (2, "ipfi"), (2, "isage"), (1, "ipdp")):
                yield change(name(i), seq + i, method, rose=i == 2, stream=stream)
            yield change(None, seq + 5, "loss", rose=True, stream=stream)


def value_of(i: int, seq: int, half: int) -> float:
    """Return how important a feature is at a time."""
    settled = 1.0 - math.exp(-seq / 200.0)
    after = 0.5 + 0.5 * math.tanh((seq - half - 150.0) / 120.0)
    if i == 1:
        return 0.25 * settled * (1.0 - after)
    if i == 2:
        return 0.02 + 0.3 * after
    return 0.06 * settled / (1 + i)


def explanation(
    i: int,
    seq: int,
    half: int,
    rng: random.Random,
    *,
    method: Method = "ipfi",
    stream: str = STREAM,
    alpha: float = 0.001,
) -> Explanation:
    value = value_of(i, seq, half)
    std_error = 0.01 + 0.05 / (1.0 + seq / 50.0)
    found = replace(
        plain.explanation(name(i), seq, value, method=method, std_error=std_error, stream=stream),
        value=value + rng.gauss(0.0, 0.003),
        previous_seq=seq - EMIT_EVERY if seq >= EMIT_EVERY else None,
        alpha=alpha,
    )
    if method != "ipdp":
        return found
    ice = [
        Ice(seq=seq - k, grid=list(GRID), effect=[v + rng.gauss(0, 0.05) for v in effect(value)])
        for k in range(5)
    ]
    return replace(found, grid=list(GRID), effect=effect(value), ice=ice)


def effect(size: float) -> list[float]:
    return [0.4 + size * (x - 0.5) * 2.0 for x in GRID]


def change(
    feature: str | None, seq: int, method: Watched, *, rose: bool = True, stream: str = STREAM
) -> Change:
    """Return a change with its whole story."""
    low, high = (0.02, 0.31) if feature else (0.2, 0.6)
    before, after = (low, high) if rose else (high, low)
    began = max(seq - 280, 0)
    drift = replace(
        plain.change(feature or "", seq, before=before, after=after, stream=stream),
        id=change_id(stream, "drift", feature, method, seq),
        feature=feature,
        method=method,
        detail=f"{method} of {feature} moved" if feature else "loss rose",
        before_std_error=0.006,
        after_std_error=0.018,
        direction="rose" if rose else "fell",
        window=seq - began,
        value=None,
        std_error=None,
        after_seq=began,
        delay_bound=seq - began,
        replay_seq=max(began - 280, 0),
        loss_before=0.21,
        loss_after=0.48,
    )
    if feature is None:
        return drift
    return replace(
        drift,
        curve_before=Curve(began - 10, list(GRID), effect(before)),
        curve_after=Curve(seq, list(GRID), effect(after)),
        rank_before=4 if rose else 1,
        rank_after=1 if rose else 4,
        ranked=9,
        value=after,
        std_error=0.012,
        incident=f"{stream}@{seq // 50 * 50}",
    )


def _prediction(stream: str, seq: int, rng: random.Random) -> Prediction:
    right = rng.random() < 0.85
    loss = rng.expovariate(5.0 if right else 1.0)
    return plain.prediction(seq, loss=loss, correct=right, stream=stream)

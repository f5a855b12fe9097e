"""Streams for the comparison with River: drifts, categories, missing features, late classes."""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from river.datasets import synth

Stream = list[tuple[dict[str, Any], Any]]


def _agrawal(n: int, categories: tuple[str, ...] = ()) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield two concepts, with some features as text."""
    for function, seed in ((0, 7), (3, 8)):
        records = synth.Agrawal(classification_function=function, seed=seed).take(n // 2)
        for x, y in records:
            yield {f: f"c{v}" if f in categories else v for f, v in x.items()}, y


def numbers(n: int) -> Stream:
    """Return numbers only, with a sudden drift."""
    return [*_agrawal(n)]


def categories(n: int) -> Stream:
    """Return three features of nine as text."""
    return [*_agrawal(n, ("car", "zipcode", "elevel"))]


def missing(n: int) -> Stream:
    """Return observations that lack a tenth of their features."""
    rng = random.Random(5)
    return [
        ({f: v for f, v in x.items() if rng.random() > 0.1}, y)
        for x, y in _agrawal(n, ("car", "elevel"))
    ]


def late_classes(n: int) -> Stream:
    """Return classes and categories that come one after the other."""
    rng, records = random.Random(3), []
    for i in range(n):
        x: dict[str, Any] = {
            "a": rng.gauss(0, 1),
            "b": rng.random(),
            "c": rng.choice("uvwxyz"[: 2 + i * 5 // n]),
            "d": rng.randrange(4),
        }
        level = min(3, int(abs(x["a"]) * 2)) if i > n // 2 else (x["a"] > 0) + (x["c"] == "u")
        records.append((x, "pqrs"[level]))
    return records


def sea(n: int) -> Stream:
    """Return three numbers and boolean labels."""
    return [*islice(synth.SEA(seed=3, variant=1), n)]


def digits(n: int) -> Stream:
    """Return ten classes and integers."""
    return [*islice(synth.LEDDrift(seed=3, noise_percentage=0.1, n_drift_features=3), n)]


def reordered(n: int) -> Stream:
    """Return observations whose features come in a new order each time."""
    rng, records = random.Random(9), []
    for x, y in _agrawal(n, ("car",)):
        names = [*x]
        rng.shuffle(names)
        records.append(({name: x[name] for name in names}, y))
    return records


STREAMS: dict[str, Callable[[int], Stream]] = {
    each.__name__: each
    for each in (numbers, categories, missing, late_classes, sea, digits, reordered)
}

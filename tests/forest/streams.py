"""Streams for the comparison with River: drifts, missing features, late classes, and others."""

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


def recurring(n: int) -> Stream:
    """Return two concepts in turn, so that adaptive trees switch to alternate trees."""
    rng, records = random.Random(2), []
    for i in range(n):
        x: dict[str, Any] = {name: rng.random() for name in "abc"}
        x["d"] = rng.choice("uvw")
        if rng.random() < 0.03:
            del x[rng.choice("abcd")]
        is_high = x.get("a", 0.0) > 0.5 or (x.get("b", 0.0) > 0.6 and x.get("d") == "u")
        records.append((x, is_high ^ (i * 8 // n % 2 == 1)))
    return records


def constant(n: int) -> Stream:
    """Return a constant number, a constant category, and a number that is constant at first."""
    rng, records = random.Random(4), []
    for i in range(n):
        late, free = rng.random() if i > n // 2 else 0.5, rng.gauss(0, 1)
        x = {"same": 7.0, "word": "w", "late": late, "free": free}
        records.append((x, int(free > 0) + int(late > 0.7)))
    return records


def magnitudes(n: int) -> Stream:
    """Return huge and tiny numbers, infinities' neighbours in the eyes of a variance."""
    rng, records = random.Random(6), []
    for _ in range(n):
        a, b, c = rng.gauss(0, 1), rng.gauss(0, 1), rng.random()
        x = {"huge": a * 1e90, "tiny": b * 1e-90, "far": 1e15 + c, "near": c * 1e-308, "zero": -0.0}
        records.append((x, "yes" if a + b > 0 else "no"))
    return records


def one_class(n: int) -> Stream:
    """Return a single class for long, then rarely another, then only that."""
    rng, records = random.Random(8), []
    for i in range(n):
        x = {"a": rng.random(), "b": rng.choice("xyz")}
        share = 0.0 if i < n // 2 else 0.1 if i < 3 * n // 4 else 1.0
        records.append((x, "b" if rng.random() < share else "a"))
    return records


def many_categories(n: int) -> Stream:
    """Return features with hundreds of categories, of which many come once, and nine classes."""
    rng, records = random.Random(10), []
    for i in range(n):
        common = rng.randrange(40)
        x = {"common": f"c{common}", "rare": f"r{rng.randrange(n)}", "number": rng.gauss(common, 9)}
        records.append((x, f"class {(common + (i > n // 2)) % 9 if rng.random() < 0.8 else 0}"))
    return records


def duplicated(n: int) -> Stream:
    """Return features twice, as numbers and as text, so that splits are tied; labels are noisy."""
    rng, records = random.Random(12), []
    for i in range(n):
        a, b = rng.randrange(6), rng.randrange(3)
        x = {"a": a, "again": a, "text": f"{b}", "more": f"{b}", "half": a / 2, "text of a": f"{a}"}
        y = (a > 2) ^ (b == 1) ^ (i > 2 * n // 3)
        records.append((x, int(y) if rng.random() > 0.2 else rng.randrange(2)))
    return records


STREAMS: dict[str, Callable[[int], Stream]] = {
    each.__name__: each
    for each in (
        *(numbers, categories, missing, late_classes, sea, digits, reordered),
        *(recurring, constant, magnitudes, one_class, many_categories, duplicated),
    )
}


def with_targets(stream: Stream, *, has_text: bool) -> Stream:
    """Return a stream whose label became a number, which depends on some features as well.

    Text becomes numbers, too, unless the stream ``has_text``: linear models take none.
    """
    records = []
    for x, y in stream:
        label = sum(map(ord, y)) % 8 if isinstance(y, str) else int(y)
        numbers = {name: ord(v[-1]) if isinstance(v, str) else v for name, v in x.items()}
        shares = (v / (1.0 + abs(v)) for v in numbers.values() if not isinstance(v, str))
        target = 10.0 * label + sum(shares)
        records.append((x if has_text else numbers, target))
    return records

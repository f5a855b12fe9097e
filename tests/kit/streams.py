"""Streams of messages, and what may be among them that nobody can use."""

from itertools import chain, repeat

import orjson
from river.datasets import synth

HOSTILE: list[bytes] = [
    b"\xff\xfe not text",
    b"{",
    b"[1, 2]",
    b'{"y": 1}',
    b'{"x": {"salary": {"nested": 1}}}',
    b'{"x": {"salary": NaN}}',
    b'{"x": {"salary": 1e999}}',
    b'{"x": {"salary": 1}}',
    b"",
]


def observations(n: int, seed: int = 11, classes: int = 2) -> list[bytes]:
    """Agrawal records whose concept changes half way; by age there may be more classes."""
    first = synth.Agrawal(classification_function=1, seed=seed).take(n // 2)
    second = synth.Agrawal(classification_function=2, seed=seed).take(n - n // 2)
    return [
        orjson.dumps({"x": x, "y": y + 2 * (x["age"] % (classes // 2))})
        for x, y in chain(first, second)
    ]


def with_hostile(values: list[bytes]) -> list[bytes]:
    """Put a hostile record before every 50th observation."""
    bad = chain.from_iterable(repeat(HOSTILE))
    return [
        v for i, value in enumerate(values) for v in ([next(bad)] if i % 50 == 0 else []) + [value]
    ]

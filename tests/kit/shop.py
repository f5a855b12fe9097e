"""A small stream with numbers and a category."""

import random
from typing import Any

from tests.kit.support import Row

FEATURES = {"a": "numeric", "b": "numeric", "shop": "categorical"}


def records(n: int, label: str) -> list[tuple[Row, Any]]:
    rng = random.Random(3)
    found: list[tuple[Row, Any]] = []
    for t in range(n):
        shops = "uvwxyz"[: 2 + 4 * t // n]  # more than there are columns for
        x: Row = {"a": rng.gauss(5.0, 2.0), "b": rng.gauss(0.0, 100.0), "shop": rng.choice(shops)}
        size = int(float(x["a"]) > 5.0) + int(float(x["b"]) > 0.0)
        y: Any = {
            "boolean": size > 0,
            "string": ["small", "medium", "large"][size],
            "integer": size,
            "number": float(size),
        }.get(label)
        found.append((x, y))
    return found

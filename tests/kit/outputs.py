"""Questions to models, and whether two answers are the same."""

import random
from collections.abc import Sequence

from fluxplain.evaluate import Output
from tests.kit.support import Row


def question(x: Row, past: Sequence[Row], rng: random.Random) -> list[Row]:
    """Return what the three explanations ask: one feature, several, a grid, and nothing."""
    draw, features = {**x, **rng.choice(past)}, list(x)
    if "zipcode" in x and isinstance(x["zipcode"], str) and rng.random() < 0.3:
        draw["zipcode"] = "never seen"
    order = rng.sample(features, len(features))
    return [
        {},
        *({f: draw[f]} for f in features),
        *({f: draw[f] for f in order[i:]} for i in range(1, len(order))),
        *({f: rng.choice(past).get(f, x[f])} for f in features for _ in range(4)),
        {},
    ]


def assert_same(given: Sequence[Output], expected: Sequence[Output]) -> None:
    """Compare outputs, classes in the same order included."""
    assert len(given) == len(expected)
    for output, right in zip(given, expected, strict=True):
        if isinstance(right, dict):
            assert isinstance(output, dict)
            assert list(output) == list(right)
            assert all(abs(output[c] - p) <= TOLERANCE for c, p in right.items())
        else:
            assert isinstance(output, float)
            assert abs(output - right) <= TOLERANCE * max(1.0, abs(right))


TOLERANCE = 1e-12

"""Questions to models, and whether two answers are the same."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from fluxplain.evaluate import GenericEvaluator, Output, choose
from tests.kit.support import Row, outputs_of


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


def assert_as_asked(model: Any, x: Row, *replacements: Row) -> None:
    """Assert that a model's evaluator answers or fails as the model does, asked one by one."""
    asked = [{}, *replacements]
    try:
        expected = outputs_of(GenericEvaluator(model), x, asked)
    except Exception as error:
        with pytest.raises(type(error)):
            outputs_of(choose(model).evaluator, x, asked)
    else:
        assert_same(outputs_of(choose(model).evaluator, x, asked), expected)


TOLERANCE = 1e-12

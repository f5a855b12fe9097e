"""A stream that never ends and costs little, and a model of a fixed size."""

import random
from collections.abc import Iterator, Mapping
from itertools import count, islice
from typing import Any

import orjson

from fluxplain.schemas.late_label import LabelValue
from tests.behaviour.late_labels import Delays, late_labels
from tests.kit.settings import QUICK_DRIFT, default_methods

CATEGORIES = {"u": 0.0, "v": 1.0, "w": 2.0}
"""Category → the number that it counts as."""

CONCEPTS = ((3.0, -1.0, 1.0), (-1.0, 3.0, 3.0))
"""Weights of the features, in turn."""

BAD_EVERY = 1000

BAD = b'{"x": {"a": "1", "b": 0.0, "c": "u"}, "y": 1.0}'
"""A number must not be a text: one dead letter."""

CLIP = 5.0

SETTINGS: dict[str, Any] = {
    "features": {"a": "numeric", "b": "numeric", "c": "categorical"},
    "label": {"type": "number"},
    "model": {"factory": "tests.measure.soak.stream:FixedLinear"},
    "explain": {
        "loss": "squared_error",
        "alpha": 0.01,
        "emit_every": 10,
        **default_methods(50, 1, 3),
    },
    "drift": QUICK_DRIFT,
}
"""The default methods, with as few questions to the model as they need."""


class FixedLinear:
    """A linear regressor with two weights and an offset for each category, and nothing else."""

    def __init__(self, learning_rate: float = 0.02) -> None:
        self.learning_rate = learning_rate
        self.a = 0.0
        self.b = 0.0
        self.offsets = dict.fromkeys(CATEGORIES, 0.0)

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(self.a * x["a"] + self.b * x["b"] + self.offsets[x["c"]])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        error = max(-CLIP, min(CLIP, y - self.predict_one(x)))
        step = self.learning_rate * error
        self.a += step * x["a"]
        self.b += step * x["b"]
        self.offsets[x["c"]] += step


def observations(drift_every: int, seed: int = 1) -> Iterator[bytes]:
    """Return an endless stream in which the importance of every feature changes again and again.

    Every thousandth record is unusable.
    """
    for i, (x, y) in enumerate(_samples(drift_every, seed)):
        yield BAD if _is_bad(i) else orjson.dumps({"x": x, "y": y, "ts": i})


def with_late_labels(
    records: int, drift_every: int, most_delay: int
) -> Iterator[bytes | LabelValue]:
    """Return such a stream of so many observations, and their labels that come later."""
    bad = sum(map(_is_bad, range(records)))
    samples = islice(_samples(drift_every), records - bad)
    seen = 0
    for sent in late_labels(samples, Delays(most_delay)):
        if sent.topic == "labels":
            yield LabelValue(sent.value)
            continue
        if _is_bad(seen):
            yield BAD
            seen += 1
        yield sent.value
        seen += 1


def _is_bad(i: int) -> bool:
    return i % BAD_EVERY == BAD_EVERY // 2


def _samples(drift_every: int, seed: int = 1) -> Iterator[tuple[dict[str, Any], float]]:
    rng = random.Random(seed)
    categories = list(CATEGORIES)
    for i in count():
        a, b = 2.0 * rng.random() - 1.0, 2.0 * rng.random() - 1.0
        c = rng.choice(categories)
        concept = CONCEPTS[i // drift_every % len(CONCEPTS)]
        y = concept[0] * a + concept[1] * b + concept[2] * CATEGORIES[c]
        yield {"a": a, "b": b, "c": c}, y

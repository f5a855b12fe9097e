"""Streams whose changes have known causes, regions and records."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from river.datasets import synth

from fluxplain.schemas.record import Value

BEGIN, LENGTH = 4000, 6500
"""Observation at which a stream changes, and number of its observations."""

Row = tuple[dict[str, Value], float | int | bool]


class Stream(NamedTuple):
    """A stream with a model: rows by seed, label, model settings, loss, and the truth if any."""

    rows: Callable[[int], Iterator[Row]]
    label: str
    model: Mapping[str, Any]
    loss: str
    features: Mapping[str, str]
    is_in_region: Callable[[Mapping[str, Value]], bool] | None = None


NUMBERS = {f"x{i}": "numeric" for i in range(4)}
LEARNING = {"factory": "river.linear_model:LinearRegression"}
FROZEN = {"factory": "tests.measure.behind.streams:Fixed", "learn": False}


class Fixed:
    """A linear model with fixed weights."""

    def predict_one(self, x: Mapping[str, Value]) -> float:
        """Return the weighted sum."""
        return float(x["x0"]) - 0.7 * float(x["x1"]) + 0.4 * float(x["x2"])


def linear(seed: int, *, inputs: bool, concept: bool) -> Iterator[Row]:
    """Yield a regression stream whose first input, or whose weights, change."""
    rng = random.Random(seed)
    for t in range(LENGTH):
        is_after = t >= BEGIN
        x: dict[str, Value] = {name: rng.gauss(0.0, 1.0) for name in NUMBERS}
        if inputs and is_after:
            x["x0"] = 2.0 * float(x["x0"])
        weights = (0.3, -0.7, 1.2, 0.0) if concept and is_after else (1.0, -0.7, 0.4, 0.0)
        total = sum(w * float(x[name]) for w, name in zip(weights, NUMBERS, strict=True))
        yield x, total + rng.gauss(0.0, 0.3)


def enlarged(seed: int) -> Iterator[Row]:
    """Yield a regression stream whose first input and its weight grow by half each."""
    rng = random.Random(seed)
    for t in range(LENGTH):
        by = 1.5 if t >= BEGIN else 1.0
        x: dict[str, Value] = {name: rng.gauss(0.0, 1.0) for name in NUMBERS}
        x["x0"] = by * float(x["x0"])
        total = by * float(x["x0"]) - 0.7 * float(x["x1"]) + 0.4 * float(x["x2"])
        yield x, total + rng.gauss(0.0, 0.3)


def flipped(seed: int, scale: float) -> Iterator[Row]:
    """Yield a regression stream whose first weight flips; its first input grows by ``scale``."""
    rng = random.Random(seed)
    for t in range(LENGTH):
        is_after = t >= BEGIN
        x: dict[str, Value] = {name: rng.gauss(0.0, 1.0) for name in NUMBERS}
        x["x0"] = (scale if is_after else 1.0) * float(x["x0"])
        own = (-1.0 if is_after else 1.0) * float(x["x0"])
        yield x, own - 0.7 * float(x["x1"]) + 0.4 * float(x["x2"]) + rng.gauss(0.0, 0.3)


AGRAWAL = {
    **dict.fromkeys(("salary", "commission", "age"), "numeric"),
    **dict.fromkeys(("elevel", "car", "zipcode"), "categorical"),
    **dict.fromkeys(("hvalue", "hyears", "loan"), "numeric"),
}
FOREST = {"factory": "river.forest:ARFClassifier", "params": {"n_models": 5}}


def is_confined(x: Mapping[str, Value]) -> bool:
    """Return whether an observation lies where the confined stream changes: one of five."""
    return float(x["salary"]) > 100_000.0 and float(x["loan"]) > 250_000.0


def is_young(x: Mapping[str, Value]) -> bool:
    """Return whether an observation lies where labels are inverted: about one of five."""
    return float(x["salary"]) > 75_000.0 and float(x["age"]) < 40.0


def agrawal(seed: int, is_changed: Callable[[Mapping[str, Value]], bool]) -> Iterator[Row]:
    """Yield agrawal whose label depends on the age; after the change, for some on the years."""
    for t, (x, y) in enumerate(of_age(seed)):
        yield x, x["hyears"] > 15 if t >= BEGIN and is_changed(x) else y


def inverted(seed: int) -> Iterator[Row]:
    """Yield agrawal whose label depends on the age; after the change, some are inverted."""
    for t, (x, y) in enumerate(of_age(seed)):
        yield x, y != (t >= BEGIN and is_young(x))


def of_age(seed: int) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield agrawal whose label depends on the age."""
    source = synth.Agrawal(classification_function=0, seed=seed)
    for x, _ in source.take(LENGTH):
        yield x, not 40 <= x["age"] < 60


CAUSES: dict[str, Stream] = {  # by cause, and what else changes
    "data": Stream(
        lambda seed: linear(seed, inputs=True, concept=False),
        "number", FROZEN, "squared_error", NUMBERS,
    ),
    "model": Stream(
        lambda seed: linear(seed, inputs=False, concept=True),
        "number", LEARNING, "squared_error", NUMBERS,
    ),
    "both": Stream(enlarged, "number", LEARNING, "squared_error", NUMBERS),
    "labels": Stream(
        lambda seed: flipped(seed, 1.0), "number", FROZEN, "squared_error", NUMBERS
    ),
    "labels, more input": Stream(
        lambda seed: flipped(seed, 1.3), "number", FROZEN, "squared_error", NUMBERS
    ),
}  # fmt: skip

REGIONS: dict[str, Stream] = {
    "confined": Stream(
        lambda seed: agrawal(seed, is_confined), "boolean", FOREST, "cross_entropy", AGRAWAL,
        is_confined,
    ),
    "inverted": Stream(inverted, "boolean", FOREST, "cross_entropy", AGRAWAL, is_young),
    "everywhere": Stream(
        lambda seed: agrawal(seed, lambda _: True), "boolean", FOREST, "cross_entropy", AGRAWAL
    ),
    "linear": CAUSES["model"],
}  # fmt: skip

SEGMENT = 3000
"""Observations between two changes of a stream whose concepts return."""

WEIGHTS = {
    "A": (1.0, -0.7, 0.4, 0.0),
    "B": (0.3, -0.7, 1.2, 0.0),
    "C": (0.3, -0.7, 0.4, 1.0),
    "D": (1.0, 0.2, 0.4, -0.8),
}
SCALES = {
    "A": (1.0, 1.0, 1.0),
    "B": (2.0, 1.0, 1.0),
    "C": (1.0, 2.0, 1.0),
    "D": (1.5, 1.0, 2.5),
}
FUNCTIONS = {"A": 0, "B": 2, "C": 4, "D": 6}


def moving(seed: int, order: str) -> Iterator[Row]:
    """Yield a regression stream whose inputs have a scale in each concept."""
    rng = random.Random(seed)
    for concept in order:
        for _ in range(SEGMENT):
            scales = (*SCALES[concept], 1.0)
            scaled = zip(NUMBERS, scales, strict=True)
            x: dict[str, Value] = {name: scale * rng.gauss(0.0, 1.0) for name, scale in scaled}
            yield x, Fixed().predict_one(x) + rng.gauss(0.0, 0.3)


def weighted(seed: int, order: str) -> Iterator[Row]:
    """Yield a regression stream whose weights are those of its concepts."""
    rng = random.Random(seed)
    for concept in order:
        for _ in range(SEGMENT):
            x: dict[str, Value] = {name: rng.gauss(0.0, 1.0) for name in NUMBERS}
            pairs = zip(WEIGHTS[concept], NUMBERS, strict=True)
            yield x, sum(w * float(x[name]) for w, name in pairs) + rng.gauss(0.0, 0.3)


def ruled(seed: int, order: str) -> Iterator[Row]:
    """Yield agrawal whose classification function is that of its concepts."""
    for place, concept in enumerate(order):
        function = FUNCTIONS[concept]
        source = synth.Agrawal(classification_function=function, seed=10 * seed + place)
        for x, y in source.take(SEGMENT):
            yield x, bool(y)


def returning(order: str) -> dict[str, Stream]:
    """Return the streams whose concepts come in this order."""
    return {
        "frozen": Stream(
            lambda seed: moving(seed, order), "number", FROZEN, "squared_error", NUMBERS
        ),
        "linear": Stream(
            lambda seed: weighted(seed, order), "number", LEARNING, "squared_error", NUMBERS
        ),
        "forest": Stream(
            lambda seed: ruled(seed, order), "boolean", FOREST, "cross_entropy", AGRAWAL
        ),
    }

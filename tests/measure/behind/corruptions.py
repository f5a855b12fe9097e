"""Streams in which a few rows are corrupt, as it happens: in ten ways, for five kinds of models."""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from river import compose, linear_model, preprocessing

from fluxplain.schemas.record import Value
from tests.measure.behind.streams import (
    AGRAWAL,
    BEGIN,
    FOREST,
    LENGTH,
    NUMBERS,
    Row,
    Stream,
    agrawal,
    linear,
)
from tests.measure.experiments.streams import weather

Inputs = Mapping[str, Value]
Spoil = Callable[[Inputs], Inputs]


class Corruption(NamedTuple):
    """A stream, the number of corrupt rows from ``BEGIN`` on, and what happened to them."""

    stream: Stream
    rows: int
    spoil: Spoil

    @property
    def seqs(self) -> set[int]:
        """The corrupt rows."""
        return {*range(BEGIN, BEGIN + self.rows)}

    def spoiled(self) -> Stream:
        """Return the stream with its corrupt rows."""
        return self.stream._replace(rows=self._rows)

    def _rows(self, seed: int) -> Iterator[Row]:
        for t, (x, y) in enumerate(self.stream.rows(seed)):
            yield {**x, **self.spoil(x)} if t in self.seqs else x, y


def times(feature: str, factor: float) -> Spoil:
    """Another unit, or with -1 another sign."""
    return lambda x: {feature: factor * float(x[feature])}


def put(feature: str, value: Value) -> Spoil:
    """Return what puts a code for "missing", a wrong text, or a stuck value."""
    return lambda _: {feature: value}


def swap(one: str, other: str) -> Spoil:
    """Return what exchanges two columns."""
    return lambda x: {one: x[other], other: x[one]}


def pressure(seed: int) -> Iterator[Row]:
    """Yield a regression stream whose first input is an air pressure."""
    for x, y in linear(seed, inputs=False, concept=False):
        yield {**x, "x0": 1000.0 + 10.0 * float(x["x0"])}, y


def shops(seed: int) -> Iterator[Row]:
    """Yield a regression stream with a category, which counts as much as the first number."""
    rng = random.Random(f"{seed}/shop")
    for x, y in linear(seed, inputs=False, concept=False):
        place = rng.choice(["north", "south", "west"])
        yield {**x, "place": place}, float(y) + 2.0 * (place == "north")


def raining(seed: int) -> Iterator[Row]:
    """Yield the weather, from a day on that depends on the seed, and whether it rained."""
    for x, y in islice(weather(), seed * 500, seed * 500 + LENGTH):
        yield dict(x), bool(y)


class OfPressure:
    """A linear model with fixed weights, which knows the usual pressure."""

    def predict_one(self, x: Inputs) -> float:
        """Return the weighted sum."""
        deviation = (float(x["x0"]) - 1000.0) / 10.0
        return deviation - 0.7 * float(x["x1"]) + 0.4 * float(x["x2"])


def scaled_linear() -> Any:
    """Return a linear model behind a scaler, which a corrupt value spoils for long."""
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


def scaled_logistic() -> Any:
    """Return the same for classes."""
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def encoded_linear() -> Any:
    """Return a linear model of numbers and encoded categories."""
    numbers = compose.SelectType(float) | preprocessing.StandardScaler()
    categories = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return (numbers + categories) | linear_model.LinearRegression()


def _here(name: str, **settings: Any) -> dict[str, Any]:
    return {"factory": f"tests.measure.behind.corruptions:{name}", **settings}


LINEAR = Stream(pressure, "number", _here("scaled_linear"), "squared_error", NUMBERS)
FROZEN = Stream(pressure, "number", _here("OfPressure", learn=False), "squared_error", NUMBERS)
SHOPS = Stream(
    shops, "number", _here("encoded_linear"), "squared_error", {**NUMBERS, "place": "categorical"}
)
WEATHER = Stream(
    raining,
    "boolean",
    _here("scaled_logistic"),
    "cross_entropy",
    {f"feat_{i}": "numeric" for i in range(1, 9)},
)
ARF = Stream(
    lambda seed: agrawal(seed, lambda _: False), "boolean", FOREST, "cross_entropy", AGRAWAL
)

CORRUPTIONS = {
    "linear: pressure × 10, 2 rows": Corruption(LINEAR, 2, times("x0", 10.0)),
    "linear: x1 stuck, 30 rows": Corruption(LINEAR, 30, put("x1", 1.5)),
    "linear: pressure and x1 swapped, 60 rows": Corruption(LINEAR, 60, swap("x0", "x1")),
    "linear with categories: x0 × 1000, 3 rows": Corruption(SHOPS, 3, times("x0", 1e3)),
    "linear with categories: one place, 100 rows": Corruption(SHOPS, 100, put("place", "north")),
    "logistic, weather: visibility × 1000, 3 rows": Corruption(WEATHER, 3, times("feat_5", 1e3)),
    "logistic, weather: dew point 999.9, 5 rows": Corruption(WEATHER, 5, put("feat_2", 999.9)),
    "frozen linear: sign of the pressure, 30 rows": Corruption(FROZEN, 30, times("x0", -1.0)),
    "ARF-5, agrawal: salary and age swapped, 100 rows": Corruption(ARF, 100, swap("salary", "age")),
    "ARF-5, agrawal: age × 10, 100 rows": Corruption(ARF, 100, times("age", 10.0)),
}

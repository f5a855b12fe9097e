"""Published records do not depend on the unit of the label."""

import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.schemas import Change, Explanation, Prediction, Record
from tests.kit.stages import local
from tests.kit.support import encoded, of_kind

N = 2_400

METHODS = {"ipdp": 1, "ishap": 1, "ipfi": 2, "isage": 2, "loss": 2}
"""Method → power of the unit in its numbers: 1 for outputs, 2 for squared errors."""

OF_METHOD = (
    *("value", "std_error", "increments", "increment"),
    *("before", "before_std_error", "after", "after_std_error"),
)

OF_OUTPUT = (
    *("prediction", "y", "effect", "effect_std_error", "signed"),
    *("new", "old", "new_then", "old_then"),
    *(f"{part}{of}" for part in ("data", "model", "interaction") for of in ("", "_std_error")),
)

OF_LOSS = ("loss", "loss_before", "loss_after")


class Frozen:
    """A linear model that learns nothing, and predicts in a unit."""

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(2.0 * x["a"] - x["b"]) * self.unit

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        pass


@cache
def published(unit: float) -> list[Record]:
    """Return the records about a stream whose feature b varies more from the middle on."""
    rng, values = random.Random(1), []
    for t in range(N):
        a, b = rng.gauss(0.0, 1.0), rng.gauss(0.0, 1.0 if t < N // 2 else 4.0)
        values.append({"x": {"a": a, "b": b}, "y": (2.0 * a - b + rng.gauss(0.0, 1.0)) * unit})
    config = Config(
        features={"a": "numeric", "b": "numeric"},
        label={"type": "number"},
        model={"factory": f"{__name__}:Frozen", "params": {"unit": unit}},
        explain={"loss": "squared_error", "methods": ["ipfi", "isage", "ipdp", "ishap"]},
    )
    return local(config, values)


def divided(number: Any, scale: float) -> Any:
    """Return a number, or each in a list of lists, divided."""
    if isinstance(number, list):
        return [divided(each, scale) for each in number]
    return number if number is None else number / scale


def in_unit(fields: Mapping[str, Any], unit: float, power: int) -> dict[str, Any]:
    """Return fields of a record with its numbers divided by the powers of the unit they have."""
    powers = dict.fromkeys(OF_METHOD, power)
    powers |= dict.fromkeys(OF_OUTPUT, 1) | dict.fromkeys(OF_LOSS, 2)
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "region":  # in units of the features
            found[name] = value
        elif isinstance(value, dict):  # a curve, or a cause
            found[name] = in_unit(value, unit, power)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found[name] = [in_unit(each, unit, power) for each in value]
        elif name in powers:
            found[name] = divided(value, unit ** powers[name])
        elif name != "detail":  # has rounded numbers
            found[name] = value
    return found


def contents(unit: float) -> list[dict[str, Any]]:
    """Return the published records with all numbers in the unit 1."""
    found = [orjson.loads(each) for each in encoded(published(unit))]
    return [in_unit(each, unit, power_of(each)) for each in found]


def power_of(fields: Mapping[str, Any]) -> int:
    """Return the power of the label's unit that a record's numbers have."""
    powers = {"input": 0, "output": 1}
    return powers.get(fields.get("kind", ""), METHODS[fields.get("method") or "loss"])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [0.0078125, 1024.0])
def test_records_in_another_unit_are_the_same_but_for_the_unit(unit: float) -> None:
    """Powers of 2 change no bit of a number but its exponent."""
    for record, expected in zip(contents(unit), contents(1.0), strict=True):
        assert record == expected


@pytest.mark.slow
def test_the_stream_has_changes_of_all_units() -> None:
    changes = [each for each in of_kind(published(1.0), Change) if each.kind == "drift"]
    assert {METHODS[str(each.method)] for each in changes} == {1, 2}
    assert {each.feature for each in changes} == {"b"}
    assert {each.method for each in of_kind(published(1.0), Explanation)} < METHODS.keys()
    assert len(of_kind(published(1.0), Prediction)) == N


@pytest.mark.slow
@pytest.mark.parametrize("unit", [0.01, 1000.0])
def test_changes_in_another_unit_are_the_same(unit: float) -> None:
    """Of powers of 10, the numbers differ by what is rounded."""
    pairs = zip(of_kind(published(unit), Change), of_kind(published(1.0), Change), strict=True)
    for change, expected in pairs:
        for name in ("seq", "feature", "method", "direction", "status", "after_seq"):
            assert getattr(change, name) == getattr(expected, name)
        scale = unit ** power_of({"kind": change.kind, "method": change.method})
        assert change.after == pytest.approx(scale * (expected.after or 0.0), rel=1e-9)
        assert change.before == pytest.approx(scale * (expected.before or 0.0), rel=1e-9)

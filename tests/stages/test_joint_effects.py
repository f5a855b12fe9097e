"""iPDP of pairs, of three classes and with ICE curves: the pipeline publishes the library's."""

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.explain import IncrementalPairPDP, IncrementalPDP
from fluxplain.kafka.producer import MAX_MESSAGE_BYTES
from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation
from fluxplain.schemas.explanation import Ice
from fluxplain.stages import ExplainerStage
from tests.kit import support as kit
from tests.kit.stages import explained, explanations, local, modelled

PAIRS = [["a", "c"], ["b", "a"], ["c", "d"]]
OPTIONS: dict[str, Any] = {"storage_size": 6, "grid_size": 3}


class Classes:
    """Three classes, the third from the tenth record on."""

    def __init__(self) -> None:
        self.learned = 0

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[str, float]:
        first = 1.0 / (1.0 + abs(x["a"]) + len(x["d"]))
        second = (1.0 - first) / (1.0 + x["b"] ** 2 + (x["c"] == "u"))
        if self.learned < 10:
            return {"z": first, "x": 1.0 - first}
        return {"z": first, "x": second, "y": 1.0 - first - second}

    def predict_one(self, x: Mapping[str, Any]) -> str:
        raise NotImplementedError

    def learn_one(self, x: Mapping[str, Any], y: str) -> None:
        self.learned += 1


class Number(Classes):
    """A number in the place of the classes."""

    predict_proba_one = None  # type: ignore[assignment]

    def predict_one(self, x: Mapping[str, Any]) -> float:  # type: ignore[override]
        return float(x["a"] * (1 + x["b"]) + len(x["d"]) * (x["c"] == "v") + self.learned / 10)


def config_for(model: type[Classes], **ipdp: Any) -> Config:
    regression = model is Number
    return kit.linear_config(
        features={"a": "numeric", "b": "numeric", "c": "categorical", "d": "categorical"},
        label={"type": "number" if regression else "string"},
        model=model,
        explain={
            "loss": "squared_error" if regression else "brier",
            "methods": ["ipdp"],
            "emit_every": 2,
            "ipdp": {**OPTIONS, "pairs": PAIRS, "ice": 3, **ipdp},
        },
    )


def records(model: type[Classes], n: int = 40) -> list[dict[str, Any]]:
    rng = random.Random(5)
    xs = [{**r["x"], "d": rng.choice(["s", "long"])} for r in kit.linear_records(n)]
    return [{"x": x, "y": 1.5 if model is Number else rng.choice("xyz")} for x in xs]


def listed(effect: Any) -> Any:
    return list(effect.values()) if isinstance(effect, dict) else effect


@pytest.mark.parametrize("model", [Classes, Number])
@pytest.mark.parametrize("grid", ["quantile-range", "range", "quantiles"])
def test_the_pipeline_publishes_the_surfaces_and_ice_curves_of_the_library(
    model: type[Classes], grid: Any
) -> None:
    """The same stream: the same numbers, bit for bit."""
    config = config_for(model, grid=grid)
    found = {(e.feature, e.seq): e for e in explanations(config, records(model))}
    asked = model()
    options: dict[str, Any] = {
        "alpha": config.explain.alpha,
        "categorical": ["c", "d"],
        "grid": grid,
        **OPTIONS,
    }
    pairs = IncrementalPairPDP(asked, [(a, b) for a, b in PAIRS], **options)
    features = IncrementalPDP(asked, list(config.features), ice=3, **options)
    compared = 0
    for seq, record in enumerate(records(model)):
        x = record["x"]
        pairs.explain_one(x)
        features.explain_one(x)
        for name, (axes, surface) in pairs.surfaces.items():
            if e := found.get((name, seq)):
                assert (e.grid, e.second_grid) == axes
                assert e.effect == listed(surface)
                assert e.classes == (list(surface) if isinstance(surface, dict) else None)
                assert e.value == pairs.values[name]
                assert (e.std_error or math.inf) == pairs.std_errors[name]
                assert (e.increments[-1], e.trends) == (pairs.increments[name], None)
                assert e.ice is None
                compared += 1
        for name, (points, curve) in features.curves.items():
            if e := found.get((name, seq)):
                assert (e.grid, e.second_grid, e.effect) == (points, None, listed(curve))
                assert e.classes == (list(curve) if isinstance(curve, dict) else None)
                assert (e.trends or [])[-1] == features.trends[name]
                assert e.ice == [
                    Ice(ice.seq, ice.grid, listed(ice.effect)) for ice in features.ice[name]
                ]
                compared += 1
        asked.learn_one(x, record["y"])
    assert compared == len(found) == 7 * (40 - 6) // 2
    last = found["a", 39]
    assert last.ice is not None
    assert [ice.seq for ice in last.ice] == [37, 38, 39]
    assert (last.classes == ["x", "y", "z"]) == (model is Classes)


def test_ice_curves_and_surfaces_are_part_of_the_state() -> None:
    config = config_for(Classes)
    evaluations = kit.passed_on(kit.of_kind(modelled(config, records(Classes)), Evaluation))
    whole = kit.run(ExplainerStage(config), evaluations)
    assert kit.encoded(kit.run_copies(ExplainerStage(config), evaluations)) == kit.encoded(whole)


def test_without_them_nothing_is_published_for_them() -> None:
    config = config_for(Number, pairs=[], ice=0)
    found = explanations(config, records(Number))
    assert {e.feature for e in found} == set(config.features)
    assert {(e.second_grid, e.ice) for e in found} == {(None, None)}


def test_pairs_change_as_features_do() -> None:
    config = config_for(Number)
    sensitive = config.model_copy(
        update={
            "drift": config.drift.model_copy(
                update={"detector": "adwin", "min_effect": 0.0, "delta": 0.9}
            )
        }
    )
    changes = kit.of_kind(local(sensitive, records(Number, 200)), Change)
    assert {"a|c", "b|a"} <= {change.feature for change in changes}


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([0, 1.0, "u"], "do not begin with how many"),
        ([True, 1.0, "u"], "do not begin with how many"),
        ([2, 1.0, 2.0], "do not begin with how many"),
        (["u"], "do not begin with how many"),
        ([1, 1.0, "u"], "do not fit"),
        ([1, "u", "u"], "a point is not of the feature's type"),
        ([3, 1.0, 2.0, 3.0, 0.5], "a point is not of the feature's type"),
    ],
)
def test_points_that_are_those_of_no_pair_are_a_dead_letter(points: Any, reason: str) -> None:
    config = config_for(Number)
    runs = kit.by_feature(modelled(config, records(Number)))["a|c"]
    bad = replace(runs[5], points={"ipdp": [points]})
    published = explained(config, [*runs[:5], bad, *runs[6:]])
    [letter] = kit.of_kind(published, DeadLetter)
    assert letter.reason.startswith("cannot explain a|c: ")
    assert reason in letter.reason
    absent = replace(runs[5], outputs={"ipdp": [None]}, points={"ipdp": [None]})
    without = explained(config, [*runs[:5], absent, *runs[6:]])
    assert kit.of_kind(published, Explanation) == kit.of_kind(without, Explanation)


@pytest.mark.slow
def test_the_largest_that_can_be_configured_fits_into_messages() -> None:
    """With two classes; more of them give dead letters with that reason."""
    for ipdp in ({"grid_size": 100, "ice": 0}, {"grid_size": 10, "ice": 999, "pairs": []}):
        config = config_for(Number, **ipdp)
        found = local(config, records(Number, 10))
        assert not kit.of_kind(found, DeadLetter)
        assert all(len(record.encode()) < MAX_MESSAGE_BYTES for record in found)
    many = local(config_for(Classes, grid_size=100, ice=0), records(Classes, 16))
    assert all(len(record.encode()) < MAX_MESSAGE_BYTES for record in many)

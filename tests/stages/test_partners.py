"""The partners in explanations of interactions: found, ranked, and checked."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.schemas import DeadLetter, Evaluation, Explanation, Record
from fluxplain.schemas.record import Value
from fluxplain.stages import ExplainerStage, Message
from tests.kit.stages import explanations, modelled
from tests.kit.support import of_kind


class Product:
    """A model with one interaction."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return float(x["a"] * x["b"] + x["c"])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        pass


def config_of(*methods: str) -> Config:
    return Config(
        features=dict.fromkeys("abcd", "numeric"),
        label={"type": "number"},
        model={"factory": f"{__name__}:Product"},
        explain={
            "loss": "squared_error",
            "methods": [*methods],
            "alpha": [0.01, 0.1],
            **{method: {"reservoir_size": 20} for method in methods},
        },
    )


def values(n: int) -> list[dict[str, Any]]:
    rng = random.Random(1)
    return [{"x": {name: rng.gauss(0.0, 1.0) for name in "abcd"}} for _ in range(n)]


def test_the_pair_that_acts_together_is_found() -> None:
    newest: dict[tuple[str, float], Explanation] = {}
    for e in explanations(config_of("interaction"), values(600)):
        newest[e.feature, e.alpha] = e
    for feature, partner in {"a": "b", "b": "a"}.items():
        for alpha, off in {0.01: 0.5, 0.1: 2.0}.items():
            e = newest[feature, alpha]
            assert e.interactions is not None
            [found] = e.interactions
            assert found.feature == partner
            assert found.value == pytest.approx(e.value)
            assert found.value == pytest.approx(1.0, abs=off)
    e = newest["a", 0.01]
    assert e.interactions is not None
    assert e.interactions[0].std_error == e.std_error is not None
    assert [newest[name, 0.01].interactions for name in "cd"] == [[], []]


def test_other_methods_have_no_partners() -> None:
    records = explanations(config_of("ishap"), values(60))
    assert {each.interactions is None for each in records} == {True}


def test_a_partner_that_is_none_makes_a_dead_letter_and_changes_no_estimate() -> None:
    config = config_of("interaction")
    runs = of_kind(modelled(config, values(200)), Evaluation)
    runs = [each for each in runs if each.feature == "a"]
    place = next(i for i, each in enumerate(runs) if each.outputs["interaction"][0] is not None)
    malformed: list[list[Value] | None] = [[4.0], [-1.0], [0.5], ["b"], [], None]
    for bad in malformed:
        stage, found = ExplainerStage(config), list[Record]()
        for i, run in enumerate(runs[: place + 40]):
            if i == place + 1:
                run = replace(run, points={"interaction": [bad]})  # noqa: PLW2901
            message = Message("evaluations", 0, i, b"a", run.encode())
            found += stage.step((message, run))
        [letter] = of_kind(found, DeadLetter)
        assert "not the place of a feature" in letter.reason
        [updates] = {each.updates for each in of_kind(found, Explanation)[-2:]}
        assert updates > 0

"""ICE curves: the outputs on single observations."""

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fluxplain.evaluate import Encoding, Label, Output
from fluxplain.evaluate.table import Labels
from fluxplain.explain import IncrementalPDP
from fluxplain.explain.effects import Effects, ice_importances
from fluxplain.explain.method import Answers, as_grid
from tests.kit.support import NUMBERS, PROPERTY, Linear, Row, Scripted


def test_the_increment_is_the_importance_of_the_ice_curve() -> None:
    pdp = IncrementalPDP(
        Linear({"a": 3.0, "b": 1.0}), ["a"], grid_size=3, storage_size=2, alpha=0.1, seed=1
    )
    for a in (0.0, 1.0):
        pdp.explain_one({"a": a, "b": 1.0})
    pdp.explain_one({"a": 5.0, "b": 7.0})
    # of two numbers, the 5 % and the 95 % quantile are the numbers themselves
    assert pdp.increments["a"] == pytest.approx(3.0 * 0.5)


CLASSES: dict[str, Any] = {
    "number": lambda x: 2.0 * x["a"] + x["b"],
    "two": lambda x: {"no": 1.0 - x["b"] * x["a"], "yes": x["b"] * x["a"]},
    "three": lambda x: {"u": x["a"], "w": x["b"], "v": 1.0 - x["a"] - x["b"]},
}


def shown(output: Output) -> dict[Any, float]:
    """Return the curves that an output is a point of, by class."""
    if not isinstance(output, dict):
        return {None: output}
    return {"yes": output["yes"]} if "yes" in output else output


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("feature", ["a", "c"])
def test_the_ice_curves_are_the_outputs_on_the_last_observations(kind: str, feature: str) -> None:
    model = Scripted(CLASSES[kind])
    rng = random.Random(1)
    rows: list[Row] = [
        {"a": rng.random(), "b": rng.random(), "c": rng.choice("xyz")} for _ in range(20)
    ]
    pdp = IncrementalPDP(model, ["a", "c"], grid_size=3, storage_size=4, ice=5, seed=1)
    kept: list[dict[str, list[bool | int | float | str]]] = []
    encoding = Encoding()
    for x in rows:
        question = pdp._method.ask(encoding.observe(x))
        names, _, axes = question.about if question else ([], [], [])
        kept.append(dict(zip(names, map(as_grid, axes), strict=True)))
        pdp.explain_one(x)
    curves = pdp.ice[feature]
    assert [curve.seq for curve in curves] == [15, 16, 17, 18, 19]
    for seq, grid, effect in curves:
        assert grid == kept[seq][feature]
        outputs = [shown(CLASSES[kind]({**rows[seq], feature: point})) for point in grid]
        found = effect if isinstance(effect, dict) else {next(iter(outputs[0])): effect}
        assert found == {label: [each[label] for each in outputs] for label in sorted(outputs[0])}


def test_few_ice_curves_or_none_are_kept() -> None:
    model = Linear({"a": 1.0})
    pdp = IncrementalPDP(model, ["a"], storage_size=4, ice=5, seed=1)
    none = IncrementalPDP(model, ["a"], storage_size=4, seed=1)
    for t in range(6):
        assert pdp.explain_one({"a": t}) == none.explain_one({"a": t})
    assert [curve.seq for curve in pdp.ice["a"]] == [4, 5]
    assert none.ice == {}


def test_a_class_that_came_later_is_zero_in_earlier_ice_curves() -> None:
    early: list[dict[Label, float]] = [{"a": 1.0, "b": 0.0}] * 7
    late: list[dict[Label, float]] = [{"a": 0.5, "b": 0.25, "c": 0.25}] * 3
    outputs = iter([*early, *late])  # of the first only the output itself, of the others two more
    pdp = IncrementalPDP(
        Scripted(lambda x: next(outputs)), ["a"], grid_size=2, storage_size=1, ice=5, seed=1
    )
    for t in range(4):
        pdp.explain_one({"a": t})
    assert [curve.effect for curve in pdp.ice["a"]] == [
        {"a": [1.0, 1.0], "b": [0.0, 0.0], "c": [0.0, 0.0]},
        {"a": [1.0, 1.0], "b": [0.0, 0.0], "c": [0.0, 0.0]},
        {"a": [0.5, 0.5], "b": [0.25, 0.25], "c": [0.25, 0.25]},
    ]


KINDS = {"number": (False,), "category": (True,), "pair": (False, True)}


@PROPERTY
@given(st.data(), st.sampled_from([(None,), ("no", "yes"), ("a", "b", "c")]))
def test_the_importance_of_one_observation_is_its_increment(
    data: st.DataObject, labels: Labels
) -> None:
    axes: dict[str, Any] = {"number": np.arange(3.0), "category": ["u", "v", "w"]}
    axes["pair"] = axes["number"], axes["category"]
    blocks = [
        np.array(data.draw(st.lists(NUMBERS, min_size=size, max_size=size))).reshape(
            -1, len(labels)
        )
        for size in (3 * len(labels), 3 * len(labels), 9 * len(labels))
    ]
    answers = Answers([*KINDS], labels, blocks, [*axes.values()])
    increments = {name: each for name, (each, _) in Effects(KINDS, 0.1).take(answers).items()}
    for known in ((), labels) if labels == (None,) else (labels, labels[:1]):
        assert ice_importances(KINDS, answers, dict.fromkeys(KINDS, known), labels) == increments

"""When two states are equal: bit for bit, whatever objects they share."""

import pickle
import random
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from river.forest import ARFClassifier

from fluxplain.kafka.checkpoints.equal_states import first_difference


@dataclass
class Node:
    """An object that may refer to itself."""

    value: Any = None
    others: list["Node"] = field(default_factory=list)


def cycle(value: float) -> Node:
    node = Node(value)
    node.others.append(node)
    return node


@dataclass
class Drawing:
    """An object with a generator."""

    seed: int | None
    generator: random.Random


EQUAL: list[tuple[Any, Any]] = [
    (float("nan"), float("nan")),
    (np.float64(0.1), np.float64(0.1)),
    (np.array([0.1, np.nan]), np.array([0.1, np.nan])),
    (np.arange(6.0)[::2], np.array([0.0, 2.0, 4.0])),
    ({"a", "b"}, {"b", "a"}),
    (cycle(1.0), cycle(1.0)),
    (random.Random(1), random.Random(1)),
    (np.random.default_rng(1), np.random.default_rng(1)),
    (Counter("aab"), Counter("aab")),
    (OrderedDict(a=1), OrderedDict(a=1)),
    (deque([1], 3), deque([1], 3)),
    (Drawing(None, random.Random(1)), Drawing(None, random.Random(2))),
]

DIFFERENT: list[tuple[Any, Any, str]] = [
    (0.0, -0.0, ""),
    (1, 1.0, ""),
    (True, 1, ""),
    ([1, 2], [1], "1"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ""),
    ({"a": {"b": 1}}, {"a": {"b": 2}}, "a/b"),
    (np.float64(0.1), np.float64(0.1 + 2e-17), "1/1"),
    (np.array([0.0]), np.array([-0.0]), ""),
    (np.array([1], np.int64), np.array([1], np.int32), ""),
    (random.Random(1), random.Random(2), "2/1/"),
    (cycle(1.0), cycle(2.0), "2/value"),
    (Drawing(1, random.Random(1)), Drawing(1, random.Random(2)), "2/generator"),
    (Node, random.Random, ""),
    (deque([1], 3), deque([1, 2], 3), "1"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_states_have_no_difference(one: Any, other: Any) -> None:
    assert first_difference(one, other) is None
    assert first_difference(pickle.loads(pickle.dumps(one)), other) is None


@pytest.mark.parametrize(("one", "other", "place"), DIFFERENT)
def test_a_difference_has_a_place(one: Any, other: Any, place: str) -> None:
    found = first_difference(one, other)
    assert found is not None
    assert place in found


def test_shared_objects_make_no_difference() -> None:
    text = "".join(["a", "b"])
    shared, apart = [text, text], ["".join(["a", "b"]), "".join(["a", "b"])]
    assert pickle.dumps(shared) != pickle.dumps(apart)
    assert first_difference(shared, apart) is None


def test_a_model_equals_its_copy_until_one_of_them_learns() -> None:
    model = ARFClassifier(n_models=2, seed=1)
    rng = random.Random(3)
    for _ in range(200):
        model.learn_one({"a": rng.random()}, rng.random() < 0.5)
    copy = pickle.loads(pickle.dumps(model))
    assert first_difference(model, copy) is None
    for each in (model, copy):
        each.learn_one({"a": 0.5}, True)
    assert first_difference(model, copy) is None
    copy.learn_one({"a": 0.5}, True)
    assert first_difference(model, copy) is not None

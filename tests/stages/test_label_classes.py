"""The number of classes has a bound, whatever arrives as a label."""

from collections.abc import Sequence
from typing import Any

import pytest

from fluxplain.schemas import DeadLetter, Prediction
from fluxplain.stages import ModelStage
from tests.kit import support as kit

X = {"salary": 1.0, "age": 2.0}


def model_stage(kind: str, most: int) -> ModelStage:
    config = kit.make_config(
        features=dict.fromkeys(X, "numeric"),
        label={"type": kind, "max_classes": most},
        model={"factory": "river.naive_bayes:GaussianNB", "params": {}},
    )
    return ModelStage(config, kit.STREAM)


def labelled(labels: Sequence[Any]) -> list[Any]:
    return [{"x": X, "y": y, "id": i} for i, y in enumerate(labels)]


@pytest.mark.parametrize("kind", ["integer", "string"])
def test_a_class_too_many_is_a_dead_letter_with_a_remedy_and_never_learned(kind: str) -> None:
    labels = [i if kind == "integer" else f"label {i}" for i in range(40)]
    stage = model_stage(kind, 3)
    records = kit.run(stage, kit.messages_of(labelled([*labels, *labels[:3]])))
    letters = kit.of_kind(records, DeadLetter)
    assert [letter.offset for letter in letters] == [*range(3, 40)]
    assert all("label.max_classes" in letter.reason for letter in letters)
    assert all("is it an id" in letter.reason for letter in letters)
    assert len(kit.of_kind(records, Prediction)) == 6
    assert [*stage.model.predict_proba_one(X)] == labels[:3]


def test_the_classes_outlast_a_restart() -> None:
    messages = kit.messages_of(labelled([1, 2, 3, 2]))
    stage = model_stage("integer", 2)
    kit.run(stage, messages[:2])
    [letter] = kit.of_kind(kit.run(kit.pickled(stage), messages[2:]), DeadLetter)
    assert letter.offset == 2


def test_a_late_label_of_a_class_too_many_is_refused_and_its_observation_waits_on() -> None:
    values: list[Any] = [{"x": X, "id": id_} for id_ in "abc"]
    values += [{"id": id_, "y": y} for id_, y in (("a", 1), ("b", 2), ("c", 3), ("c", 2))]
    records = kit.run(model_stage("integer", 2), kit.messages_of(values))
    [letter] = kit.of_kind(records, DeadLetter)
    assert letter.offset == 5
    counts = kit.of_kind(records, Prediction)[-1].labels
    assert counts is not None
    assert (counts.joined, counts.waiting) == (3, 0)


def test_labels_of_nothing_take_no_place() -> None:
    unknown = [{"id": f"nobody {i}", "y": i} for i in range(5)]
    values = [*unknown, *labelled([10, 11, 10])]
    records = kit.run(model_stage("integer", 2), kit.messages_of(values))
    assert len(kit.of_kind(records, Prediction)) == 3

"""The model stage with models that fail, name unknown classes or change their input."""

from collections.abc import Mapping
from typing import Any

import pytest

from fluxplain.schemas import Change, DeadLetter, Evaluation, Prediction
from fluxplain.stages import ModelStage
from tests.kit import support as kit
from tests.kit.stages import local, modelled

RECORDS = kit.linear_records(40)

X = RECORDS[0]["x"]


class Moody:
    """Fails on some observations: while it is asked, or while it learns."""

    def predict_one(self, x: Mapping[str, Any]) -> float | None:
        if x["a"] > 100.0:
            raise RuntimeError("too large for me")
        return float("nan") if x["a"] < -100.0 else 2.0 * float(x["a"])

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        if y > 1e6:
            raise ArithmeticError("cannot learn this")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"x": {**X, "a": 200.0}, "y": 1.0}, "RuntimeError: too large for me"),
        ({"x": {**X, "a": -200.0}, "y": 1.0}, "not finite: nan"),
        ({"x": X, "y": 1e7}, "ArithmeticError: cannot learn this"),
    ],
)
def test_a_model_that_fails_gives_a_dead_letter_and_the_stream_continues(
    bad: dict[str, Any], reason: str
) -> None:
    config = kit.linear_config(model=Moody)
    values: list[Any] = [*RECORDS[:20], bad, *RECORDS[20:]]
    published = modelled(config, values)
    [letter] = kit.of_kind(published, DeadLetter)
    assert letter.seq == 20
    assert "the model failed" in letter.reason
    assert reason in letter.reason
    seqs = [p.seq for p in kit.of_kind(published, Prediction)]
    assert seqs == [t for t in range(41) if t != 20]
    # what the model failed on is in no reservoir, so it fails on nothing else
    assert all(r.prediction != [400.0] for r in kit.of_kind(published, Evaluation))
    # the next evaluations name none of those that were not published
    assert kit.of_kind(local(config, values), Change) == []


def test_after_learning_failed_nothing_that_was_copied_of_the_model_is_used() -> None:
    """Learning may end in the middle, which a copy would not notice."""
    stage = ModelStage(kit.linear_config(model=Moody), kit.STREAM)
    evaluate = stage.active.evaluate
    values: list[Any] = [RECORDS[0], {"x": X, "y": 1e7}]
    for t, is_same in enumerate((True, False)):
        kit.run(stage, [kit.message(t, values[t])])
        assert (stage.active.evaluate is evaluate) == is_same


class Answers:
    """Answers with the probabilities that it is given."""

    def __init__(self, classes: list[Any]) -> None:
        self.classes = classes

    def predict_proba_one(self, x: Mapping[str, Any]) -> dict[Any, float]:
        return {each: 1.0 / len(self.classes) for each in self.classes}

    def learn_one(self, x: Mapping[str, Any], y: object) -> None:
        pass


@pytest.mark.parametrize(
    ("classes", "kind", "other"),
    [
        ([False, True], "boolean", None),
        ([0, 1], "boolean", None),
        ([1, 2, 3], "integer", None),
        (["no", "yes"], "string", None),
        (["no", "yes"], "boolean", "'no'"),
        ([0, 2], "boolean", "2"),
        ([0, "1"], "integer", "'1'"),
        (["no", 1], "string", "1"),
    ],
)
def test_a_class_that_no_label_can_have_is_a_dead_letter(
    classes: list[Any], kind: str, other: str | None
) -> None:
    config = kit.linear_config(
        model={"factory": f"{__name__}:Answers", "params": {"classes": classes}},
        label={"type": kind},
        explain={"loss": "cross_entropy"},
    )
    y = {"boolean": True, "integer": 1, "string": "yes"}[kind]
    published = modelled(config, [{"x": X, "y": y}, {"x": X}])
    letters = kit.of_kind(published, DeadLetter)
    if other is None:
        assert not letters
        return
    assert not kit.of_kind(published, Prediction)
    told = f"the model failed: ValueError: an output has the class {other}, but label.type is "
    assert all(each.reason.startswith(f"{told}{kind!r}: set it to '") for each in letters)
    assert len(letters) == 2


class Destroyer(kit.Additive):
    """Takes apart what it learns from."""

    def learn_one(self, x: Mapping[str, Any], y: float) -> None:
        super().learn_one(x, y)
        assert isinstance(x, dict)
        x.clear()


def test_a_model_that_changes_what_it_learns_from_does_no_harm() -> None:
    assert modelled(kit.linear_config(model=Destroyer), RECORDS) == modelled(
        kit.linear_config(), RECORDS
    )

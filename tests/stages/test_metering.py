"""What the model stage has metered, and that what it does shows nothing of it."""

import pickle
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, TypeVar

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.schemas import DeadLetter, Evaluation, Prediction
from fluxplain.stages import DriftStage, Message, ModelStage
from fluxplain.stages.metering import Metered, Work
from fluxplain.stages.model_stage import WHOLE
from tests.kit.support import (
    STREAM,
    agrawal,
    encoded,
    linear_config,
    linear_records,
    make_config,
    messages_of,
    observations,
    of_kind,
    pickled,
    run,
)

T = TypeVar("T")

RECORDS = linear_records(40)

MESSAGES = messages_of(RECORDS)

UNLABELLED = messages_of({"x": record["x"]} for record in RECORDS)


class Counting:
    """Counts what it is asked and taught."""

    def __init__(self) -> None:
        self.asked = self.learned = 0

    def predict_one(self, x: Mapping[str, Any]) -> float:
        self.asked += 1
        return 2.0 * float(x["a"]) - float(x["b"])

    def learn_one(self, _x: Mapping[str, Any], _y: float) -> None:
        self.learned += 1


class Picky:
    """Fails on values of ``b`` that only grid points have."""

    observed = frozenset(record["x"]["b"] for record in RECORDS)

    def predict_one(self, x: Mapping[str, Any]) -> float:
        if x["b"] not in self.observed:
            raise RuntimeError(f"b is never {x['b']}")
        return float(x["a"])

    def learn_one(self, _x: Mapping[str, Any], _y: float) -> None:
        pass


class Tally:
    """Counts the inputs of the calls it makes."""

    def __init__(self) -> None:
        self.inputs: dict[Work, int] = {}

    def __call__(self, shares: Mapping[Work, int], call: Callable[[], T]) -> T:
        for work, inputs in shares.items():
            self.inputs[work] = self.inputs.get(work, 0) + inputs
        return call()


def config_of(model: type) -> Config:
    return linear_config(model={"factory": f"{__name__}:{model.__name__}"})


def metered(config: Config, replica: Replica = WHOLE) -> tuple[ModelStage, Tally]:
    stage, tally = ModelStage(config, STREAM, replica), Tally()
    stage.meter = tally
    return stage, tally


@pytest.mark.parametrize("replica", [WHOLE, Replica("model", 0, 2), Replica("model", 1, 2)])
def test_every_call_of_the_model_is_metered_with_what_its_inputs_are_for(replica: Replica) -> None:
    stage, tally = metered(config_of(Counting), replica)
    published = run(stage, MESSAGES)
    model = stage.model
    assert isinstance(model, Counting)
    asked = {work: inputs for work, inputs in tally.inputs.items() if work != "learning"}
    assert sum(asked.values()) == model.asked
    assert asked["prediction"] == tally.inputs["learning"] == model.learned == len(MESSAGES)
    evaluations = of_kind(published, Evaluation)
    for method in ("ipfi", "ipdp"):
        blocks = [own for e in evaluations for own in e.outputs[method] if own]
        assert asked[method] == sum(map(len, blocks)) > 0
    assert asked["isage"] > 0


def test_without_a_label_there_is_no_learning_and_nothing_but_ipdp() -> None:
    stage, tally = metered(config_of(Counting))
    run(stage, UNLABELLED)
    assert {work for work, inputs in tally.inputs.items() if inputs} == {"prediction", "ipdp"}


def test_a_model_that_fails_on_some_inputs_is_metered_when_it_is_asked_again() -> None:
    stage, tally = metered(config_of(Picky))
    published = run(stage, MESSAGES)
    assert of_kind(published, DeadLetter)
    assert tally.inputs["prediction"] > len(of_kind(published, Prediction)) == len(MESSAGES)
    assert encoded(published) == encoded(run(ModelStage(config_of(Picky), STREAM), MESSAGES))


@pytest.mark.parametrize(
    ("config", "messages"),
    [(linear_config(), MESSAGES), (make_config(), observations(agrawal(60)))],
    ids=["regression", "forest"],
)
def test_what_is_published_and_kept_shows_nothing_of_a_meter(
    config: Config, messages: list[Message]
) -> None:
    begin, end = messages[:30], messages[30:]
    plain, (stage, _) = ModelStage(config, STREAM), metered(config)
    assert encoded(run(stage, begin)) == encoded(run(plain, begin))
    state = pickle.dumps(stage)
    stage.meter = None
    assert pickle.dumps(stage) == state
    restored = pickled(stage)
    assert restored.meter is None
    stage.meter = Tally()
    goes_on = [encoded(run(each, end)) for each in (plain, stage, restored)]
    assert goes_on[0] == goes_on[1] == goes_on[2]
    assert list(chain(*goes_on))


def test_only_a_stage_with_a_model_can_be_metered() -> None:
    config = linear_config()
    assert isinstance(ModelStage(config, STREAM), Metered)
    assert not isinstance(DriftStage(config), Metered)

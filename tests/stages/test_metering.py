"""What the model stage has metered, and that what it does shows nothing of it."""

import pickle
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest

from fluxplain.config import Config
from fluxplain.config.replica import Replica
from fluxplain.schemas import DeadLetter, Evaluation, Prediction
from fluxplain.stages import DriftStage, Message, ModelStage
from fluxplain.stages.active_model import HasActiveModel
from fluxplain.stages.model_stage import WHOLE
from tests.kit import support as kit
from tests.kit.stages import Tally, metered, modelled

RECORDS = kit.linear_records(40)

MESSAGES = kit.messages_of(RECORDS)


class Counting:
    """Counts what it is asked and taught."""

    def __init__(self) -> None:
        self.asked = self.learned = 0

    def predict_one(self, x: Mapping[str, Any]) -> float:
        self.asked += 1
        return 2.0 * float(x["a"]) - float(x["b"])

    def learn_one(self, _x: Mapping[str, Any], _y: float) -> None:
        self.learned += 1


class Picky(kit.Constant):
    """Fails on values of ``b`` that only grid points have."""

    observed = frozenset(record["x"]["b"] for record in RECORDS)

    def predict_one(self, x: Mapping[str, Any]) -> float:
        if x["b"] not in self.observed:
            raise RuntimeError(f"b is never {x['b']}")
        return float(x["a"])


@pytest.mark.parametrize("replica", [WHOLE, Replica("model", 0, 2), Replica("model", 1, 2)])
def test_every_call_of_the_model_is_metered_with_what_its_inputs_are_for(replica: Replica) -> None:
    stage, tally = metered(kit.linear_config(model=Counting), replica)
    published = kit.run(stage, MESSAGES)
    model = stage.model
    assert isinstance(model, Counting)
    asked = {work: inputs for work, inputs in tally.inputs.items() if work != "learning"}
    assert sum(asked.values()) == model.asked
    assert asked["prediction"] == tally.inputs["learning"] == model.learned == len(MESSAGES)
    evaluations = kit.of_kind(published, Evaluation)
    for method in ("ipfi", "ipdp"):
        blocks = [own for e in evaluations for own in e.outputs[method] if own]
        assert asked[method] == sum(map(len, blocks)) > 0
    assert asked["isage"] > 0


def test_without_a_label_there_is_no_learning_and_nothing_but_ipdp() -> None:
    stage, tally = metered(kit.linear_config(model=Counting))
    kit.run(stage, kit.messages_of({"x": record["x"]} for record in RECORDS))
    assert {work for work, inputs in tally.inputs.items() if inputs} == {"prediction", "ipdp"}


def test_a_model_that_fails_on_some_inputs_is_metered_when_it_is_asked_again() -> None:
    stage, tally = metered(kit.linear_config(model=Picky))
    published = kit.run(stage, MESSAGES)
    assert kit.of_kind(published, DeadLetter)
    assert tally.inputs["prediction"] > len(kit.of_kind(published, Prediction)) == len(MESSAGES)
    assert kit.encoded(published) == kit.encoded(modelled(kit.linear_config(model=Picky), RECORDS))


@pytest.mark.parametrize(
    ("config", "messages"),
    [(kit.linear_config(), MESSAGES), (kit.make_config(), kit.observations(kit.agrawal(60)))],
    ids=["regression", "forest"],
)
def test_what_is_published_and_kept_shows_nothing_of_a_meter(
    config: Config, messages: list[Message]
) -> None:
    begin, end = messages[:30], messages[30:]
    plain, (stage, _) = ModelStage(config, kit.STREAM), metered(config)
    assert kit.encoded(kit.run(stage, begin)) == kit.encoded(kit.run(plain, begin))
    state = pickle.dumps(stage)
    stage.meter = None
    assert pickle.dumps(stage) == state
    restored = kit.pickled(stage)
    assert restored.meter is None
    stage.meter = Tally()
    goes_on = [kit.encoded(kit.run(each, end)) for each in (plain, stage, restored)]
    assert goes_on[0] == goes_on[1] == goes_on[2]
    assert list(chain(*goes_on))


def test_only_a_stage_with_a_model_can_be_metered() -> None:
    config = kit.linear_config()
    assert isinstance(ModelStage(config, kit.STREAM), HasActiveModel)
    assert not isinstance(DriftStage(config), HasActiveModel)

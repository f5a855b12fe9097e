"""Each value of each hostile kind is one dead letter, and nobody waits for a model."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.schemas import Change, DeadLetter, Record
from fluxplain.stages import Message, ModelStage, process
from fluxplain.stages.active_model import settle_model
from tests.fuzz.hostile import KINDS, hostile
from tests.fuzz.hostile_control import KINDS as CONTROL_KINDS
from tests.fuzz.hostile_control import hostile_control, withdrawn
from tests.kit.announced import STREAM, config_of
from tests.kit.support import make_config, message, run

CONFIG = make_config(model={"factory": "river.naive_bayes:GaussianNB", "params": {}})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_one_dead_letter(kind: str) -> None:
    stage, rng = ModelStage(CONFIG, "fluxplain.features-0"), random.Random(1)
    for offset in range(300):
        value = KINDS[kind](rng)
        [letter] = process(stage, message(offset, value))
        assert isinstance(letter, DeadLetter), value
        assert letter.original() == value


def test_a_stream_of_them_has_no_value_twice() -> None:
    assert len(set(hostile(2_000, seed=5))) == 2_000


class NoModels:
    """Fails if it is asked for anything but a digest."""

    def get(self, sha256: str) -> Any:
        raise AssertionError(f"{sha256} was looked for")


def control(config: Config, offset: int, value: bytes) -> Message:
    headers = {"fluxplain-origin": f"{config.topic('control')}-0@{offset}".encode()}
    return Message(config.topic("observations"), 0, offset, None, value, None, headers)


@pytest.fixture
def stage(tmp_path: Path) -> ModelStage:
    stage = ModelStage(config_of(tmp_path), STREAM)
    stage.active.models = NoModels()
    return stage


@pytest.mark.parametrize("seed", [1, 2])
def test_each_control_record_is_one_dead_letter(
    stage: ModelStage, tmp_path: Path, seed: int
) -> None:
    config = config_of(tmp_path)
    reasons: Counter[str] = Counter()
    for offset, value in enumerate(hostile_control(3_000, seed)):
        records = run(stage, [control(config, offset, value)])
        assert stage.active.awaited is None, value[:300]
        [letter] = records
        assert isinstance(letter, DeadLetter), value[:300]
        assert letter.offset == offset
        assert len(letter.reason) < 1_000
        assert letter.reason.isprintable()
        reasons[letter.reason[:12]] += 1
    assert len(reasons) >= len(CONTROL_KINDS)
    assert stage.every == config.explain.every


def test_an_announcement_that_is_withdrawn_is_one_change(stage: ModelStage, tmp_path: Path) -> None:
    config, published = config_of(tmp_path), list[Record]()
    for i, (announced, withdrawal) in enumerate(withdrawn(50)):
        both = control(config, 2 * i, announced), control(config, 2 * i + 1, withdrawal)
        stage.active.models = None
        assert run(stage, both[:1]) == []
        published += settle_model(stage, both[1:])
        assert run(stage, both[1:]) == []
    assert [type(each) for each in published] == [Change] * 50
    assert orjson.loads(published[0].encode())["kind"] == "model"

"""Each hostile control record is one dead letter, opens nothing, and nobody waits for it."""

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.schemas import Change, DeadLetter, Record
from fluxplain.stages import Message, ModelStage
from fluxplain.stages.active_model import settle_model
from tests.fuzz.hostile_control import KINDS, hostile_control, withdrawn
from tests.kit.announced import STREAM, config_of
from tests.kit.support import run


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
def test_each_is_one_dead_letter(stage: ModelStage, tmp_path: Path, seed: int) -> None:
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
    assert len(reasons) >= len(KINDS)
    assert stage.every == config.explain.every


def test_what_is_withdrawn_is_one_change(stage: ModelStage, tmp_path: Path) -> None:
    config, published = config_of(tmp_path), list[Record]()
    for i, (announced, withdrawal) in enumerate(withdrawn(50)):
        both = control(config, 2 * i, announced), control(config, 2 * i + 1, withdrawal)
        stage.active.models = None
        assert run(stage, both[:1]) == []
        published += settle_model(stage, both[1:])
        assert run(stage, both[1:]) == []
    assert [type(each) for each in published] == [Change] * 50
    assert orjson.loads(published[0].encode())["kind"] == "model"

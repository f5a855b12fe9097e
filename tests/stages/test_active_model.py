"""An announced model is awaited: it is taken as soon as it is there, or withdrawn before that."""

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import Change, DeadLetter, Prediction, Record
from fluxplain.stages import Message, ModelStage
from fluxplain.stages.active_model import FoundModel, settle_model
from tests.kit.announced import STREAM, announcement, config_of, messages, taken
from tests.kit.stages import only_letter
from tests.kit.support import Constant, linear_records, of_kind, pickled, run

DATA = pickle.dumps(Constant(7.0))

SHA256 = hashlib.sha256(DATA).hexdigest()

WITHDRAWAL = {"withdraw": "v2"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return config_of(tmp_path)


def stage_of(config: Config) -> ModelStage:
    stage = ModelStage(config, STREAM)
    stage.active.models = ModelFolder(config.model.directory)
    return stage


def waiting(config: Config) -> ModelStage:
    """Return a stage that was given an announcement, and copied as by a new start."""
    stage = stage_of(config)
    assert run(stage, messages(config, [announcement(SHA256)])) == []
    copy = pickled(stage)
    copy.active.models = ModelFolder(config.model.directory)
    return copy


def behind(config: Config, value: object, offset: int = 1, origin: str = "") -> Message:
    """Return a message behind an announcement at offset 0."""
    source = origin or f"{config.topic('control')}-0@{offset}"
    headers = {
        "fluxplain-origin": source.encode(),
        "fluxplain-origin-previous": str(offset - 1).encode(),
    }
    data = value if isinstance(value, bytes) else orjson.dumps(value)
    return Message(config.topic("observations"), 0, offset, None, data, None, headers)


def test_until_it_is_decided_nothing_else_is_taken(config: Config) -> None:
    stage = waiting(config)
    assert stage.active.awaited is not None
    assert stage.active.awaited.model.version == "v2"
    with pytest.raises(RuntimeError, match="model v2 is awaited"):
        run(stage, [behind(config, linear_records(1)[0])])


def test_it_is_awaited_after_a_new_start_too(config: Config) -> None:
    again = waiting(config)
    message = "Put it there, or withdraw it: `fluxplain model withdraw v2`"
    with pytest.raises(NotYetError, match=message):
        settle_model(again)
    folder = ModelFolder(config.model.directory)
    folder.put(DATA)
    [notice] = settle_model(again, [behind(config, WITHDRAWAL)])
    assert isinstance(notice, Change)
    assert notice.detail == "model v2 takes over from v1"

    [notice] = waiting(config).conclude(None)
    assert isinstance(notice, Change)
    assert (notice.seq, notice.model_version) == (0, "v1")
    assert notice.detail == "model v2 was withdrawn before it took over: v1 stays"


def test_nothing_is_withdrawn_where_nothing_is_awaited(config: Config) -> None:
    stage = waiting(config)
    stage.conclude(None)
    with pytest.raises(RuntimeError, match="no model is awaited"):
        stage.conclude(None)
    with pytest.raises(RuntimeError, match="no model is awaited"):
        stage.conclude(FoundModel(None))


@pytest.mark.parametrize(
    ("value", "offset", "origin"),
    [
        ({"withdraw": "v3"}, 1, ""),
        ({"withdraw": "v2 "}, 1, ""),
        ({"withdraw": ["v2"]}, 1, ""),
        ({"every": 3}, 1, ""),
        ({"withdraw": "v2", "model": announcement(SHA256)["model"]}, 1, ""),
        (b'{"withdraw": "v2"', 1, ""),
        (b"", 1, ""),
        (WITHDRAWAL, 7, "fluxplain.control-0@0"),
        (WITHDRAWAL, 7, "fluxplain.features-0@7"),
        (WITHDRAWAL, 7, "fluxplain.labels-0@7"),
        (WITHDRAWAL, 7, "no origin"),
    ],
    ids=str,
)
def test_nothing_else_withdraws_it(config: Config, value: object, offset: int, origin: str) -> None:
    """Also not the withdrawal of one before, which was passed on twice."""
    message = behind(config, value, offset, origin)
    assert not waiting(config).active.is_withdrawn_by(message)
    assert waiting(config).active.is_withdrawn_by(behind(config, WITHDRAWAL))


def results(config: Config, withdrawn_at: int) -> tuple[list[Record], list[Record]]:
    """Return what is published with a model that was withdrawn, and without it."""
    plain: list[Any] = linear_records(40)
    values = [*plain]
    values.insert(withdrawn_at, WITHDRAWAL)
    values.insert(10, announcement(SHA256))
    return taken(config, values), taken(config, plain)


@pytest.mark.parametrize("withdrawn_at", [10, 11, 40])
def test_one_that_is_withdrawn_changes_nothing_but_the_notice(
    config: Config, withdrawn_at: int
) -> None:
    records, plain = results(config, withdrawn_at)
    assert of_kind(records, DeadLetter) == []
    [notice] = of_kind(records, Change)
    assert notice.seq == 10
    told, expected = (
        [(p.prediction, p.loss, p.model_version) for p in of_kind(each, Prediction)]
        for each in (records, plain)
    )
    assert told == expected


def test_one_that_is_in_use_stays_and_so_do_all_that_nobody_waits_for(config: Config) -> None:
    ModelFolder(config.model.directory).put(DATA)
    values: list[Any] = linear_records(10)
    values[5:5] = [{"withdraw": "v0"}, announcement(SHA256), WITHDRAWAL, {"withdraw": "v1"}]
    records = taken(config, values)
    assert [(each.offset, each.reason) for each in of_kind(records, DeadLetter)] == [
        (5, "no announcement of model v0 waits: nothing is withdrawn"),
        (7, "model v2 is in use and stays: announce another model instead"),
        (8, "no announcement of model v1 waits: nothing is withdrawn"),
    ]
    assert {each.model_version for each in of_kind(records, Prediction)[5:]} == {"v2"}


def test_a_version_can_be_announced_again_after_it_was_withdrawn(config: Config) -> None:
    other = ModelFolder(config.model.directory).put(pickle.dumps(Constant(5.0)))
    values: list[Any] = linear_records(9)
    values[6:6] = [announcement(other)]
    values[3:3] = [announcement(SHA256), WITHDRAWAL]
    records = taken(config, values)
    assert [each.detail for each in of_kind(records, Change)] == [
        "model v2 was withdrawn before it took over: v1 stays",
        "model v2 takes over from v1",
    ]
    assert [each.model_version for each in of_kind(records, Prediction)] == ["v1"] * 6 + ["v2"] * 3


def test_every_holds_although_the_model_beside_it_was_withdrawn(config: Config) -> None:
    stage = stage_of(config)
    run(stage, messages(config, [{"every": 4, **announcement(SHA256)}]))
    assert stage.every == 4


def test_a_withdrawal_comes_again_and_changes_nothing(config: Config) -> None:
    """As after a crash of what joins."""
    stage = waiting(config)
    message = behind(config, WITHDRAWAL)
    assert len(settle_model(stage, [message])) == 1
    assert run(stage, [message, message]) == []


def test_what_is_remembered_is_bounded(config: Config) -> None:
    stage = stage_of(config)
    log = list(announced(config, 300))
    for announcing, withdrawing in log:
        run(stage, [announcing])
        assert len(settle_model(stage, [withdrawing])) == 1
    for _, withdrawing in log[:-50]:
        run(stage, [withdrawing])
    small = len(pickle.dumps(stage))
    for _, withdrawing in log[-50:]:
        assert run(stage, [withdrawing]) == []
    assert len(pickle.dumps(stage)) < small
    only_letter(run(stage, [behind(config, orjson.loads(log[0][1].value or b""), 600)]))


def announced(config: Config, n: int) -> Iterator[tuple[Message, Message]]:
    """Yield announcements of models that are not there, and their withdrawals, which come last."""
    for i in range(n):
        version = f"{i:03}" + "v" * 190
        announcing = behind(config, announcement(SHA256, version), i)
        yield announcing, behind(config, {"withdraw": version}, n + i)

"""An announced model is awaited, then takes over at its place in the log, or is withdrawn."""

import hashlib
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from river.naive_bayes import GaussianNB

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.local import LocalPipeline, replayed_reasons
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation, Prediction, Record
from fluxplain.stages import Message, ModelStage
from fluxplain.stages.active_model import FoundModel, settle_model
from tests.kit.announced import STREAM, announcement, config_of, messages, taken
from tests.kit.stages import only_letter
from tests.kit.support import (
    Additive,
    Constant,
    encoded,
    linear_records,
    of_kind,
    pickled,
    run,
)

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


def copied(stage: ModelStage, config: Config) -> ModelStage:
    copy = pickled(stage)
    copy.active.models = ModelFolder(config.model.directory)
    return copy


def waiting(config: Config) -> ModelStage:
    """Return a stage that was given an announcement, and copied as by a new start."""
    stage = stage_of(config)
    assert run(stage, messages(config, [announcement(SHA256)])) == []
    return copied(stage, config)


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


@pytest.mark.parametrize("withdrawn_at", [10, 11, 40])
def test_one_that_is_withdrawn_changes_nothing_but_the_notice(
    config: Config, withdrawn_at: int
) -> None:
    plain: list[Any] = linear_records(40)
    values = [*plain]
    values.insert(withdrawn_at, WITHDRAWAL)
    values.insert(10, announcement(SHA256))
    records = taken(config, values)
    assert of_kind(records, DeadLetter) == []
    [notice] = of_kind(records, Change)
    assert notice.seq == 10
    told, expected = (
        [(p.prediction, p.loss, p.model_version) for p in of_kind(each, Prediction)]
        for each in (records, taken(config, plain))
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


# takes over


class Raising:
    """A model that raises what nobody expects when it is looked at."""

    def predict_one(self, x: object) -> float:
        return 0.0

    @property
    def learn_one(self) -> object:
        raise KeyError("no such key")


def replaced(folder: Path, model: object, at: int, version: str = "v2") -> list[Record]:
    """Return what is published of a stream in which another model, or its bytes, is announced."""
    data = model if isinstance(model, bytes) else pickle.dumps(model)
    values: list[Any] = linear_records(60)
    values.insert(at, announcement(ModelFolder(folder).put(data), version))
    return taken(config_of(folder), values)


def test_another_model_takes_over_at_its_offset_and_all_records_name_it(tmp_path: Path) -> None:
    records = replaced(tmp_path, Constant(7.0), at=40)
    predictions = of_kind(records, Prediction)
    assert [each.model_version for each in predictions] == ["v1"] * 40 + ["v2"] * 20
    assert {each.prediction for each in predictions[40:]} == {7.0}
    assert {each.prediction for each in predictions[:40]} != {7.0}
    [change] = [each for each in of_kind(records, Change) if each.kind == "model"]
    assert (change.seq, change.model_version) == (40, "v2")
    assert change.detail == "model v2 takes over from v1"
    for each in of_kind(records, Explanation):
        assert each.model_version == ("v1" if each.seq < 40 else "v2")


def test_a_new_model_resets_the_estimates_and_no_increment_is_lost(tmp_path: Path) -> None:
    records = replaced(tmp_path, Constant(7.0), at=41)
    of_a = [e for e in of_kind(records, Explanation) if (e.feature, e.method) == ("a", "ipfi")]
    seqs = [seq for each in of_a for seq in each.seqs]
    assert seqs == [*range(seqs[0], 41), *range(42, 42 + len([s for s in seqs if s > 41]))]
    assert all(e.previous_seq == before.seq for before, e in pairwise(of_a))
    first = next(e for e in of_a if e.model_version == "v2")
    last = of_a[-1]
    # a model that says the same of everything relies on nothing, and nothing is left of the other
    assert first.updates == sum(seq > 41 for seq in first.seqs)
    assert last.value == 0.0
    assert last.std_error in {0.0, None}, "0 once it is known"


def test_the_same_log_gives_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    sha256 = ModelFolder(tmp_path).put(pickle.dumps(Additive()))
    config = config_of(tmp_path)
    values: list[Any] = linear_records(30)
    values.insert(15, announcement(sha256))
    whole = run_all(config, messages(config, values), copies=False)
    assert encoded(run_all(config, messages(config, values), copies=True)) == encoded(whole)
    assert of_kind(whole, Evaluation)


def run_all(config: Config, log: list[Message], *, copies: bool) -> list[Record]:
    stage, records = stage_of(config), list[Record]()
    for each in log:
        stage = copied(stage, config) if copies else stage
        records += run(stage, [each])
        stage = copied(stage, config) if copies else stage
        records += settle_model(stage)
    return records


def test_a_model_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """Continuing with the old one would contradict the announcement."""
    config = config_of(tmp_path)
    data = pickle.dumps(Constant(7.0))
    sha256 = ModelFolder(tmp_path / "elsewhere").put(data)
    message, behind = messages(config, [announcement(sha256), *linear_records(1)])
    pipeline = LocalPipeline(config)
    absent = r"model v2 was announced, but .*\.pickle is not there \(No such file or directory\)"
    with pytest.raises(NotYetError, match=absent):
        pipeline.take(message)
    ModelFolder(tmp_path).path(sha256).write_bytes(data[:-1])
    for _ in range(2):
        with pytest.raises(NotYetError, match="is not the announced model"):
            pipeline.take(behind)
    ModelFolder(tmp_path).put(data)
    change, prediction = pipeline.take(behind)
    assert isinstance(change, Change)
    assert isinstance(prediction, Prediction)
    assert (change.seq, prediction.model_version) == (0, "v2")


def test_a_replay_goes_on_with_the_old_model_if_the_missing_one_was_withdrawn_later(
    config: Config,
) -> None:
    records = linear_records(130)
    values = [*records[:120], announcement(SHA256), *records[120:], WITHDRAWAL]
    log, seq = messages(config, values), 125
    with pytest.raises(NotYetError, match="withdraw it"):
        replayed_reasons(config, 0, seq, log)
    again = replayed_reasons(config, 0, seq, log, ahead=lambda offset: log[offset:])
    assert [each.seq for each in again.reasons] == [seq]
    assert again.prediction is not None
    assert again.prediction.model_version == "v1"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no pickle", "it cannot be unpickled"),
        (pickle.dumps([1, 2]), "it is a list, which has no predict_one"),
        (pickle.dumps(None), "it is a NoneType, which has no predict_one"),
        (pickle.dumps(GaussianNB()), "it is a classifier, but label.type is 'number'"),
        (pickle.dumps(Raising()), "'no such key'"),
    ],
)
def test_what_can_never_take_over_is_a_dead_letter_and_the_old_one_stays(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    records = replaced(tmp_path, data, at=5)
    [letter] = of_kind(records, DeadLetter)
    assert letter.reason.startswith(f"model v2 cannot take over: {reason}")
    assert {each.model_version for each in of_kind(records, Prediction)} == {"v1"}


NEW = {"version": "v2", "sha256": "a" * 64}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *(
            ({"model": {**NEW, "sha256": digest}}, "model.sha256 must be 64 hexadecimal")
            for digest in ("../../etc/passwd", "A" * 64, "a" * 64 + "\n", "٣" * 64)
        ),
        ({"model": {**NEW, "version": "v" * 201}}, "model.version has 201 characters"),
        ({"model": {**NEW, "version": ""}}, "model.version has 0 characters"),
        ({"model": {**NEW, "version": "v\nERROR"}}, "model.version must be printable, not"),
        ({"model": {"version": "v2"}}, "model.sha256: Field required"),
        ({"model": None}, "there is none of every, model and withdraw in it"),
        ({"every": 0}, "every must be from 1 to 10,000, not an integer 0"),
        ({"every": 10_001}, "every must be from 1 to 10,000, not an integer 10001"),
        ({"every": "two"}, "every: Input should be a valid integer"),
    ],
)
def test_a_control_record_that_cannot_be_used_is_a_dead_letter(
    tmp_path: Path, value: object, reason: str
) -> None:
    config = config_of(tmp_path)
    letter = only_letter(run(ModelStage(config, STREAM), messages(config, [value])))
    assert (letter.topic, letter.offset) == ("fluxplain.control", 0)
    assert letter.reason.startswith(reason)


def test_where_models_are_is_no_part_of_the_state(tmp_path: Path) -> None:
    stage = stage_of(config_of(tmp_path))
    assert pickled(stage).active.models is None
    assert str(tmp_path).encode() not in pickle.dumps(stage)


def test_a_model_of_the_same_name_is_refused(tmp_path: Path) -> None:
    [letter] = of_kind(replaced(tmp_path, Constant(), at=5, version="v1"), DeadLetter)
    assert letter.reason == "model v1 cannot take over: the model in use has that name"


def test_what_isage_compares_with_is_the_mean_of_the_new_model(tmp_path: Path) -> None:
    explained = of_kind(replaced(tmp_path, Constant(7.0), at=40), Explanation)
    new = [each for each in explained if each.method == "isage" and each.model_version == "v2"]
    # a constant adds nothing to its mean; the first record has increments of the model before, too
    told = {seq: of for each in new for seq, of in zip(each.seqs, each.increments, strict=True)}
    assert {of for seq, of in told.items() if seq > 40} == {0.0}


def test_a_model_whose_code_is_not_installed_is_waited_for(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path)
    sha256 = folder.put(
        pickle.dumps(Constant()).replace(b"tests.kit.support", b"tests.kit.nowhere")
    )
    with pytest.raises(
        NotYetError, match="needs code that is not installed here: it cannot be unpickl"
    ):
        folder.get(sha256)

"""A model that takes over from another: from its place on, and told in all that is published."""

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from river.naive_bayes import GaussianNB

from fluxplain.config import Config
from fluxplain.errors import NotYetError
from fluxplain.local import LocalPipeline
from fluxplain.models.model_store import ModelFolder
from fluxplain.schemas import Change, DeadLetter, Evaluation, Explanation, Prediction, Record
from fluxplain.stages import Message, ModelStage
from fluxplain.stages.active_model import settle_model
from tests.kit import support as kit
from tests.kit.announced import STREAM, announcement, config_of, messages, taken
from tests.kit.stages import only_letter


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
    values: list[Any] = kit.linear_records(60)
    values.insert(at, announcement(ModelFolder(folder).put(data), version))
    return taken(config_of(folder), values)


def test_another_model_takes_over_at_its_place_and_everything_says_so(tmp_path: Path) -> None:
    records = replaced(tmp_path, kit.Constant(7.0), at=40)
    predictions = kit.of_kind(records, Prediction)
    assert [each.model_version for each in predictions] == ["v1"] * 40 + ["v2"] * 20
    assert {each.prediction for each in predictions[40:]} == {7.0}
    assert {each.prediction for each in predictions[:40]} != {7.0}
    [change] = [each for each in kit.of_kind(records, Change) if each.kind == "model"]
    assert (change.seq, change.model_version) == (40, "v2")
    assert change.detail == "model v2 takes over from v1"
    for each in kit.of_kind(records, Explanation):
        assert each.model_version == ("v1" if each.seq < 40 else "v2")


def test_estimates_begin_anew_and_no_increment_is_lost(tmp_path: Path) -> None:
    records = replaced(tmp_path, kit.Constant(7.0), at=41)
    of_a = [e for e in kit.of_kind(records, Explanation) if (e.feature, e.method) == ("a", "ipfi")]
    seqs = [seq for each in of_a for seq in each.seqs]
    assert seqs == [*range(seqs[0], 41), *range(42, 42 + len([s for s in seqs if s > 41]))]
    assert all(e.previous_seq == before.seq for before, e in pairwise(of_a))
    first = next(e for e in of_a if e.model_version == "v2")
    last = of_a[-1]
    # a model that says the same of everything relies on nothing, and nothing is left of the other
    assert first.updates == sum(seq > 41 for seq in first.seqs)
    assert (last.value, last.std_error) == (0.0, 0.0)


def test_the_same_log_gives_the_same_whenever_it_is_read(tmp_path: Path) -> None:
    sha256 = ModelFolder(tmp_path).put(pickle.dumps(kit.Additive()))
    config = config_of(tmp_path)
    values: list[Any] = kit.linear_records(30)
    values.insert(15, announcement(sha256))
    whole = run_all(config, messages(config, values), copies=False)
    assert kit.encoded(run_all(config, messages(config, values), copies=True)) == kit.encoded(whole)
    assert kit.of_kind(whole, Evaluation)


def run_all(config: Config, log: list[Message], *, copies: bool) -> list[Record]:
    stage, records = ModelStage(config, STREAM), []
    for each in log:
        stage = kit.pickled(stage) if copies else stage
        stage.active.models = ModelFolder(config.model.directory)
        records += kit.run(stage, [each])
        stage = kit.pickled(stage) if copies else stage
        stage.active.models = ModelFolder(config.model.directory)
        records += settle_model(stage)
    return records


def test_a_model_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    """To go on with the old one would contradict what was announced."""
    config = config_of(tmp_path)
    data = pickle.dumps(kit.Constant(7.0))
    sha256 = ModelFolder(tmp_path / "elsewhere").put(data)
    message, behind = messages(config, [announcement(sha256), *kit.linear_records(1)])
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
def test_what_can_never_take_over_is_a_dead_letter_and_the_old_one_goes_on(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    records = replaced(tmp_path, data, at=5)
    [letter] = kit.of_kind(records, DeadLetter)
    assert letter.reason.startswith(f"model v2 cannot take over: {reason}")
    assert {each.model_version for each in kit.of_kind(records, Prediction)} == {"v1"}


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
    letter = only_letter(kit.run(ModelStage(config, STREAM), messages(config, [value])))
    assert (letter.topic, letter.offset) == ("fluxplain.control", 0)
    assert letter.reason.startswith(reason)


def test_where_models_are_is_no_part_of_the_state(tmp_path: Path) -> None:
    stage = ModelStage(config_of(tmp_path), STREAM)
    stage.active.models = ModelFolder(tmp_path)
    assert kit.pickled(stage).active.models is None
    assert str(tmp_path).encode() not in pickle.dumps(stage)


def test_a_model_of_the_same_name_is_refused(tmp_path: Path) -> None:
    [letter] = kit.of_kind(replaced(tmp_path, kit.Constant(), at=5, version="v1"), DeadLetter)
    assert letter.reason == "model v1 cannot take over: the model in use has that name"


def test_what_isage_compares_with_is_the_mean_of_the_new_model(tmp_path: Path) -> None:
    explained = kit.of_kind(replaced(tmp_path, kit.Constant(7.0), at=40), Explanation)
    new = [each for each in explained if each.method == "isage" and each.model_version == "v2"]
    # a constant adds nothing to its mean; the first record has increments of the model before, too
    told = {seq: of for each in new for seq, of in zip(each.seqs, each.increments, strict=True)}
    assert {of for seq, of in told.items() if seq > 40} == {0.0}


def test_a_model_whose_code_is_not_installed_is_waited_for(tmp_path: Path) -> None:
    folder = ModelFolder(tmp_path)
    sha256 = folder.put(
        pickle.dumps(kit.Constant()).replace(b"tests.kit.support", b"tests.kit.nowhere")
    )
    with pytest.raises(
        NotYetError, match="needs code that is not installed here: it cannot be unpickl"
    ):
        folder.get(sha256)

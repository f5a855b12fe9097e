"""A model that was pickled is where a pipeline starts."""

import pickle
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Prediction
from tests.kit.support import Additive, linear_config, linear_records, of_kind


def config_of(file: Path, **model: Any) -> Config:
    settings = linear_config().model_dump(mode="json")
    settings["model"] = {"file": str(file), **model}
    return Config(**settings)


def pickled_model(path: Path, records: list[dict[str, Any]]) -> Path:
    model = Additive()
    for record in records:
        model.learn_one(record["x"], record["y"])
    path.write_bytes(pickle.dumps(model))
    return path


def test_it_goes_on_from_what_was_learned(tmp_path: Path) -> None:
    records = linear_records(60)
    config = config_of(pickled_model(tmp_path / "model.pickle", records[:40]))
    check_references(config)
    published = LocalPipeline(config).run(map(orjson.dumps, records[40:]))
    whole = LocalPipeline(linear_config()).run(map(orjson.dumps, records))
    expected = [each.prediction for each in of_kind(whole, Prediction)][40:]
    assert [each.prediction for each in of_kind(published, Prediction)] == expected


def test_what_is_in_the_file_is_in_the_fingerprint_and_where_it_is_is_not(tmp_path: Path) -> None:
    one = config_of(pickled_model(tmp_path / "one.pickle", linear_records(10)))
    same = config_of(pickled_model(tmp_path / "same.pickle", linear_records(10)))
    other = config_of(pickled_model(tmp_path / "other.pickle", linear_records(11)))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"no pickle", "it cannot be unpickled"),
        (pickle.dumps([1]), "gives a list, which has no predict_one"),
    ],
)
def test_what_is_no_model_is_told(tmp_path: Path, data: bytes | None, reason: str) -> None:
    path = tmp_path / "model.pickle"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError, match=reason) as told:
        check_references(config_of(path))
    assert f"model.file = {path}" in str(told.value)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({}, "factory and file are both missing: give one of them"),
        ({"factory": "a:B", "file": "m.pickle"}, "factory and file are both set"),
        ({"file": "m.pickle", "params": {"n": 1}}, "params are for a factory, but file is set"),
    ],
)
def test_it_comes_from_one_place(model: dict[str, Any], reason: str) -> None:
    settings = linear_config().model_dump(mode="json")
    with pytest.raises(ValidationError, match=reason):
        Config(**{**settings, "model": model})

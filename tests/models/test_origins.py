"""Where models come from: factories, their parts, and files; and models that are only explained."""

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.local import LocalPipeline
from fluxplain.models import from_river
from fluxplain.models.factories import make
from fluxplain.schemas import Evaluation, Prediction
from fluxplain.stages import ModelStage
from tests.kit.support import (
    LINEAR_FEATURES,
    Additive,
    linear_config,
    linear_records,
    make_config,
    message,
    of_kind,
    run,
)


class Curious:
    """Takes what the pipeline knows."""

    def __init__(
        self, seed: int, features: dict[str, str], label: str, learn: bool, note: str = ""
    ) -> None:
        self.given = (seed, features, label, learn, note)

    def predict_proba_one(self, x: object) -> dict[int, float]:
        return {0: 1.0}

    def learn_one(self, x: object, y: object) -> None:
        pass


def test_a_factory_gets_what_the_pipeline_knows() -> None:
    factory = "tests.models.test_origins:Curious"
    config = make_config(seed=3, model={"factory": factory, "params": {"note": "mine"}})
    check_references(config)
    given = (3, {f: str(kind) for f, kind in config.features.items()}, "integer", True, "mine")
    assert config.make_model().given == given
    params = {"features": {"a": "numeric"}, "label": "string", "seed": 1}
    chosen = make_config(seed=3, model={"factory": factory, "params": params}).make_model()
    assert chosen.given == (1, {"a": "numeric"}, "string", True, "")


def test_tables_within_tables_are_made_and_seeded() -> None:
    forest = "river.forest:ARFClassifier"
    voting = make(
        {
            "factory": "river.ensemble:VotingClassifier",
            "models": [{"factory": forest, "seed": 5}, {"factory": forest}],
        },
        seed=9,
    )
    assert [model.seed for model in voting.models] == [5, 9]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "at least one"),
        ("river.forest:ARFClassifier", "must be a list"),
        (["river.forest:Forest"], "river.forest has no Forest"),
        (["sklearn.linear_model:SGDClassifier"], "SGDClassifier.*not a River estimator"),
        ([{"factory": "river.forest:ARFClassifier", "trees": 3}], "'trees': 3.*TypeError"),
        (["not a reference"], "'not a reference', but must be 'module:name'"),
    ],
)
def test_steps_that_cannot_be_made_are_told(steps: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_river(steps)


@pytest.mark.parametrize(
    ("factory", "library", "remedy"),
    [
        ("from_sklearn", "sklearn", r"scikit-learn is not installed: pip install 'fluxplain\[sk"),
        ("from_torch", "torch", r"torch is not installed: pip install 'fluxplain\[torch\]'"),
    ],
)
def test_a_library_that_is_missing_is_told(
    factory: str, library: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # an import fails
    monkeypatch.setattr("fluxplain.models.torch_models.torch", None)
    params = {"estimator": "sklearn.linear_model:SGDClassifier"} if library == "sklearn" else {}
    config = make_config(model={"factory": f"fluxplain.models:{factory}", "params": params})
    with pytest.raises(ConfigError, match=remedy):
        check_references(config)


class Forgetful(Curious):
    """Draws random numbers without a seed."""

    def __init__(self) -> None:
        import random  # noqa: PLC0415

        self.rng = random.Random()


def test_a_model_whose_random_numbers_have_no_seed_is_refused() -> None:
    factory = "tests.models.test_origins:Forgetful"
    with pytest.raises(ConfigError, match=r"Forgetful.*draws other random numbers each time.*seed"):
        check_references(make_config(model={"factory": factory, "params": {}}))


class Fixed:
    """Knows what it knows."""

    def predict_one(self, x: Mapping[str, Any]) -> float:
        return 2.0 * float(x["a"])


RECORDS = [message(i, record) for i, record in enumerate(linear_records(30))]


def frozen(factory: str) -> Config:
    return linear_config(model={"factory": factory, "learn": False})


def test_it_never_learns_and_is_explained_all_the_same() -> None:
    stage = ModelStage(frozen("tests.kit.support:Additive"), "fluxplain.features-0")
    records = run(stage, RECORDS)
    assert stage.model.offsets == {}
    predictions = of_kind(records, Prediction)
    assert len(predictions) == len(RECORDS)
    assert all(record.loss is not None for record in predictions)
    last = of_kind(records, Evaluation)[-len(LINEAR_FEATURES) :]
    assert all(blocks[0] for each in last for blocks in each.outputs.values())


def test_it_is_made_and_asked_without_a_method_to_learn() -> None:
    config = frozen("tests.models.test_origins:Fixed")
    check_references(config)
    assert len(of_kind(run(ModelStage(config, "s-0"), RECORDS), Prediction)) == len(RECORDS)
    with pytest.raises(ConfigError, match=r"no learn_one.*model.learn = false"):
        check_references(linear_config(model={"factory": "tests.models.test_origins:Fixed"}))


def test_whether_it_learns_is_part_of_the_fingerprint() -> None:
    learns = linear_config(model={"factory": "tests.kit.support:Additive", "learn": True})
    assert learns.fingerprint() == linear_config().fingerprint()
    assert frozen("tests.kit.support:Additive").fingerprint() != learns.fingerprint()


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


def test_a_file_takes_no_params(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="params are for a factory, but file is set"):
        config_of(tmp_path / "m.pickle", params={"n": 1})

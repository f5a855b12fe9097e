"""A pipeline runs its forest as arrays unless told otherwise, and publishes the same bits."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from river import forest, preprocessing, tree

from fluxplain.forest import ARFClassifier, HoeffdingTreeClassifier, as_arrays, as_river
from fluxplain.forest.compiled_model import CompiledModel
from fluxplain.stages import ModelStage
from tests.forest.streams import STREAMS
from tests.kit.stages import local
from tests.kit.support import STREAM, encoded, make_config, messages_of, run

MODELS: dict[str, dict[str, Any]] = {
    "forest": {"factory": "river.forest:ARFClassifier", "params": {"n_models": 3}},
    "tree": {"factory": "river.tree:HoeffdingTreeClassifier", "params": {"grace_period": 30}},
    "bagging": {
        "factory": "fluxplain.models:from_river",
        "params": {
            "steps": [
                {
                    "factory": "river.ensemble:LeveragingBaggingClassifier",
                    "model": {"factory": "river.tree:HoeffdingTreeClassifier"},
                    "n_models": 3,
                    "seed": 1,
                }
            ]
        },
    },
    "scaled": {
        "factory": "fluxplain.models:from_river",
        "params": {"steps": ["river.preprocessing:MinMaxScaler", "river.forest:ARFClassifier"]},
    },
}

NUMBERS = {"features": dict.fromkeys(("salary", "age", "loan", "elevel"), "numeric")}


def values(records: int, *, names: Any) -> list[dict[str, Any]]:
    stream = STREAMS["categories" if "car" in names else "numbers"](records)
    return [{"x": {name: x[name] for name in names}, "y": y} for x, y in stream]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each != "forest")) for each in MODELS]
)
def test_the_same_bits_are_published(name: str) -> None:
    own = NUMBERS if name == "scaled" else {}
    config = make_config(model=MODELS[name], **own)
    rivers = {**MODELS[name], "compiled": False, "evaluator": "generic"}
    records = values(200, names=config.features)
    published = encoded(local(config, records))
    assert published == encoded(local(make_config(model=rivers, **own), records))


def test_a_checkpoint_goes_on_as_if_it_had_never_stopped() -> None:
    config = make_config(model=MODELS["forest"])
    messages = messages_of(values(300, names=config.features))
    whole = encoded(run(ModelStage(config, STREAM), messages))
    stage = ModelStage(config, STREAM)
    parts = encoded(run(stage, messages[:140]))
    stage = pickle.loads(pickle.dumps(stage))
    assert isinstance(stage.active.model, CompiledModel)
    assert parts + encoded(run(stage, messages[140:])) == whole


@pytest.mark.parametrize("compiled", [True, False])
def test_a_file_of_rivers_objects_becomes_arrays_if_they_are_wanted(
    compiled: bool, tmp_path: Path
) -> None:
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(forest.ARFClassifier(n_models=3, seed=1)))
    config = make_config(model={"factory": None, "params": {}, "file": path, "compiled": compiled})
    assert isinstance(config.make_model(), ARFClassifier) == compiled


def test_the_last_step_is_converted_and_the_model_stays_as_it_is() -> None:
    scaler, last = preprocessing.StandardScaler(), tree.HoeffdingTreeClassifier()
    model = scaler | last
    arrays = as_arrays(model)
    assert [*model.steps.values()] == [scaler, last]
    assert [*map(type, arrays.steps.values())] == [type(scaler), HoeffdingTreeClassifier]
    assert [*map(type, as_river(arrays).steps.values())] == [type(scaler), type(last)]


@pytest.mark.parametrize(
    "model",
    [
        tree.HoeffdingTreeClassifier(splitter=tree.splitter.HistogramSplitter()),
        tree.ExtremelyFastDecisionTreeClassifier(),
        preprocessing.StandardScaler(),
    ],
)
def test_a_model_without_arrays_stays_rivers(model: Any) -> None:
    assert as_arrays(model) is model

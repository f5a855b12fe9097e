"""Models that are only explained."""

from collections.abc import Mapping
from typing import Any

import pytest

from fluxplain.config import Config, ConfigError, check_references
from fluxplain.schemas import Evaluation, Prediction
from fluxplain.stages import ModelStage
from tests.kit.support import (
    LINEAR_FEATURES,
    linear_config,
    linear_records,
    message,
    of_kind,
    run,
)


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
    config = frozen("tests.models.test_frozen:Fixed")
    check_references(config)
    assert len(of_kind(run(ModelStage(config, "s-0"), RECORDS), Prediction)) == len(RECORDS)
    with pytest.raises(ConfigError, match=r"no learn_one.*model.learn = false"):
        check_references(linear_config(model={"factory": "tests.models.test_frozen:Fixed"}))


def test_whether_it_learns_is_part_of_the_fingerprint() -> None:
    learns = linear_config(model={"factory": "tests.kit.support:Additive", "learn": True})
    assert learns.fingerprint() == linear_config().fingerprint()
    assert frozen("tests.kit.support:Additive").fingerprint() != learns.fingerprint()

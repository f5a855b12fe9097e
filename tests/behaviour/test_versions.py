"""A model is taken out of a pipeline that runs, and another one is announced to it."""

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from river.tree import HoeffdingTreeClassifier

from fluxplain.config import Config
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Explanation
from tests.kit.kafka_pipeline import (
    JOINED,
    Start,
    assert_same,
    fluxplain,
    records_of,
    reference_of,
)
from tests.kit.settings import SETTINGS
from tests.kit.streams import observations
from tests.kit.support import of_kind


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """A topic of control, and a name for the first model."""
    own = {"version": "v1", "directory": str(tmp_path / "models")}
    return {"model": {**SETTINGS["model"], **own}, "control": {"topic": True}}


@pytest.mark.embedded
def test_a_model_is_exported_and_another_one_takes_over(
    start: Start, config_path: Path, tmp_path: Path
) -> None:
    values = observations(300)
    old, new = tmp_path / "old.pickle", tmp_path / "new.pickle"
    explanations = tmp_path / "explanations.state"
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:150])
        pipeline.wait_until_idle()
        files = ("--out", str(old), "--explanations", str(explanations))
        words = ("model", "export", *files)
        exported = fluxplain(config_path, *words, **pipeline.environment)
        assert exported.returncode == 0, exported.stderr
        assert "before offset 150" in exported.stdout
        model = HoeffdingTreeClassifier()
        for value in values[:150]:
            record = orjson.loads(value)
            model.learn_one(record["x"], record["y"])
        new.write_bytes(pickle.dumps(model))
        announced = ("model", "announce", str(new), "--version", "v2", "--partition", "0")
        told = fluxplain(config_path, *announced, **pipeline.environment)
        assert told.returncode == 0, told.stderr
        pipeline.wait_until_idle()
        pipeline.send(values[150:])
        pipeline.wait_until_idle()
        joined = pipeline.joined(0)
    assert_same(pipeline.published, reference_of(pipeline.config, joined))
    predictions = records_of(pipeline.published, "predictions")
    assert [each["model_version"] for each in predictions] == ["v1"] * 150 + ["v2"] * 150
    settings = pipeline.config.model_dump(mode="json")
    whole = increments_of(Config(**settings), values)
    settings["model"] |= {"factory": None, "params": {}, "file": str(old)}
    settings["explain"]["file"] = str(explanations)
    # from what was exported it goes on as if it had never stopped
    went_on = increments_of(Config(**settings), values[150:])
    for name, increments in went_on.items():
        before = {seq - 150: increment for seq, increment in whole[name].items() if seq >= 150}
        both = before.keys() & increments.keys()  # some of the newest wait for the next record
        assert len(both) > 140
        assert {seq: before[seq] for seq in both} == {seq: increments[seq] for seq in both}


def increments_of(
    config: Config, values: Sequence[bytes]
) -> dict[tuple[str, str], dict[int, float]]:
    """Return (feature, method) → seq → increment."""
    told: dict[tuple[str, str], dict[int, float]] = {}
    for each in of_kind(LocalPipeline(config).run(values), Explanation):
        of = told.setdefault((each.feature, each.method), {})
        of.update(zip(each.seqs, each.increments, strict=True))
    return told


@pytest.mark.embedded
def test_mistakes_are_told(start: Start, config_path: Path, tmp_path: Path) -> None:
    (tmp_path / "list.pickle").write_bytes(pickle.dumps([1]))
    mistakes = {
        ("export", "--out", str(tmp_path / "m.pickle")): "has no checkpoint",
        ("announce", "no.pickle", "--version", "v2"): "cannot read no.pickle",
        ("announce", "list.pickle", "--version", "v2"): "holds no model that can take over: "
        "it is a list, which has no predict_one",
    }
    with start(roles=()) as pipeline:
        for words, reason in mistakes.items():
            refused = fluxplain(config_path, "model", *words, **pipeline.environment)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert reason in refused.stderr
            assert "Traceback" not in refused.stderr

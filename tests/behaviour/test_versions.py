"""A model is taken out of a pipeline that runs, and another one is announced to it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from river.tree import HoeffdingTreeClassifier

from pipeline.parts import Role
from pipeline.supervisor import ROLES
from tests.behaviour.conftest import SETTINGS, topics, write_config
from tests.behaviour.kafka_pipeline import KafkaPipeline, assert_same, reference_of
from tests.behaviour.test_pipeline import Start, observations

JOINED: tuple[Role, ...] = ("join", *ROLES)


@pytest.fixture
def config_path(tmp_path: Path, prefix: str) -> Path:
    """Settings with a topic of control, and a name for the first model."""
    settings = {
        **SETTINGS,
        "model": {**SETTINGS["model"], "version": "v1", "directory": str(tmp_path / "models")},
        "control": {"topic": True},
        "topics": topics(prefix),
    }
    return write_config(tmp_path / "pipeline.toml", settings)


def fluxplain(
    pipeline: KafkaPipeline, config: Path, *words: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "model", *words, "--config", str(config)],
        env={**os.environ, **pipeline.environment, "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_model_is_exported_and_another_one_takes_over(
    start: Start, config_path: Path, tmp_path: Path
) -> None:
    values = observations(300)
    old, new = tmp_path / "old.pickle", tmp_path / "new.pickle"
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:150])
        pipeline.wait_until_idle()
        exported = fluxplain(pipeline, config_path, "export", "--out", str(old))
        assert exported.returncode == 0, exported.stderr
        assert "before offset 150" in exported.stdout
        model = HoeffdingTreeClassifier()
        for value in values[:150]:
            record = orjson.loads(value)
            model.learn_one(record["x"], record["y"])
        new.write_bytes(pickle.dumps(model))
        words = ("announce", str(new), "--version", "v2", "--partition", "0")
        told = fluxplain(pipeline, config_path, *words)
        assert told.returncode == 0, told.stderr
        pipeline.wait_until_idle()
        pipeline.send(values[150:])
        pipeline.wait_until_idle()
        joined = pipeline.joined(0)
    assert_same(pipeline.published, reference_of(pipeline.config, joined))
    predictions = sorted(
        (
            orjson.loads(value)
            for k, v in pipeline.published.items()
            if k[0] == "predictions"
            for value in v
        ),
        key=lambda each: int(each["seq"]),
    )
    versions = [each["model_version"] for each in predictions]
    assert versions == ["v1"] * 150 + ["v2"] * 150
    learned = pickle.loads(old.read_bytes())
    x = orjson.loads(values[150])["x"]
    assert set(learned.predict_proba_one(x)) <= {0, 1}
    assert type(learned).__name__ == "ARFClassifier"


def test_mistakes_are_told(start: Start, config_path: Path, tmp_path: Path) -> None:
    with start(roles=()) as pipeline:
        nothing = fluxplain(pipeline, config_path, "export", "--out", str(tmp_path / "m.pickle"))
        assert (nothing.returncode, nothing.stdout) == (2, "")
        assert "has no checkpoint" in nothing.stderr
        missing = fluxplain(pipeline, config_path, "announce", "no.pickle", "--version", "v2")
        assert missing.returncode == 2
        assert "cannot read no.pickle" in missing.stderr
        (tmp_path / "list.pickle").write_bytes(pickle.dumps([1]))
        wrong = fluxplain(
            pipeline, config_path, "announce", str(tmp_path / "list.pickle"), "--version", "v2"
        )
        assert (
            "is no model that can take over: it is a list, which has no predict_one" in wrong.stderr
        )
        for each in (nothing, missing, wrong):
            assert "Traceback" not in each.stderr

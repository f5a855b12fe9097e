"""A model is taken out of a pipeline that runs, and another one is announced to it."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from river.tree import HoeffdingTreeClassifier

from fluxplain.cli.supervisor import ROLES
from fluxplain.config import Config
from fluxplain.config.replica import Role
from fluxplain.local import LocalPipeline
from fluxplain.schemas import Explanation
from tests.kit.kafka_pipeline import Start, assert_same, fluxplain, reference_of
from tests.kit.settings import SETTINGS, topics, write_config
from tests.kit.streams import observations
from tests.kit.support import of_kind

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
        exported = fluxplain(pipeline, config_path, "export", *files)
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
            "holds no model that can take over: it is a list, which has no predict_one"
            in wrong.stderr
        )
        for each in (nothing, missing, wrong):
            assert "Traceback" not in each.stderr

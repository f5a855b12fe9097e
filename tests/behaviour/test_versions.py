"""Another model or time budget takes effect at the same place for every later start."""

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
from tests.kit.kafka_pipeline import JOINED, Start
from tests.kit.settings import SETTINGS, Configure
from tests.kit.streams import observations
from tests.kit.support import of_kind


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """A topic of control, and a name for the first model."""
    own = {"version": "v1", "directory": str(tmp_path / "models")}
    return {"model": {**SETTINGS["model"], **own}, "control": {"topic": True}}


@pytest.mark.embedded
@pytest.mark.quick
def test_a_model_is_exported_and_another_one_takes_over(start: Start, tmp_path: Path) -> None:
    values = observations(200)
    old, new = tmp_path / "old.pickle", tmp_path / "new.pickle"
    explanations = tmp_path / "explanations.state"
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:100])
        pipeline.wait_until_idle()
        files = ("--out", str(old), "--explanations", str(explanations))
        exported = pipeline.run("model", "export", *files)
        assert exported.returncode == 0, exported.stderr
        assert "before offset 100" in exported.stdout
        model = HoeffdingTreeClassifier()
        for value in values[:100]:
            record = orjson.loads(value)
            model.learn_one(record["x"], record["y"])
        new.write_bytes(pickle.dumps(model))
        told = pipeline.run("model", "announce", str(new), "--version", "v2", "--partition", "0")
        assert told.returncode == 0, told.stderr
        pipeline.wait_until_idle()
        pipeline.send(values[100:])
        pipeline.finish_joined()
    versions = [each["model_version"] for each in pipeline.records("predictions")]
    assert versions == ["v1"] * 100 + ["v2"] * 100
    settings = pipeline.config.model_dump(mode="json")
    whole = increments_of(Config(**settings), values)
    settings["model"] |= {"factory": None, "params": {}, "file": str(old)}
    settings["explain"]["file"] = str(explanations)
    # from what was exported it goes on as if it had never stopped
    went_on = increments_of(Config(**settings), values[100:])
    for name, increments in went_on.items():
        before = {seq - 100: increment for seq, increment in whole[name].items() if seq >= 100}
        both = before.keys() & increments.keys()  # some of the newest wait for the next record
        assert len(both) > 90
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
def test_a_budget_that_nothing_can_keep_makes_every_later_start_explain_less_at_the_same_place(
    start: Start, configure: Configure
) -> None:
    configure(explain={**SETTINGS["explain"], "budget_ms": 0.001})
    values = observations(900)
    with start(roles=JOINED) as pipeline:
        pipeline.send(values[:300])
        pipeline.wait_until_idle()
        pipeline.kill("model")
        pipeline.kill("join")
        pipeline.send(values[300:])
        joined = pipeline.finish_joined()
    announced = [orjson.loads(m.value or b"") for m in joined if "control" in m.origin[0]]
    assert announced[0] == {"every": 2, "model": None, "withdraw": None}
    assert max(each["skipped"] for each in pipeline.records("explanations")) > 100


@pytest.mark.embedded
def test_mistakes_are_told(start: Start, tmp_path: Path) -> None:
    (tmp_path / "list.pickle").write_bytes(pickle.dumps([1]))
    mistakes = {
        ("export", "--out", str(tmp_path / "m.pickle")): "has no checkpoint",
        ("announce", "no.pickle", "--version", "v2"): "no.pickle: No such file",
        ("announce", "list.pickle", "--version", "v2"): "holds no model that can take over: "
        "it is a list, which has no predict_one",
    }
    with start(roles=()) as pipeline:
        for words, reason in mistakes.items():
            refused = pipeline.run("model", *words)
            assert (refused.returncode, refused.stdout) == (2, "")
            assert reason in refused.stderr
            assert "Traceback" not in refused.stderr

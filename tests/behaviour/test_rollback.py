"""A model that has learned wrong labels is replaced by that of a checkpoint."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from fluxplain.cli.past_models import NEWEST
from fluxplain.local import LocalModel
from fluxplain.stages import Message
from tests.kit.in_process import Ended, run_with
from tests.kit.kafka_pipeline import JOINED, KafkaPipeline, Start
from tests.kit.settings import SETTINGS, Configure
from tests.kit.streams import observations

pytestmark = pytest.mark.embedded

GOOD, WRONG, BATCH = 200, 300, 100

RUINED = GOOD + WRONG

VALUES = observations(RUINED + BATCH, seed=3)

OTHERS = {
    "FLUXPLAIN_CHECKPOINT__KEY": ("k" * 32, "it is not signed"),
    "FLUXPLAIN_SEED": ("8", "settings differ from those it was written with: seed"),
}
"""Setting of another pipeline → its value, and why our checkpoints are not its own."""


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    own = {"version": "v1", "directory": str(tmp_path / "models"), "shards": 2}
    return {
        "model": {**SETTINGS["model"], **own},
        "control": {"topic": True},
        "checkpoint": {"history": 100},
    }


def wrong(value: bytes) -> bytes:
    """Return an observation with the other label."""
    fields = orjson.loads(value)
    return orjson.dumps({**fields, "y": 1 - fields["y"]})


def send(pipeline: KafkaPipeline, values: Sequence[bytes]) -> None:
    """Send observations in batches, with a checkpoint after each."""
    for begin in range(0, len(values), BATCH):
        pipeline.send(values[begin : begin + BATCH])
        pipeline.wait_until_idle()


def ruin(pipeline: KafkaPipeline) -> None:
    send(pipeline, VALUES[:GOOD])
    send(pipeline, [wrong(value) for value in VALUES[GOOD:RUINED]])


def rows(listed: Ended) -> dict[int, list[str]]:
    """Return the lines of the list, by checkpoint."""
    assert listed.returncode == 0, listed.stderr
    lines = [line.split() for line in listed.stdout.splitlines()[1:]]
    return {int(line[0]): line[1:] for line in lines}


def mean_loss(pipeline: KafkaPipeline, end: int) -> str:
    """Return the mean of the published losses before an offset, as commands write it."""
    losses = [each["loss"] for each in pipeline.records("predictions") if each["seq"] < end]
    newest = [each for each in losses if each is not None][-NEWEST:]
    return f"{sum(newest) / len(newest):.4g}"


def test_a_ruined_model_is_replaced_by_that_of_a_checkpoint(start: Start, tmp_path: Path) -> None:
    one = ("--partition", "0")
    with start(roles=JOINED) as pipeline:
        ruin(pipeline)
        found = rows(pipeline.run("model", "checkpoints", *one))
        assert [*found] == sorted(found, reverse=True)
        (at_good, version, loss), (at_ruined, _, ruined_loss) = found[GOOD], found[RUINED]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]+Z", at_good)
        assert at_good <= at_ruined
        assert version == "v1"
        assert (loss, ruined_loss) == (mean_loss(pipeline, GOOD), mean_loss(pipeline, RUINED))
        assert float(loss) < float(ruined_loss), "which model was still good"

        command = ("model", "rollback", str(GOOD), *one, "--yes")
        told = pipeline.run(*command)
        assert told.returncode == 0, told.stderr
        chosen = f"chosen checkpoint {GOOD}: model v1, last message {at_good}, loss {loss}\n"
        assert chosen in told.stdout
        assert f"newest checkpoint {RUINED}: model v1, last message {at_ruined}" in told.stdout
        send(pipeline, VALUES[RUINED:])
        joined = pipeline.finish_joined()
        assert "the model in use is checkpoint-200 already" in pipeline.run(*command).stderr
    [notice] = pipeline.changes("model")
    assert notice["detail"] == f"model checkpoint-{GOOD} takes over from v1"
    assert published_after(pipeline) == of_the_good_model(pipeline, joined)
    assert pipeline.counts()["dead-letters"] == 0


def published_after(pipeline: KafkaPipeline) -> list[dict[int, float]]:
    """Return the probabilities that the model gave after the rollback."""
    return [
        dict(zip(each["classes"] or (), each["probabilities"] or (), strict=True))
        for each in pipeline.records("predictions")
        if each["model_version"] == f"checkpoint-{GOOD}"
    ]


def of_the_good_model(pipeline: KafkaPipeline, joined: list[Message]) -> list[dict[int, float]]:
    """Return those of a model that has learned the good observations and the last ones only."""
    local = LocalModel(pipeline.config)
    for message in joined[:GOOD]:
        list(local.take(message))
    model, outputs = local.stage.model, []
    for value in map(orjson.loads, VALUES[RUINED:]):
        outputs.append(model.predict_proba_one(value["x"]))
        model.learn_one(value["x"], value["y"])
    return outputs


def test_mistakes_are_told(start: Start, config_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.pickle"
    export = ("export", "--out", str(file), "--checkpoint")
    with start(roles=JOINED) as pipeline:
        ruin(pipeline)
        exported = pipeline.run("model", *export, str(GOOD))
        assert f"of {pipeline.config.topic('observations')}-0, before offset 200" in exported.stdout
        mistakes = {
            ("rollback", "2000", "--partition", "0"): "has no checkpoint 2000, its checkpoints "
            "are: 500, ",
            ("rollback", "200", "--partition", "4"): "--partition is 4, but ",
            ("rollback", "200"): "observations has 4, from 0 on",
            ("rollback", "0", "--partition", "1"): "has no checkpoint 0, its checkpoints are: none",
            ("checkpoints", "--partition", "1"): "has no usable checkpoint: run this where",
            (*export, "2000"): "; did you mean 200?",
            (*export, "200", "--explanations", "e.state"): "older explanations are not kept",
        }
        for words, reason in mistakes.items():
            assert_refused(pipeline.run("model", *words), reason)
        command = ("model", "rollback", "200", "--partition", "0")
        for name, (value, reason) in OTHERS.items():
            environment = {**pipeline.environment, name: value}
            told = run_with(config_path, *command, "--yes", **environment)
            assert_refused(told, f"cannot be used: {reason}")
        asked = pipeline.run(*command)  # nobody answers
        assert asked.returncode == 1
        assert "observations-0 by this one, as checkpoint-200?" in asked.stdout
        assert not (tmp_path / "models").exists()
        pipeline.finish_joined()
    assert pipeline.changes("model") == []


def test_without_control_the_export_of_that_model_is_the_remedy(
    start: Start, configure: Configure
) -> None:
    configure(control={"topic": False})
    refused = start(roles=()).run("model", "rollback", "7")
    assert_refused(refused, "start that pipeline from the files of `fluxplain model export --check")


def assert_refused(told: Ended, reason: str) -> None:
    assert (told.returncode, told.stdout) == (2, "")
    assert reason in told.stderr
    assert "Traceback" not in told.stderr

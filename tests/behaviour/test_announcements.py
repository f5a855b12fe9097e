"""A model is announced that is not there: its partition waits, and nothing else does."""

import hashlib
import os
import pickle
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import psutil
import pytest
from river.tree import HoeffdingTreeClassifier

from fluxplain.models.model_store import ModelFolder
from tests.kit.kafka_pipeline import JOINED, KafkaPipeline, Start, StartFaulty
from tests.kit.preloaded import Command
from tests.kit.settings import SETTINGS, Configure
from tests.kit.streams import observations
from tests.kit.workers import ask, wait_for

BEFORE, BEHIND = 50, 500
"""Observations before the announcement, and behind it."""

STREAMS = {0: observations(BEFORE + BEHIND, seed=3), 1: observations(BEFORE + BEHIND, seed=4)}

DATA = pickle.dumps(HoeffdingTreeClassifier())

SHA256 = hashlib.sha256(DATA).hexdigest()

ANNOUNCED = orjson.dumps({"model": {"version": "v2", "sha256": SHA256}})

WITHDRAWN = orjson.dumps({"withdraw": "v2"})


@pytest.fixture
def models(tmp_path: Path) -> ModelFolder:
    """The folder where the model role looks."""
    return ModelFolder(tmp_path / "models")


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    own = {"version": "v1", "directory": str(tmp_path / "models")}
    return {"model": {**SETTINGS["model"], **own}, "control": {"topic": True}}


def send(pipeline: KafkaPipeline, part: slice) -> None:
    for partition, values in STREAMS.items():
        pipeline.send(values[part], partition)


def announce_what_is_absent(pipeline: KafkaPipeline) -> None:
    """Announce a model in partition 0, between observations of both partitions."""
    send(pipeline, slice(BEFORE))
    pipeline.wait_until_idle()
    pipeline.send([ANNOUNCED], 0, topic="control")
    pipeline.wait_until(lambda: waits(pipeline) > 0)
    send(pipeline, slice(BEFORE, None))
    pipeline.wait_until(lambda: len(versions(pipeline, 1)) == BEFORE + BEHIND)
    assert len(versions(pipeline, 0)) == BEFORE


def waits(pipeline: KafkaPipeline) -> int:
    """Return how often a worker has logged that it waits for the model."""
    return pipeline.log.count("model v2 was announced, but")


def finish(pipeline: KafkaPipeline, end: "End") -> None:
    """Wait until all is done, and compare it with what the log says, and with how it ended."""
    pipeline.finish_joined()
    assert versions(pipeline, 0) == ["v1"] * BEFORE + [end.version] * BEHIND
    assert versions(pipeline, 1) == ["v1"] * (BEFORE + BEHIND)
    assert {notice["detail"] for notice in pipeline.changes("model")} == {end.detail}


def versions(pipeline: KafkaPipeline, partition: int) -> list[str]:
    """Return the model version of each prediction of a stream, in order."""
    stream = f"{pipeline.config.topic('observations')}-{partition}"
    predictions = pipeline.records("predictions")
    return [each["model_version"] for each in predictions if each["stream"] == stream]


def copy_model(pipeline: KafkaPipeline, models: ModelFolder) -> None:
    models.put(DATA)


def withdraw(pipeline: KafkaPipeline, _models: ModelFolder) -> None:
    pipeline.send([WITHDRAWN], 0, topic="control")


class End(NamedTuple):
    """How the wait ends, the version behind the announcement, and what the change says."""

    act: Callable[[KafkaPipeline, ModelFolder], None]
    version: str
    detail: str


TAKEN = End(copy_model, "v2", "model v2 takes over from v1")
LEFT = End(withdraw, "v1", "model v2 was withdrawn before it took over: v1 stays")


def test_one_partition_waits_alive_and_not_ready_and_goes_on_when_it_may(
    start: Start, models: ModelFolder
) -> None:
    with start(roles=JOINED) as pipeline:
        announce_what_is_absent(pipeline)
        url = pipeline.workers.address("model-1")
        body = wait_for(f"{url}/readyz", 503)
        assert str(models.path(SHA256)) in body["waits_for"]
        assert "fluxplain model withdraw v2" in body["waits_for"]
        waiting = {each["partition"]: each["waits_for"] for each in body["partitions"]}
        assert [number for number, reason in waiting.items() if reason] == [0]
        assert wait_for(f"{url}/healthz", 200)["stalled"] is None, "a new start is of no use"
        assert gauges(url) == {"model": 1.0, "partition": 0.0, "registry": 0.0}
        copy_model(pipeline, models)
        finish(pipeline, TAKEN)
        assert wait_for(f"{url}/readyz", 200)["waits_for"] is None
        assert gauges(url) == {"model": 0.0, "partition": 0.0, "registry": 0.0}
        assert waits(pipeline) == 1, "the log says it once"
        assert pipeline.workers.deaths == []
    [notice] = pipeline.changes("model")
    assert notice["model_version"] == TAKEN.version
    assert pipeline.counts()["dead-letters"] == 0


def gauges(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(r'^fluxplain_waits_for\{role="model",what="(\w+)"\} (\S+)$', text, re.M)
    return {what: float(value) for what, value in found}


@pytest.mark.embedded
def test_a_kill_while_it_waits_changes_nothing(start: Start, models: ModelFolder) -> None:
    with start(roles=JOINED) as pipeline:
        announce_what_is_absent(pipeline)
        pipeline.kill("model")
        pipeline.wait_until(lambda: waits(pipeline) == 2)
        withdraw(pipeline, models)
        finish(pipeline, LEFT)
        assert pipeline.workers.deaths == [("model-1", -signal.SIGKILL)]


@pytest.mark.embedded
def test_a_worker_that_is_stopped_while_it_waits_ends_in_good_order(
    start: Start, models: ModelFolder
) -> None:
    with start(roles=JOINED) as pipeline:
        announce_what_is_absent(pipeline)
        assert pipeline.workers.remove("model-1") == 0
        models.put(DATA)
        pipeline.workers.add("model")
        finish(pipeline, TAKEN)
        assert waits(pipeline) == 1, "the next worker finds it at once"
        assert pipeline.workers.deaths == []


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("end", "moment"), [(TAKEN, "after"), (LEFT, "before")], ids=["copied", "withdrawn"]
)
def test_a_kill_when_it_has_just_decided_decides_nothing_else(
    start: Start,
    start_faulty: StartFaulty,
    models: ModelFolder,
    end: End,
    moment: str,
) -> None:
    """It dies before or after it has published its decision.

    Meanwhile what would have decided otherwise happens: the file is gone and the announcement
    withdrawn, or the file is there.
    """
    with start(roles=[role for role in JOINED if role != "model"]) as pipeline:
        faulty = start_faulty(pipeline, f"dies-{moment}-publishing-a-decision")
        announce_what_is_absent(pipeline)
        end.act(pipeline, models)
        pipeline.wait_until(lambda: faulty.poll() is not None)
        assert faulty.wait() == -signal.SIGKILL, "it must die there, or this test shows nothing"
        if end is TAKEN:
            models.path(SHA256).unlink()
            withdraw(pipeline, models)
        else:
            models.put(DATA)
        pipeline.workers.add("model")
        if end is TAKEN:
            pipeline.wait_until(lambda: "it was already taken" in pipeline.log)
            models.put(DATA)
        pipeline.wait_until_idle()
        assert pipeline.workers.deaths == []
    assert versions(pipeline, 0) == ["v1"] * BEFORE + [end.version] * BEHIND
    [notice] = pipeline.changes("model")
    assert notice["detail"] == end.detail
    assert all(len(values) == 1 for values in pipeline.published.values())
    letters = [key for key in pipeline.published if key[0] == "dead-letters"]
    assert len(letters) == (1 if end is TAKEN else 0), "it was withdrawn too late"


@pytest.mark.kafka
def test_one_that_was_frozen_before_it_decided_publishes_what_the_next_owner_decided(
    start: Start, start_faulty: StartFaulty, models: ModelFolder
) -> None:
    with start(roles=[role for role in JOINED if role != "model"]) as pipeline:
        frozen = start_faulty(pipeline, "freezes-deciding")
        announce_what_is_absent(pipeline)
        copy_model(pipeline, models)
        pipeline.wait_until(lambda: psutil.Process(frozen.pid).status() == psutil.STATUS_STOPPED)
        models.path(SHA256).unlink()
        withdraw(pipeline, models)
        pipeline.workers.add("model")
        pipeline.wait_until(lambda: len(pipeline.changes("model")) == 1)
        os.kill(frozen.pid, signal.SIGCONT)
        finish(pipeline, LEFT)
    assert len(pipeline.changes("model")) == 1


def test_what_one_shard_has_taken_the_others_take_too(
    start: Start, configure: Configure, tables: dict[str, Any], models: ModelFolder
) -> None:
    configure(model={**tables["model"], "shards": 2})
    with start(roles=JOINED) as pipeline:
        send(pipeline, slice(BEFORE))
        pipeline.wait_until_idle()
        pipeline.workers.kill("model-1of2-1", signal.SIGSTOP)
        models.put(DATA)
        pipeline.send([ANNOUNCED], 0, topic="control")
        pipeline.wait_until(lambda: len(pipeline.changes("model")) == 1)
        models.path(SHA256).unlink()
        withdraw(pipeline, models)
        send(pipeline, slice(BEFORE, None))
        pipeline.workers.kill("model-1of2-1", signal.SIGCONT)
        pipeline.wait_until(lambda: "it was already taken" in pipeline.log)
        models.put(DATA)
        finish(pipeline, TAKEN)
    assert len(pipeline.changes("model")) == 1


@pytest.mark.kafka
def test_a_rebalance_takes_the_waiting_partition_away(start: Start, models: ModelFolder) -> None:
    with start(roles=JOINED) as pipeline:
        announce_what_is_absent(pipeline)
        for _ in range(3):
            pipeline.workers.add("model")
        pipeline.wait_until(lambda: pipeline.workers.share("model"))
        for name in ("model-1", "model-3", "model-4"):
            assert pipeline.workers.remove(name) == 0
        withdraw(pipeline, models)
        finish(pipeline, LEFT)
        assert pipeline.workers.deaths == []


def test_it_stays_in_its_group_however_long_it_waits(start: Start, models: ModelFolder) -> None:
    """Kafka's client puts out of its group who has asked for nothing for so long."""
    # seconds; a busy machine may halt a worker for a few
    patience = {"BROKER_MAX_POLL_INTERVAL": "8"}
    with start(roles=JOINED, environment=patience) as pipeline:
        for partition in range(4):
            pipeline.send([ANNOUNCED, *STREAMS[0][:10]], partition, topic="control")
        pipeline.wait_until(lambda: waits(pipeline) == 4)
        url, until = pipeline.workers.address("model-1"), time.monotonic() + 20
        while time.monotonic() < until:
            assert ask(f"{url}/healthz")[0] == 200
            time.sleep(0.5)
        assert pipeline.log.count("model-0: resumes at") <= 1
        models.put(DATA)
        pipeline.wait_until_idle()
        assert len(pipeline.changes("model")) == 4
        assert pipeline.workers.deaths == []
        rejoined = re.findall(r"model \S+observations-0: resumes at offset", pipeline.log)
        assert len(rejoined) == 1, "it was put out of its group"


@pytest.mark.embedded
def test_the_command_withdraws_what_is_not_in_use(
    start: Start, config_path: Path, tmp_path: Path, models: ModelFolder, fluxplain: Command
) -> None:
    file = tmp_path / "new.pickle"
    file.write_bytes(DATA)
    with start(roles=JOINED) as pipeline:
        announce_what_is_absent(pipeline)
        command = partial(pipeline.run, "model")
        told = fluxplain(config_path, "model", "withdraw", "v2", **pipeline.environment)
        assert (told.returncode, told.stderr) == (0, "")
        assert "v2: withdrawn in 4 partitions of " in told.stdout
        finish(pipeline, LEFT)
        assert pipeline.counts()["dead-letters"] == 3, "nobody waited in the other partitions"
        told = command("announce", str(file), "--version", "v3")
        assert told.returncode == 0
        pipeline.wait_until_idle()
        for version, words in (("v3", ()), ("v3", ("--partition", "2"))):
            refused = command("withdraw", version, *words)
            assert refused.returncode == 2
            assert "model v3 is in use in " in refused.stderr
            assert refused.stderr.count("observations-") == (1 if words else 4)
        refused = command("withdraw", "v" * 201)
        assert "VERSION has 201 characters, but must have 1 to 200" in refused.stderr

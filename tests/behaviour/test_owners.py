"""Other settings are refused, and writers that lost their partition are ignored."""

import json
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Producer

from fluxplain.cli.supervisor import ROLES
from fluxplain.kafka.checkpoints.configured import identity_of, slots
from fluxplain.kafka.checkpoints.directory import DirectoryCheckpointStore
from fluxplain.kafka.checkpoints.envelope import Envelope
from fluxplain.kafka.client import client_settings, cluster
from fluxplain.kafka.exits import EXIT_REFUSED
from fluxplain.kafka.ownership.lives import Life
from fluxplain.kafka.ownership.register import Register
from fluxplain.kafka.ownership.writers import WRITER, Writer
from fluxplain.kafka.topics.topic_reader import TopicReader
from fluxplain.schemas import FIRST_INCARNATION, Evaluation
from tests.kit.in_process import run_with
from tests.kit.kafka_pipeline import (
    KafkaPipeline,
    Start,
    assert_same,
    of_incarnation,
    reference,
)
from tests.kit.preloaded import Command
from tests.kit.settings import SETTINGS, topics, write_config
from tests.kit.streams import observations

OTHERS = {"seed": 8, "explain": {**SETTINGS["explain"], "alpha": 0.02}}


@pytest.fixture
def other_path(tmp_path: Path, prefix: str) -> Path:
    """Settings of the same pipeline that give other results."""
    settings = {**SETTINGS, **OTHERS, "topics": topics(prefix)}
    return write_config(tmp_path / "other.toml", settings)


def test_a_worker_with_other_settings_refuses_to_start_and_names_them(
    start: Start, other_path: Path, fluxplain: Command
) -> None:
    values = observations(150)
    with start() as pipeline:
        pipeline.process(values[:80])
        foreign = fluxplain(other_path, "worker", "--role", "model", **pipeline.environment)
        assert foreign.returncode == EXIT_REFUSED
        assert "they differ in explain.alpha, seed" in foreign.stderr
        assert "fluxplain settings replace" in foreign.stderr
        assert "Traceback" not in foreign.stderr
        pipeline.feed(values[80:])
        pipeline.finish(values)


def test_settings_that_are_replaced_begin_another_incarnation(
    start: Start, other_path: Path, bootstrap_servers: str, tmp_path: Path
) -> None:
    values = observations(150)
    with start() as pipeline:
        pipeline.process(values[:100])
        command = partial(run_with, other_path, "settings", **pipeline.environment)
        shown = command("show")
        assert "differs: seed" in shown.stdout
        replaced = command("replace", "--yes")
        assert replaced.returncode == 0, replaced.stderr
        number = replaced.stdout.split()[-1].rstrip(".")
        again = command("replace", "--yes")
        assert "nothing to replace" in again.stdout
    with KafkaPipeline(other_path, bootstrap_servers, tmp_path) as other:
        other.process(values[100:])
    life = Life(settings=int(number))
    assert_same(
        of_incarnation(other.published, FIRST_INCARNATION),
        reference(pipeline.config, values[:100]),
    )
    assert_same(of_incarnation(other.published, number), reference(other.config, values, life=life))


def test_a_checkpoint_that_an_owner_before_wrote_late_is_not_used(start: Start) -> None:
    values = observations(120)
    with start() as pipeline:
        pipeline.process(values[:60])
    with start() as pipeline:
        config = pipeline.config
        pipeline.process(values[60:80])
        with closing(Register(config)) as register:
            registered = register.read()
        identity = identity_of(config, cluster(config), registered)
        store = DirectoryCheckpointStore(pipeline.checkpoints, Envelope(identity))
        late = 0
    for slot in slots(config):
        begin, found = registered.begins[str(slot)], store.load(slot)
        if found is None or found.epoch != begin.epoch:
            continue
        # as if the newest owner had died before it saved, and the one before woke up
        folder = f"{slot.owner}/{slot.topic}-{slot.partition}"
        for path in pipeline.checkpoints.rglob(f"{folder}/{begin.epoch:020d}-*.checkpoint"):
            path.unlink()
        # beyond the end of the log: who took it would refuse to go on
        store.save(slot, replace(found, epoch=begin.epoch - 1, next_offset=10**6))
        late += 1
    with start() as pipeline:
        pipeline.feed(values[80:])
        pipeline.finish(values)
        assert not pipeline.workers.deaths
    assert pipeline.log.count("its writer was no longer the owner") == late >= len(ROLES)


def evaluations(pipeline: KafkaPipeline) -> list[Evaluation]:
    """Return the evaluations that are in the topic."""
    with TopicReader(pipeline.config, [Evaluation.TOPIC], from_beginning=True) as reader:
        messages = list(reader.until(reader.extent()))
    return [Evaluation.decode(each.value()) for each in messages]


def test_only_the_newest_owner_of_a_partition_and_registered_incarnations_are_heard(
    start: Start,
) -> None:
    values = observations(120)
    with start() as pipeline:
        pipeline.process(values[:100])
        config, topic = pipeline.config, pipeline.config.topic("evaluations")
        slot, partitions = f"model {config.topic('features')}-0", config.topics.partitions
        with closing(Register(config)) as register:
            owner = Writer(slot, register.read().epochs[slot])
        # as the present owner would write it, but for the incarnation
        [run, *_] = [each for each in evaluations(pipeline) if each.feature == "age"]
        forged = replace(run, incarnation="999999999", previous_seq=None).encode()
        # of an owner before, of one that never claimed the slot, and of nobody
        headers = [
            {WRITER: replace(owner, epoch=owner.epoch - 1).header},
            {WRITER: replace(owner, epoch=10**9).header},
            {WRITER: b"\xff@@"},
            {},
        ]
        producer = Producer(client_settings(config))
        for i, each in enumerate(headers):
            producer.produce(topic, json.dumps({"forged": i}), "age", partition=0, headers=each)
        for partition in range(partitions):
            signed = {WRITER: owner.header}
            producer.produce(topic, forged, "age", partition=partition, headers=signed)
        producer.flush()
        pipeline.process(values[100:])
        pipeline.wait_until(lambda: pipeline.counts()["dead-letters"] == 3 + partitions)
        assert not pipeline.workers.deaths
    published = {k: v for k, v in pipeline.published.items() if k[0] != "dead-letters"}
    assert_same(published, reference(config, values))
    letters = {each["value"]: each["reason"] for each in pipeline.records("dead-letters")}
    assert letters.pop(forged.decode())
    assert letters == {
        json.dumps({"forged": i}): "it was not written by a worker of this pipeline"
        for i in (1, 2, 3)
    }

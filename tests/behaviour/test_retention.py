"""When the log no longer holds what was not read: as the user configured, and never silently.

On a real Kafka only: the embedded broker cannot be asked to delete records.
"""

import signal

import orjson
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from fluxplain.cli.supervisor import WorkerRefusedError
from fluxplain.config import Config
from fluxplain.kafka.client import client_settings
from fluxplain.kafka.exits import EXIT_REFUSED
from fluxplain.kafka.ownership.lives import Life
from fluxplain.schemas import FIRST_INCARNATION
from fluxplain.stages import Message
from tests.kit.kafka_pipeline import (
    Start,
    assert_same,
    identity,
    of_incarnation,
    reference,
    reference_of,
)
from tests.kit.streams import observations

pytestmark = pytest.mark.kafka


def delete_records(config: Config, topic: str, below: int) -> None:
    """Delete the records below an offset, as retention does."""
    place = TopicPartition(config.topic(topic), 0, below)
    client = AdminClient(client_settings(config))  # its answers come as long as it is there
    for future in client.delete_records([place]).values():
        future.result(timeout=30)


def test_without_checkpoints_and_beginning_it_starts_cold_and_says_so(start: Start) -> None:
    values = observations(200)
    with start() as pipeline:
        config = pipeline.config
        pipeline.process(values[:100])
    for path in pipeline.checkpoints.glob("*/model/*/*.checkpoint"):
        path.unlink()
    delete_records(config, "features", 60)
    with start() as again:
        again.process(values[100:])
        again.wait_until(lambda: bool(again.changes("cold-start")))
    (change,) = again.changes("cold-start")
    assert change["stream"] == f"{config.topic('features')}-0"
    assert change["seq"] == 60
    assert "starts cold at offset 60" in again.log
    # what contradicts what was published before has another identity, downstream too
    number = str(change["incarnation"])
    assert number != FIRST_INCARNATION
    of_now = of_incarnation(again.published, number)
    assert_same(of_incarnation(again.published, FIRST_INCARNATION), reference(config, values[:100]))
    of_now.pop(identity("changes", orjson.dumps(change)))
    life = Life(cold_start=int(number))
    assert_same(of_now, reference(config, values, begin=60, life=life))


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_deleted_before_they_were_read_it_goes_on_as_configured(start: Start, policy: str) -> None:
    values = observations(300)
    with start() as pipeline:
        config = pipeline.config
        pipeline.process(values[:100])
    pipeline.send(values[100:200])
    delete_records(config, "features", 150)
    seq = {"earliest": 150, "latest": 200}[policy]
    # the state of before goes on with what there is
    source = config.topic("features")
    messages = [Message(source, 0, offset, None, value) for offset, value in enumerate(values)]
    expected = reference_of(config, [*messages[:100], *messages[seq:]])
    environment = {
        "FLUXPLAIN_CHECKPOINT__OUT_OF_RANGE": policy,
        "FLUXPLAIN_CHECKPOINT__INTERVAL_S": "600",
    }
    with start(environment=environment) as again:
        again.wait_until(lambda: bool(again.changes("gap")))
        again.send(values[200:250])
        again.wait_until(lambda: again.counts()["predictions"] >= 140)
        # where it went on is known to the next start, although no checkpoint was due
        again.kill("model")
        again.send(values[250:])
        again.wait_until(lambda: expected.keys() <= again.published.keys())
    (change,) = again.changes("gap")
    assert (change["previous_seq"], change["seq"]) == (99, seq - 1)
    assert "offsets 100 to 149" in str(change["detail"])
    published = {
        k: v for k, v in again.published.items() if k[:3] != ("changes", change["stream"], "gap")
    }
    assert_same(published, expected)


def test_deleted_before_they_were_read_it_fails_if_so_configured(start: Start) -> None:
    values = observations(200)
    with start() as pipeline:
        pipeline.process(values[:100])
    pipeline.send(values[100:])
    delete_records(pipeline.config, "features", 150)
    with start() as again, pytest.raises(WorkerRefusedError, match=f"model.*{EXIT_REFUSED}"):
        again.wait_until_idle()
    assert "offsets 100 to 149" in again.log
    assert "checkpoint.out_of_range" in again.log


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_deleted_under_a_worker_that_is_slow(start: Start, policy: str) -> None:
    values = observations(3000)
    with start(environment={"FLUXPLAIN_CHECKPOINT__OUT_OF_RANGE": policy}) as pipeline:
        pipeline.send(values[:200])
        pipeline.wait_until(lambda: pipeline.counts()["predictions"] >= 50)
        pipeline.workers.kill("model-1", signal.SIGSTOP)
        pipeline.send(values[200:])
        delete_records(pipeline.config, "features", 2950)
        pipeline.workers.kill("model-1", signal.SIGCONT)
        if policy == "fail":
            with pytest.raises(WorkerRefusedError, match=f"model.*{EXIT_REFUSED}"):
                pipeline.wait_until_idle()
            assert "were deleted before they were read" in pipeline.log
        else:
            pipeline.wait_until_idle()
            assert pipeline.changes("gap")[0]["seq"] == 2949
